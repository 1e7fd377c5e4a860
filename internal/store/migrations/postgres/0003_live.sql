-- breaks earlier programs
-- What the live environments need: authorised ranges of numbers, the ledger of
-- numbers with the signed documents, what was sent and what was learnt of it,
-- and the printed pages. Signed bytes and evidence are only ever added.

CREATE TABLE sequences (
	id           TEXT COLLATE "C" NOT NULL,
	environment  TEXT COLLATE "C" NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id  TEXT COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	ecf_type     TEXT COLLATE "C" NOT NULL CHECK (ecf_type IN ('31', '32')),
	first_number BIGINT NOT NULL CHECK (first_number >= 1),
	last_number  BIGINT NOT NULL CHECK (last_number >= first_number),
	next_number  BIGINT NOT NULL CHECK (next_number >= first_number AND next_number <= last_number + 1),
	expires      TEXT COLLATE "C" NOT NULL,
	fenced_at    BIGINT,
	created_at   BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
);

CREATE TABLE issued (
	environment    TEXT COLLATE "C" NOT NULL,
	rnc            TEXT COLLATE "C" NOT NULL,
	encf           TEXT COLLATE "C" NOT NULL,
	taxpayer_id    TEXT COLLATE "C" NOT NULL,
	document_id    TEXT COLLATE "C" NOT NULL UNIQUE,
	sequence_id    TEXT COLLATE "C" NOT NULL,
	certificate    TEXT COLLATE "C" NOT NULL,
	number_state   TEXT COLLATE "C" NOT NULL CHECK (number_state IN ('issued', 'used', 'reusable')),
	security_code  TEXT COLLATE "C" NOT NULL,
	buyer_rnc      TEXT COLLATE "C" NOT NULL,
	signed_at      BIGINT NOT NULL,
	created_at     BIGINT NOT NULL,
	xml_sha256     BYTEA    NOT NULL,
	sent_sha256    BYTEA    NOT NULL,
	xml            BYTEA    NOT NULL,
	summary        BYTEA,
	PRIMARY KEY (environment, rnc, encf)
);

CREATE TABLE attempts (
	document_id TEXT COLLATE "C" NOT NULL,
	number      BIGINT NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL CHECK (kind IN ('submit', 'deliver')),
	sha256      BYTEA    NOT NULL,
	opened_at   BIGINT NOT NULL,
	closed_at   BIGINT,
	class       TEXT COLLATE "C" NOT NULL CHECK (class IN ('', 'not_received', 'conclusive', 'inconclusive')),
	detail      TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (document_id, number)
);

CREATE TABLE evidence (
	document_id TEXT COLLATE "C" NOT NULL,
	id          TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	at          BIGINT NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	track_id    TEXT COLLATE "C" NOT NULL,
	verdict     BIGINT NOT NULL,
	body        TEXT COLLATE "C" NOT NULL,
	digest      BYTEA    NOT NULL,
	raw         BYTEA,
	PRIMARY KEY (document_id, id),
	UNIQUE (document_id, digest)
);

CREATE TABLE pages (
	document_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	sha256      BYTEA    NOT NULL,
	pdf         BYTEA    NOT NULL,
	created_at  BIGINT NOT NULL
);

CREATE FUNCTION refuse_other_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (NEW.environment, NEW.rnc, NEW.encf, NEW.taxpayer_id, NEW.document_id, NEW.security_code, NEW.signed_at,
		NEW.xml_sha256, NEW.sent_sha256, NEW.xml, NEW.summary)
		IS DISTINCT FROM (OLD.environment, OLD.rnc, OLD.encf, OLD.taxpayer_id, OLD.document_id, OLD.security_code, OLD.signed_at,
		OLD.xml_sha256, OLD.sent_sha256, OLD.xml, OLD.summary) THEN
		RAISE EXCEPTION 'a signed document never changes';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER issued_bytes_stay BEFORE UPDATE ON issued FOR EACH ROW EXECUTE FUNCTION refuse_other_bytes();
CREATE TRIGGER issued_no_delete BEFORE DELETE ON issued FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER evidence_append_only BEFORE UPDATE OR DELETE ON evidence FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER attempts_no_delete BEFORE DELETE ON attempts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER pages_append_only BEFORE UPDATE OR DELETE ON pages FOR EACH ROW EXECUTE FUNCTION refuse_change();
