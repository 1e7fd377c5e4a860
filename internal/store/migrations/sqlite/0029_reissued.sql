-- The signed documents whose number was replaced before the authority had anything of
-- them: their range had ended. A row of issued moves here, never only away, and its number
-- is abandoned: it is never issued again. The document then takes another number.
CREATE TABLE reissued (
	environment    TEXT    NOT NULL,
	rnc            TEXT    NOT NULL,
	encf           TEXT    NOT NULL,
	taxpayer_id    TEXT    NOT NULL,
	document_id    TEXT    NOT NULL,
	sequence_id    TEXT    NOT NULL,
	certificate    TEXT    NOT NULL,
	security_code  TEXT    NOT NULL,
	buyer_rnc      TEXT    NOT NULL,
	signed_at      INTEGER NOT NULL,
	created_at     INTEGER NOT NULL,
	xml_sha256     BLOB    NOT NULL,
	sent_sha256    BLOB    NOT NULL,
	xml            BLOB    NOT NULL,
	summary        BLOB,
	reason         TEXT    NOT NULL,
	replaced_by    TEXT    NOT NULL,
	replaced_at    INTEGER NOT NULL,
	PRIMARY KEY (environment, rnc, encf)
) STRICT;
CREATE INDEX reissued_of_document ON reissued (document_id);

CREATE TRIGGER reissued_is_issued BEFORE INSERT ON reissued
WHEN NOT EXISTS (
	SELECT 1 FROM issued i WHERE i.environment = NEW.environment AND i.rnc = NEW.rnc AND i.encf = NEW.encf
		AND i.taxpayer_id = NEW.taxpayer_id AND i.document_id = NEW.document_id AND i.security_code = NEW.security_code
		AND i.signed_at = NEW.signed_at AND i.xml_sha256 = NEW.xml_sha256 AND i.sent_sha256 = NEW.sent_sha256
		AND i.xml = NEW.xml AND i.summary IS NEW.summary)
BEGIN SELECT RAISE(ABORT, 'only a signed document is replaced'); END;
CREATE TRIGGER reissued_leaves_issued AFTER INSERT ON reissued
BEGIN DELETE FROM issued WHERE environment = NEW.environment AND rnc = NEW.rnc AND encf = NEW.encf; END;
CREATE TRIGGER reissued_no_update BEFORE UPDATE ON reissued BEGIN SELECT RAISE(ABORT, 'reissued is append-only'); END;
CREATE TRIGGER reissued_no_delete BEFORE DELETE ON reissued BEGIN SELECT RAISE(ABORT, 'reissued is append-only'); END;

DROP TRIGGER issued_no_delete;
CREATE TRIGGER issued_no_delete BEFORE DELETE ON issued
WHEN NOT EXISTS (SELECT 1 FROM reissued r WHERE r.environment = OLD.environment AND r.rnc = OLD.rnc AND r.encf = OLD.encf)
BEGIN SELECT RAISE(ABORT, 'a number is never given back'); END;
CREATE TRIGGER issued_not_again BEFORE INSERT ON issued
WHEN EXISTS (SELECT 1 FROM reissued r WHERE r.environment = NEW.environment AND r.rnc = NEW.rnc AND r.encf = NEW.encf)
BEGIN SELECT RAISE(ABORT, 'a replaced number is never issued again'); END;
