-- The queue for vectors is short and gone through in order of its rows; an index of it would be written by every turn.
DROP INDEX waiting_of_owner;
DROP INDEX waiting_due;
-- From here on a row whose event type and path are the usual ones of its role keeps two empty texts instead.
