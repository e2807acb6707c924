-- The title that a turn itself gave its conversation: when the turn goes, the words of its title go too.

ALTER TABLE turns ADD COLUMN title TEXT;
