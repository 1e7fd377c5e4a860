-- The signed documents whose number was replaced before the authority had anything of
-- them: their range had ended. A row of issued moves here, never only away, and its number
-- is abandoned: it is never issued again. The document then takes another number.
CREATE TABLE reissued (
	environment    TEXT COLLATE "C" NOT NULL,
	rnc            TEXT COLLATE "C" NOT NULL,
	encf           TEXT COLLATE "C" NOT NULL,
	taxpayer_id    TEXT COLLATE "C" NOT NULL,
	document_id    TEXT COLLATE "C" NOT NULL,
	sequence_id    TEXT COLLATE "C" NOT NULL,
	certificate    TEXT COLLATE "C" NOT NULL,
	security_code  TEXT COLLATE "C" NOT NULL,
	buyer_rnc      TEXT COLLATE "C" NOT NULL,
	signed_at      BIGINT NOT NULL,
	created_at     BIGINT NOT NULL,
	xml_sha256     BYTEA NOT NULL,
	sent_sha256    BYTEA NOT NULL,
	xml            BYTEA NOT NULL,
	summary        BYTEA,
	reason         TEXT COLLATE "C" NOT NULL,
	replaced_by    TEXT COLLATE "C" NOT NULL,
	replaced_at    BIGINT NOT NULL,
	PRIMARY KEY (environment, rnc, encf)
);
CREATE INDEX reissued_of_document ON reissued (document_id);

-- The service may not delete rows of issued. This function may, with the rights of the
-- owner of the table, and only a row that has just been added here as it is there.
CREATE FUNCTION move_reissued() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	DELETE FROM issued i
	WHERE i.environment = NEW.environment AND i.rnc = NEW.rnc AND i.encf = NEW.encf
		AND i.taxpayer_id = NEW.taxpayer_id AND i.document_id = NEW.document_id AND i.security_code = NEW.security_code
		AND i.signed_at = NEW.signed_at AND i.xml_sha256 = NEW.xml_sha256 AND i.sent_sha256 = NEW.sent_sha256
		AND i.xml = NEW.xml AND i.summary IS NOT DISTINCT FROM NEW.summary;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'only a signed document is replaced';
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER reissued_leaves_issued AFTER INSERT ON reissued FOR EACH ROW EXECUTE FUNCTION move_reissued();
CREATE TRIGGER reissued_append_only BEFORE UPDATE OR DELETE ON reissued FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Only a trigger deletes a row of issued.
DROP TRIGGER issued_no_delete ON issued;
CREATE TRIGGER issued_no_delete BEFORE DELETE ON issued
	FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_reissued() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM reissued r WHERE r.environment = NEW.environment AND r.rnc = NEW.rnc AND r.encf = NEW.encf) THEN
		RAISE EXCEPTION 'a replaced number is never issued again';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER issued_not_again BEFORE INSERT ON issued FOR EACH ROW EXECUTE FUNCTION refuse_reissued();
