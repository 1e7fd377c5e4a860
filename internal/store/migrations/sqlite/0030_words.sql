-- breaks earlier programs
-- A number range has numbers, a document has a revision, and an event is called an event.
-- Reports may read the old names, which are views; a later migration drops them.

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

DROP TRIGGER notices_stay;
DROP TRIGGER notices_no_delete;
CREATE TRIGGER events_stay BEFORE UPDATE ON events
WHEN OLD.number IS NOT NULL OR NEW.number IS NULL
	OR NEW.id <> OLD.id OR NEW.environment <> OLD.environment OR NEW.taxpayer_id <> OLD.taxpayer_id OR NEW.kind <> OLD.kind
	OR NEW.document_id <> OLD.document_id OR NEW.revision <> OLD.revision OR NEW.at <> OLD.at OR NEW.body <> OLD.body
BEGIN SELECT RAISE(ABORT, 'an event never changes, and has its number once'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;

CREATE VIEW sequences AS SELECT * FROM number_ranges;
CREATE VIEW invoices AS SELECT *, revision AS sequence FROM documents;
CREATE VIEW issued AS SELECT *, range_id AS sequence_id FROM issued_documents;
CREATE VIEW notices AS SELECT *, revision AS sequence FROM events;
CREATE VIEW deliveries AS SELECT *, event_id AS notice_id, revision AS sequence FROM webhook_deliveries;
CREATE VIEW delivery_attempts AS SELECT *, event_id AS notice_id FROM webhook_attempts;
