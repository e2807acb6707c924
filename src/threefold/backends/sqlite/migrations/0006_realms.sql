-- What is kept of a user lies in realms: `conv` is the record, others hold records of another kind under the same rules.
CREATE TABLE owners_with_realm (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    realm TEXT NOT NULL,
    vectors INTEGER NOT NULL DEFAULT 0,
    replaced INTEGER NOT NULL DEFAULT 0,
    rows INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,
    rewritten INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, user, realm)
);
INSERT INTO owners_with_realm (id, tenant, user, realm, vectors, replaced, rows, words, rewritten)
    SELECT id, tenant, user, 'conv', vectors, replaced, rows, words, rewritten FROM owners;
-- Numbers are not given again, even where the last owners are gone.
INSERT INTO sqlite_sequence (name, seq) SELECT 'owners_with_realm', 0
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'owners_with_realm');
UPDATE sqlite_sequence SET seq = max(seq, coalesce((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = 'owners'), 0))
    WHERE name = 'owners_with_realm';
DROP TABLE owners;
ALTER TABLE owners_with_realm RENAME TO owners;

CREATE TABLE doomed_of_realm (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    realm TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (tenant, user, realm, digest)
) WITHOUT ROWID;
INSERT INTO doomed_of_realm SELECT tenant, user, 'conv', digest FROM doomed;
DROP TABLE doomed;
ALTER TABLE doomed_of_realm RENAME TO doomed;

-- What turns can be asked for by: a filter joins some of these.
CREATE TABLE labels (
    owner INTEGER NOT NULL,
    label TEXT NOT NULL,
    turn INTEGER NOT NULL,
    PRIMARY KEY (owner, label, turn)
) WITHOUT ROWID;
CREATE INDEX labels_of_turn ON labels (turn, label);

-- A turn that is changed keeps its number, and so do its rows. `changes` counts the owner's turns that were changed so;
-- a row of one has the count from then as its `change`, and that of `vectors` from when its vector went, or came to lie
-- before others, as its `vector_change`: caches read these rows alone. `replaced` and `rewritten` count what is more.
ALTER TABLE owners ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rows ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rows ADD COLUMN vector_change INTEGER NOT NULL DEFAULT 0;
CREATE INDEX rows_changed ON rows (owner, change, turn) WHERE change > 0;
CREATE INDEX rows_with_other_vectors ON rows (owner, vector_change) WHERE vector_change > 0;
