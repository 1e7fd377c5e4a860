-- A number can be replaced before the authority had anything of its document: its range
-- had ended. The row stays, with what was signed, so that the number is never issued
-- again. It gets a document id that no document has, and former_document_id names the
-- document, which then takes another number. This happens to a row once at most.
ALTER TABLE issued
	ADD COLUMN former_document_id TEXT COLLATE "C",
	ADD COLUMN replaced_reason TEXT COLLATE "C",
	ADD COLUMN replaced_by TEXT COLLATE "C",
	ADD COLUMN replaced_at BIGINT;
CREATE INDEX issued_formerly ON issued (former_document_id) WHERE former_document_id IS NOT NULL;

CREATE OR REPLACE FUNCTION refuse_other_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (NEW.environment, NEW.rnc, NEW.encf, NEW.taxpayer_id, NEW.security_code, NEW.signed_at,
		NEW.xml_sha256, NEW.sent_sha256, NEW.xml, NEW.summary)
		IS DISTINCT FROM (OLD.environment, OLD.rnc, OLD.encf, OLD.taxpayer_id, OLD.security_code, OLD.signed_at,
		OLD.xml_sha256, OLD.sent_sha256, OLD.xml, OLD.summary)
		OR (NEW.document_id, NEW.former_document_id, NEW.replaced_reason, NEW.replaced_by, NEW.replaced_at)
		IS DISTINCT FROM (OLD.document_id, OLD.former_document_id, OLD.replaced_reason, OLD.replaced_by, OLD.replaced_at)
		AND (OLD.former_document_id IS NOT NULL OR NEW.former_document_id IS DISTINCT FROM OLD.document_id OR NEW.document_id = OLD.document_id) THEN
		RAISE EXCEPTION 'a signed document never changes';
	END IF;
	RETURN NEW;
END $$;
DROP TRIGGER issued_bytes_stay ON issued;
CREATE TRIGGER issued_bytes_stay BEFORE UPDATE OF environment, rnc, encf, taxpayer_id, document_id, security_code, signed_at, xml_sha256, sent_sha256, xml, summary,
	former_document_id, replaced_reason, replaced_by, replaced_at ON issued
	FOR EACH ROW EXECUTE FUNCTION refuse_other_bytes();
