-- Run by the superuser in the database that is to hold the store. Running it again changes only the passwords.
--
-- `threefold` owns the schema and is what the program logs in as. It is an ordinary role: row-level security does not
-- bind superusers and roles with BYPASSRLS, and with one of those the second wall between users would be gone.
--
-- `threefold_reader` may only read, and only the owner that its transaction names (docs/scale.md).
--
-- Passwords are variables of psql: `psql --set=password=… --set=reader_password=… --file=roles.sql`.

SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS', name)
FROM (VALUES ('threefold'), ('threefold_reader')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

ALTER ROLE threefold PASSWORD :'password';
ALTER ROLE threefold_reader PASSWORD :'reader_password';

-- Only a superuser may make it; the program finds it there.
CREATE EXTENSION IF NOT EXISTS vector;

-- The program makes the schema `threefold` itself, by `threefold migrate` or when it first opens the store.
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT format('GRANT CONNECT, CREATE ON DATABASE %I TO threefold', current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO threefold_reader', current_database()) \gexec

-- Schema and tables are still to be made: whoever reads gets the right as they are.
ALTER DEFAULT PRIVILEGES FOR ROLE threefold GRANT USAGE ON SCHEMAS TO threefold_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE threefold GRANT SELECT ON TABLES TO threefold_reader;
