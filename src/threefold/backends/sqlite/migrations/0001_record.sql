-- The record: every table is keyed by its owner (tenant and user), interned as a small integer inside this file.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

-- `vectors` counts the changes of this owner's vectors, so that a cache can tell whether it is current; `rows` counts
-- its content rows, for the rarity of words.
CREATE TABLE owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    vectors INTEGER NOT NULL DEFAULT 0,
    rows INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, user)
);

-- `positions` numbers the content rows of the conversation in the order of their arrival.
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    app TEXT,
    started INTEGER NOT NULL,
    last_activity INTEGER NOT NULL,
    turns INTEGER NOT NULL DEFAULT 0,
    positions INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, name)
);
CREATE INDEX conversations_recent ON conversations (owner, last_activity, name);

-- `title` is the one that the turn itself gave its conversation: when the turn goes, its words go too.
CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    status TEXT NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    expires INTEGER,
    agent TEXT,
    app TEXT,
    digest BLOB NOT NULL,
    head TEXT NOT NULL,
    log BLOB NOT NULL,
    replay BLOB,
    title TEXT,
    UNIQUE (conversation, name)
);
CREATE INDEX turns_in_order ON turns (conversation, started, name);
CREATE INDEX turns_of_owner ON turns (owner, started);
CREATE INDEX turns_expiring ON turns (expires, owner) WHERE expires IS NOT NULL;

CREATE TABLE rows (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    conversation INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    event_type TEXT NOT NULL,
    path TEXT NOT NULL,
    batch TEXT,
    author TEXT,
    at INTEGER NOT NULL,
    expires INTEGER,
    word_count INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (turn, seq)
);
CREATE INDEX rows_of_owner ON rows (owner, at);
CREATE INDEX rows_in_order ON rows (conversation, position);

CREATE TABLE files (
    turn INTEGER NOT NULL,
    path TEXT NOT NULL,
    owner INTEGER NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    mime TEXT,
    PRIMARY KEY (turn, path)
) WITHOUT ROWID;
CREATE INDEX files_by_digest ON files (owner, digest);

CREATE TABLE feedback (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    origin TEXT NOT NULL,
    reaction TEXT NOT NULL,
    text TEXT,
    at INTEGER NOT NULL
);
CREATE INDEX feedback_of_turn ON feedback (turn);

-- Full text: terms are analysed above the store and carry the owner's number in front, so that counting a term
-- never leaves the owner's rows. `scope` holds the row's conversation and role, `terms` the words.
CREATE VIRTUAL TABLE words USING fts5 (
    scope,
    terms,
    content = '',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE TABLE vocabulary (
    owner INTEGER NOT NULL,
    term TEXT NOT NULL,
    PRIMARY KEY (owner, term)
) WITHOUT ROWID;

-- float16, little-endian; one owner's vectors lie side by side.
CREATE TABLE vectors (
    owner INTEGER NOT NULL,
    row INTEGER NOT NULL,
    embedding BLOB NOT NULL,
    PRIMARY KEY (owner, row)
) WITHOUT ROWID;

CREATE TABLE waiting (
    row INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL DEFAULT 0,
    error TEXT
);
CREATE INDEX waiting_of_owner ON waiting (owner);
CREATE INDEX waiting_due ON waiting (due, row);

-- What was removed, by hash: enough to tell the owner, nothing to read.
CREATE TABLE tombstones (
    owner INTEGER NOT NULL,
    hash BLOB NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (owner, hash)
) WITHOUT ROWID;

-- Blobs whose last reference was removed; emptied as the files are deleted.
CREATE TABLE doomed (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (tenant, user, digest)
) WITHOUT ROWID;
