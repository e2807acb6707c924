-- The record. Every table but `meta` is keyed by its owner first: a hash of tenant and user, so that it can be
-- partitioned or distributed by it; nothing is numbered across owners and nothing is joined across them.
--
-- Names are compared by code point (COLLATE "C"), as on every other engine. Moments are microseconds since 1970.
-- `PARTITION BY HASH (owner)` is left out where a store is made with partitions=0, to be distributed otherwise.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE threefold.meta (
    key text PRIMARY KEY,
    value text NOT NULL
);

-- One row for each owner; locking it makes the owner's writes serial. `last_number` numbers the owner's conversations,
-- turns, rows and reactions. `rows`, `words` and `expires` (the first end of a time to live) are what search must know.
CREATE TABLE threefold.owners (
    owner uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    last_number integer NOT NULL DEFAULT 0,
    rows integer NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    expires bigint
) PARTITION BY HASH (owner);
CREATE INDEX owners_of_tenant ON threefold.owners (tenant);
CREATE INDEX owners_expiring ON threefold.owners (expires) WHERE expires IS NOT NULL;

-- `positions` numbers the content rows of the conversation in the order of their arrival.
CREATE TABLE threefold.conversations (
    owner uuid NOT NULL,
    number integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    title text NOT NULL,
    app text,
    started bigint NOT NULL,
    last_activity bigint NOT NULL,
    turns integer NOT NULL DEFAULT 0,
    positions integer NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, number),
    UNIQUE (owner, name)
) PARTITION BY HASH (owner);
CREATE INDEX conversations_recent ON threefold.conversations (owner, last_activity, name);

-- `title` is the one that the turn itself gave its conversation: when the turn goes, its words go too.
CREATE TABLE threefold.turns (
    owner uuid NOT NULL,
    number integer NOT NULL,
    conversation integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    state text NOT NULL,
    status text NOT NULL,
    started bigint NOT NULL,
    ended bigint NOT NULL,
    expires bigint,
    agent text,
    app text,
    digest bytea NOT NULL,
    head text NOT NULL,
    log bytea NOT NULL,
    replay bytea,
    title text,
    PRIMARY KEY (owner, number),
    UNIQUE (owner, conversation, name)
) PARTITION BY HASH (owner);
CREATE INDEX turns_in_order ON threefold.turns (owner, conversation, started, name);
CREATE INDEX turns_of_owner ON threefold.turns (owner, started);
CREATE INDEX turns_expiring ON threefold.turns (owner, expires) WHERE expires IS NOT NULL;

CREATE TABLE threefold.rows (
    owner uuid NOT NULL,
    number integer NOT NULL,
    conversation integer NOT NULL,
    turn integer NOT NULL,
    seq integer NOT NULL,
    position integer NOT NULL,
    role text NOT NULL,
    event_type text NOT NULL,
    path text NOT NULL,
    batch text,
    author text,
    at bigint NOT NULL,
    expires bigint,
    word_count integer NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (owner, number),
    UNIQUE (owner, turn, seq)
) PARTITION BY HASH (owner);
CREATE INDEX rows_of_conversation ON threefold.rows (owner, conversation);
CREATE INDEX rows_in_time ON threefold.rows (owner, at);

CREATE TABLE threefold.files (
    owner uuid NOT NULL,
    turn integer NOT NULL,
    seq integer NOT NULL,
    path text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    size bigint NOT NULL,
    mime text,
    PRIMARY KEY (owner, turn, seq)
) PARTITION BY HASH (owner);
CREATE INDEX files_by_digest ON threefold.files (owner, digest);

CREATE TABLE threefold.feedback (
    owner uuid NOT NULL,
    turn integer NOT NULL,
    number integer NOT NULL,
    origin text NOT NULL,
    reaction text NOT NULL,
    text text,
    at bigint NOT NULL,
    PRIMARY KEY (owner, turn, number)
) PARTITION BY HASH (owner);

-- Full text. A term is kept as a 64-bit key that is made of owner and term: so a list of the inverted index belongs to
-- one owner, and a search costs what the owner's rows cost. `counts` says how often each of `terms` occurs.
CREATE TABLE threefold.words (
    owner uuid NOT NULL,
    row integer NOT NULL,
    length integer NOT NULL,
    terms bigint[] NOT NULL,
    counts smallint[] NOT NULL,
    PRIMARY KEY (owner, row)
) PARTITION BY HASH (owner);
ALTER TABLE threefold.words ALTER COLUMN terms SET STORAGE EXTERNAL;
-- Without a list of pending entries, which every search would have to read through.
CREATE INDEX words_by_term ON threefold.words USING gin (terms) WITH (fastupdate = off);

CREATE TABLE threefold.vocabulary (
    owner uuid NOT NULL,
    key bigint NOT NULL,
    term text NOT NULL,
    PRIMARY KEY (owner, key)
) PARTITION BY HASH (owner);

