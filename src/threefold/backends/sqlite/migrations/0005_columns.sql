-- A search keeps in memory what ranking needs of each row of its owner (`columns.py`): conversation, role and length need
-- not stand in the full-text index. The index has no text to be copied from; `schema.py` builds it anew from the rows.
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5 (
    terms,
    content = '',
    columnsize = 0,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
-- Every occurrence of a term: (term, doc, col, offset).
CREATE VIRTUAL TABLE occurrences USING fts5vocab (words, 'instance');
UPDATE meta SET value = '' WHERE key = 'analyzer';

-- Whether the text ends with a question mark.
ALTER TABLE rows ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;
-- All that is kept in memory of a row, side by side. Nothing asks for the rows of a conversation in their order.
DROP INDEX rows_in_order;
DROP INDEX rows_of_owner;
CREATE INDEX rows_of_owner ON rows (
    owner, id, conversation, turn, seq, position, role, at, word_count, author, asks, expires
);
DROP INDEX turns_of_owner;
CREATE INDEX turns_of_owner ON turns (owner, started, agent, app);
-- Counts the changes of the owner's rows that are more than new ones behind the last.
ALTER TABLE owners ADD COLUMN rewritten INTEGER NOT NULL DEFAULT 0;
