-- A number can be replaced before the authority had anything of its document: its range
-- had ended. The row stays, with what was signed, so that the number is never issued
-- again. It gets a document id that no document has, and former_document_id names the
-- document, which then takes another number. This happens to a row once at most.
ALTER TABLE issued ADD COLUMN former_document_id TEXT;
ALTER TABLE issued ADD COLUMN replaced_reason TEXT;
ALTER TABLE issued ADD COLUMN replaced_by TEXT;
ALTER TABLE issued ADD COLUMN replaced_at INTEGER;
CREATE INDEX issued_formerly ON issued (former_document_id) WHERE former_document_id IS NOT NULL;

DROP TRIGGER issued_bytes_stay;
CREATE TRIGGER issued_bytes_stay BEFORE UPDATE OF environment, rnc, encf, taxpayer_id, document_id, security_code, signed_at, xml_sha256, sent_sha256, xml, summary,
	former_document_id, replaced_reason, replaced_by, replaced_at ON issued
WHEN NEW.environment <> OLD.environment OR NEW.rnc <> OLD.rnc OR NEW.encf <> OLD.encf OR NEW.taxpayer_id <> OLD.taxpayer_id
	OR NEW.security_code <> OLD.security_code OR NEW.signed_at <> OLD.signed_at
	OR NEW.xml_sha256 <> OLD.xml_sha256 OR NEW.sent_sha256 <> OLD.sent_sha256 OR NEW.xml <> OLD.xml OR NEW.summary IS NOT OLD.summary
	OR (NEW.document_id <> OLD.document_id OR NEW.former_document_id IS NOT OLD.former_document_id OR NEW.replaced_reason IS NOT OLD.replaced_reason
		OR NEW.replaced_by IS NOT OLD.replaced_by OR NEW.replaced_at IS NOT OLD.replaced_at)
		AND (OLD.former_document_id IS NOT NULL OR NEW.former_document_id IS NOT OLD.document_id OR NEW.document_id = OLD.document_id)
BEGIN SELECT RAISE(ABORT, 'a signed document never changes'); END;
