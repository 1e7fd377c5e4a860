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

-- Whoever writes a view needs the rights to its table. Before version 15 of the server only
-- triggers protect the rows of append-only tables there.
DO $$
DECLARE
	v TEXT;
BEGIN
	IF current_setting('server_version_num')::int >= 150000 THEN
		FOREACH v IN ARRAY ARRAY['sequences', 'invoices', 'issued', 'notices', 'deliveries', 'delivery_attempts'] LOOP
			EXECUTE format('ALTER VIEW %I SET (security_invoker = on)', v);
		END LOOP;
	END IF;
END $$;
