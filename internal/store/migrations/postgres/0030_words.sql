-- A number range has numbers, a document has a revision, and an event is called an event.
-- Programs of earlier versions and reports use the old names, which are views that can be
-- written; a later migration drops them.

ALTER TABLE sequences RENAME TO number_ranges;
ALTER TABLE invoices RENAME TO documents;
ALTER TABLE documents RENAME COLUMN sequence TO revision;
ALTER TABLE issued RENAME TO issued_documents;
ALTER TABLE issued_documents RENAME COLUMN sequence_id TO range_id;
ALTER TABLE notices RENAME TO events;
ALTER TABLE events RENAME COLUMN sequence TO revision;
ALTER TABLE deliveries RENAME TO webhook_deliveries;
ALTER TABLE webhook_deliveries RENAME COLUMN notice_id TO event_id;
ALTER TABLE webhook_deliveries RENAME COLUMN sequence TO revision;
ALTER TABLE delivery_attempts RENAME TO webhook_attempts;
ALTER TABLE webhook_attempts RENAME COLUMN notice_id TO event_id;

DROP TRIGGER notices_stay ON events;
DROP FUNCTION refuse_other_notice();
CREATE FUNCTION refuse_other_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.number IS NOT NULL OR NEW.number IS NULL
		OR (NEW.id, NEW.environment, NEW.taxpayer_id, NEW.kind, NEW.document_id, NEW.revision, NEW.at, NEW.body)
		IS DISTINCT FROM (OLD.id, OLD.environment, OLD.taxpayer_id, OLD.kind, OLD.document_id, OLD.revision, OLD.at, OLD.body) THEN
		RAISE EXCEPTION 'an event never changes, and has its number once';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER events_stay BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION refuse_other_event();
ALTER TRIGGER notices_no_delete ON events RENAME TO events_no_delete;

CREATE VIEW sequences AS SELECT * FROM number_ranges;
CREATE VIEW invoices AS SELECT *, revision AS sequence FROM documents;
CREATE VIEW issued AS SELECT *, range_id AS sequence_id FROM issued_documents;
CREATE VIEW notices AS SELECT *, revision AS sequence FROM events;
CREATE VIEW deliveries AS SELECT *, event_id AS notice_id, revision AS sequence FROM webhook_deliveries;
CREATE VIEW delivery_attempts AS SELECT *, event_id AS notice_id FROM webhook_attempts;

-- Who may read or write a table may do so under its earlier name, and nobody else.
DO $$
DECLARE
	statement TEXT;
BEGIN
	FOR statement IN
		WITH renamed (earlier, name) AS (VALUES ('sequences', 'number_ranges'), ('invoices', 'documents'), ('issued', 'issued_documents'),
			('notices', 'events'), ('deliveries', 'webhook_deliveries'), ('delivery_attempts', 'webhook_attempts')),
		rights AS (
			SELECT table_name, grantee, privilege_type::text AS allowed FROM information_schema.table_privileges
			WHERE table_schema = 'public' AND grantee <> current_user
			UNION ALL
			SELECT table_name, grantee, format('SELECT (%I)', column_name) FROM information_schema.column_privileges
			WHERE table_schema = 'public' AND grantee <> current_user AND privilege_type = 'SELECT'
			UNION ALL
			SELECT table_name, grantee, format('SELECT (%I)', a.earlier) FROM information_schema.column_privileges
			JOIN (VALUES ('sequence', 'revision'), ('sequence_id', 'range_id'), ('notice_id', 'event_id')) AS a (earlier, name) ON a.name = column_name
			WHERE table_schema = 'public' AND grantee <> current_user AND privilege_type = 'SELECT'),
		roles AS (SELECT *, CASE grantee WHEN 'PUBLIC' THEN grantee::text ELSE quote_ident(grantee) END AS role FROM rights)
		SELECT text FROM (
			SELECT DISTINCT 1 AS step, format('REVOKE ALL ON %I FROM %s', earlier, role) AS text FROM renamed JOIN roles ON table_name = earlier
			UNION
			SELECT 2, format('GRANT %s ON %I TO %s', allowed, earlier, role) FROM renamed JOIN roles ON table_name = name) AS all_steps
		ORDER BY step
	LOOP
		EXECUTE statement;
	END LOOP;
END $$;
