-- breaks earlier programs
-- Workers pass by the jobs of taxpayers that have their share without reading
-- them. What became of a number is no change of the document: its bytes need not
-- be compared.

DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (environment, run_at, document_id, taxpayer_id);

DROP TRIGGER issued_bytes_stay;
CREATE TRIGGER issued_bytes_stay BEFORE UPDATE OF environment, rnc, encf, taxpayer_id, document_id, security_code, signed_at, xml_sha256, sent_sha256, xml, summary ON issued
WHEN NEW.environment <> OLD.environment OR NEW.rnc <> OLD.rnc OR NEW.encf <> OLD.encf OR NEW.taxpayer_id <> OLD.taxpayer_id
	OR NEW.document_id <> OLD.document_id OR NEW.security_code <> OLD.security_code OR NEW.signed_at <> OLD.signed_at
	OR NEW.xml_sha256 <> OLD.xml_sha256 OR NEW.sent_sha256 <> OLD.sent_sha256 OR NEW.xml <> OLD.xml OR NEW.summary IS NOT OLD.summary
BEGIN SELECT RAISE(ABORT, 'a signed document never changes'); END;
