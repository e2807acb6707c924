-- How many words the owner's content rows have in all, for their average length: what others write must not move it.
ALTER TABLE owners ADD COLUMN words INTEGER NOT NULL DEFAULT 0;
UPDATE owners SET words = (SELECT coalesce(sum(word_count), 0) FROM rows WHERE rows.owner = owners.id);