-- Half precision; kept in the row up to the size of a page, since every search of the owner reads them all.
CREATE TABLE threefold.vectors (
    owner uuid NOT NULL,
    row integer NOT NULL,
    embedding halfvec NOT NULL,
    PRIMARY KEY (owner, row)
) PARTITION BY HASH (owner);
ALTER TABLE threefold.vectors ALTER COLUMN embedding SET STORAGE MAIN;

CREATE TABLE threefold.waiting (
    owner uuid NOT NULL,
    row integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    due bigint NOT NULL DEFAULT 0,
    error text,
    PRIMARY KEY (owner, row)
) PARTITION BY HASH (owner);
CREATE INDEX waiting_due ON threefold.waiting (due, owner, row);

-- What was removed, by hash: enough to tell the owner, nothing to read.
CREATE TABLE threefold.tombstones (
    owner uuid NOT NULL,
    hash bytea NOT NULL,
    why text NOT NULL,
    PRIMARY KEY (owner, hash)
) PARTITION BY HASH (owner);

-- Blobs whose last reference was removed; emptied as they are deleted. Names the owner, who may be gone by then.
CREATE TABLE threefold.doomed (
    owner uuid NOT NULL,
    digest text NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (owner, digest)
) PARTITION BY HASH (owner);

-- Bytes by content, where no other place is given for them.
CREATE TABLE threefold.blobs (
    owner uuid NOT NULL,
    digest text NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (owner, digest)
) PARTITION BY HASH (owner);
ALTER TABLE threefold.blobs ALTER COLUMN data SET STORAGE EXTERNAL;

-- The second wall: whoever asks sees the owner that the transaction speaks for (`threefold.owner`), whatever the
-- statement says; nobody where it speaks for none. Only the role that made the tables may speak for all of them
-- (`threefold.operator`). Partitions get the same policy, since they can be asked by their own names.
DO $$
DECLARE
    partitions integer := coalesce(nullif(current_setting('threefold.partitions', true), ''), '16');
    base text;
    target text;
BEGIN
    FOR base IN
        SELECT c.relname FROM pg_class AS c
        WHERE c.relnamespace = 'threefold'::regnamespace AND c.relkind IN ('r', 'p')
          AND c.relname NOT IN ('meta', 'migrations')
    LOOP
        FOR i IN 0 .. partitions LOOP
            target := base;
            IF i > 0 THEN
                target := format('%s_%s', base, i - 1);
                EXECUTE format(
                    'CREATE TABLE threefold.%I PARTITION OF threefold.%I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                    target, base, partitions, i - 1
                );
            END IF;
            EXECUTE format('ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY', target);
            -- `words` is not forced upon its own role: an operator that is not leakproof (`&&`) may not use its index
            -- behind a policy. It holds hashes and counts; what is found in it is joined to `rows`, which is forced.
            IF base <> 'words' THEN
                EXECUTE format('ALTER TABLE threefold.%I FORCE ROW LEVEL SECURITY', target);
            END IF;
            EXECUTE format(
                'CREATE POLICY own ON threefold.%I USING '
                '(owner = (SELECT nullif(current_setting(''threefold.owner'', true), '''')::uuid))', target
            );
            EXECUTE format(
                'CREATE POLICY operator ON threefold.%I TO CURRENT_USER USING '
                '((SELECT current_setting(''threefold.operator'', true)) = ''on'')', target
            );
        END LOOP;
    END LOOP;
END
$$;

-- No samples of what users said or are called in the planner's statistics, where a purge would not reach them.
ALTER TABLE threefold.owners ALTER COLUMN tenant SET STATISTICS 0, ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE threefold.conversations ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN title SET STATISTICS 0;
ALTER TABLE threefold.turns ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN head SET STATISTICS 0,
    ALTER COLUMN log SET STATISTICS 0, ALTER COLUMN replay SET STATISTICS 0, ALTER COLUMN title SET STATISTICS 0,
    ALTER COLUMN agent SET STATISTICS 0, ALTER COLUMN app SET STATISTICS 0;
ALTER TABLE threefold.rows ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN batch SET STATISTICS 0,
    ALTER COLUMN author SET STATISTICS 0, ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE threefold.files ALTER COLUMN path SET STATISTICS 0, ALTER COLUMN mime SET STATISTICS 0;
ALTER TABLE threefold.feedback ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE threefold.vocabulary ALTER COLUMN term SET STATISTICS 0;
ALTER TABLE threefold.vectors ALTER COLUMN embedding SET STATISTICS 0;
ALTER TABLE threefold.waiting ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE threefold.doomed ALTER COLUMN tenant SET STATISTICS 0, ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE threefold.blobs ALTER COLUMN data SET STATISTICS 0;
