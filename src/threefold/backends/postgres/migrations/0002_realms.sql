-- What is kept of a user lies in realms: `conv` is the record, others hold records of another kind under the same rules.
-- The owner's key is made of the realm too.
ALTER TABLE threefold.owners ADD COLUMN realm text COLLATE "C" NOT NULL DEFAULT 'conv';
ALTER TABLE threefold.doomed ADD COLUMN realm text COLLATE "C" NOT NULL DEFAULT 'conv';

-- What turns can be asked for by: a filter joins some of these.
CREATE TABLE threefold.labels (
    owner uuid NOT NULL,
    label text COLLATE "C" NOT NULL,
    turn integer NOT NULL,
    PRIMARY KEY (owner, label, turn)
) PARTITION BY HASH (owner);
CREATE INDEX labels_of_turn ON threefold.labels (owner, turn);
ALTER TABLE threefold.labels ALTER COLUMN label SET STATISTICS 0;

-- As many partitions as the others have, and the same policies.
DO $$
DECLARE
    partitions integer := (SELECT count(*) FROM pg_inherits WHERE inhparent = 'threefold.owners'::regclass);
    target text;
BEGIN
    FOR i IN 0 .. partitions LOOP
        target := 'labels';
        IF i > 0 THEN
            target := format('labels_%s', i - 1);
            EXECUTE format(
                'CREATE TABLE threefold.%I PARTITION OF threefold.labels FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                target, partitions, i - 1
            );
        END IF;
        EXECUTE format('ALTER TABLE threefold.%I ENABLE ROW LEVEL SECURITY', target);
        EXECUTE format('ALTER TABLE threefold.%I FORCE ROW LEVEL SECURITY', target);
        EXECUTE format(
            'CREATE POLICY own ON threefold.%I USING '
            '(owner = (SELECT nullif(current_setting(''threefold.owner'', true), '''')::uuid))', target
        );
        EXECUTE format(
            'CREATE POLICY operator ON threefold.%I TO CURRENT_USER USING '
            '((SELECT current_setting(''threefold.operator'', true)) = ''on'')', target
        );
    END LOOP;
END
$$;
