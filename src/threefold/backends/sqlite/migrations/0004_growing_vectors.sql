-- `vectors` counts all changes of the owner's vectors, `replaced` those that are more than new ones behind the last: a
-- cache that missed none of these reads on where it ended.
ALTER TABLE owners ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0;
