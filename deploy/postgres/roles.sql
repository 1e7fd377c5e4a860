-- The roles of the service on PostgreSQL:
--
--   fiscalhub_migrator  owns the tables and changes them: `fiscalhub migrate`
--   fiscalhub_service   reads and writes rows: `fiscalhub serve --no-migrate` and the commands
--                       of operators. It cannot create, change or drop a table, and it cannot
--                       change or delete the rows of append-only tables.
--   fiscalhub_reader    reads rows, for reports and support. It cannot read secrets, not even
--                       in their encrypted form.
--
-- Run this file in the database of the service, which must contain nothing else, as a
-- superuser or as the owner of the database: before the first `fiscalhub migrate`, and again
-- after each one. Without the second run, the service works: it gets its rights on new tables
-- at once. The second run removes the rights that it does not need on new append-only tables,
-- and lets fiscalhub_reader read new tables.
--
-- The roles have no password. Give them one with \password, or another way to log in.

BEGIN;

DO $$
DECLARE
	name TEXT;
BEGIN
	FOREACH name IN ARRAY ARRAY['fiscalhub_migrator', 'fiscalhub_service', 'fiscalhub_reader'] LOOP
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
			EXECUTE format('CREATE ROLE %I LOGIN', name);
		END IF;
		EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name);
		EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', name);
	END LOOP;
	-- A role that is not a superuser must be a member of the role that gets its tables.
	IF NOT pg_has_role(current_user, 'fiscalhub_migrator', 'MEMBER') THEN
		EXECUTE format('GRANT fiscalhub_migrator TO %I', current_user);
	END IF;
	EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
END $$;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO fiscalhub_migrator;

-- The service sees whether a standby is synchronous.
GRANT pg_read_all_stats TO fiscalhub_service;

ALTER ROLE fiscalhub_reader SET default_transaction_read_only = on;

-- Tables that another role has created, in a database that was used without these roles.
DO $$
DECLARE
	o RECORD;
BEGIN
	FOR o IN
		SELECT format('TABLE %s', c.oid::regclass) AS text FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND c.relowner <> 'fiscalhub_migrator'::regrole
		UNION ALL
		SELECT format('FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
		WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> 'fiscalhub_migrator'::regrole
	LOOP
		EXECUTE format('ALTER %s OWNER TO fiscalhub_migrator', o.text);
	END LOOP;
END $$;

-- The rights of the service. A migration that creates a table needs no new run of this file.
ALTER DEFAULT PRIVILEGES FOR ROLE fiscalhub_migrator IN SCHEMA public
	GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO fiscalhub_service;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, fiscalhub_service, fiscalhub_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fiscalhub_service;

DO $$
DECLARE
	t RECORD;
BEGIN
	-- A table is append-only if a trigger refuses to update (16) or to delete (8) its rows.
	-- So is a view of it, such as its earlier name.
	FOR t IN
		SELECT c.oid::regclass AS name, g.tgtype & 16 <> 0 AS no_update, g.tgtype & 8 <> 0 AS no_delete
		FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid CROSS JOIN LATERAL (
			SELECT g.tgrelid UNION
			SELECT r.ev_class FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
			WHERE d.refobjid = g.tgrelid AND d.refclassid = 'pg_class'::regclass) AS c (oid)
		WHERE p.proname = 'refuse_change' AND p.pronamespace = 'public'::regnamespace
	LOOP
		IF t.no_update THEN
			EXECUTE format('REVOKE UPDATE ON %s FROM fiscalhub_service', t.name);
		END IF;
		IF t.no_delete THEN
			EXECUTE format('REVOKE DELETE ON %s FROM fiscalhub_service', t.name);
		END IF;
	END LOOP;
	-- Only migrations write these tables.
	FOR t IN
		SELECT c.oid::regclass AS name FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relname IN ('schema_versions', 'schema_migrations', 'database_identity')
	LOOP
		EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %s FROM fiscalhub_service', t.name);
	END LOOP;
	-- The rights of the reader: every column that is not a secret. The service stores secrets
	-- encrypted, and of an API key, a session, a link and a password only a digest.
	FOR t IN
		SELECT c.oid::regclass AS name, string_agg(quote_ident(a.attname), ', ') AS columns
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
			AND c.relname NOT IN ('secrets', 'sealed_answers')
			AND a.attname NOT IN ('sealed', 'secret', 'old_secret', 'password_hash')
			AND NOT (c.relname IN ('credentials', 'user_links', 'user_sessions', 'recovery_codes') AND a.attname = 'digest')
		GROUP BY c.oid
	LOOP
		EXECUTE format('GRANT SELECT (%s) ON %s TO fiscalhub_reader', t.columns, t.name);
	END LOOP;
END $$;

COMMIT;
