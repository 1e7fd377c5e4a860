-- breaks earlier programs
-- What the live environments need: authorised ranges of numbers, the ledger of
-- numbers with the signed documents, what was sent and what was learnt of it,
-- and the printed pages. Signed bytes and evidence are only ever added.

CREATE TABLE sequences (
	id           TEXT    NOT NULL,
	environment  TEXT    NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id  TEXT    NOT NULL REFERENCES taxpayers (id),
	ecf_type     TEXT    NOT NULL CHECK (ecf_type IN ('31', '32')),
	first_number INTEGER NOT NULL CHECK (first_number >= 1),
	last_number  INTEGER NOT NULL CHECK (last_number >= first_number),
	next_number  INTEGER NOT NULL CHECK (next_number >= first_number AND next_number <= last_number + 1),
	expires      TEXT    NOT NULL,
	fenced_at    INTEGER,
	created_at   INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;

CREATE TABLE issued (
	environment    TEXT    NOT NULL,
	rnc            TEXT    NOT NULL,
	encf           TEXT    NOT NULL,
	taxpayer_id    TEXT    NOT NULL,
	document_id    TEXT    NOT NULL UNIQUE,
	sequence_id    TEXT    NOT NULL,
	certificate    TEXT    NOT NULL,
	number_state   TEXT    NOT NULL CHECK (number_state IN ('issued', 'used', 'reusable')),
	security_code  TEXT    NOT NULL,
	buyer_rnc      TEXT    NOT NULL,
	signed_at      INTEGER NOT NULL,
	created_at     INTEGER NOT NULL,
	xml_sha256     BLOB    NOT NULL,
	sent_sha256    BLOB    NOT NULL,
	xml            BLOB    NOT NULL,
	summary        BLOB,
	PRIMARY KEY (environment, rnc, encf)
) STRICT;

CREATE TABLE attempts (
	document_id TEXT    NOT NULL,
	number      INTEGER NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	kind        TEXT    NOT NULL CHECK (kind IN ('submit', 'deliver')),
	sha256      BLOB    NOT NULL,
	opened_at   INTEGER NOT NULL,
	closed_at   INTEGER,
	class       TEXT    NOT NULL CHECK (class IN ('', 'not_received', 'conclusive', 'inconclusive')),
	detail      TEXT    NOT NULL,
	PRIMARY KEY (document_id, number)
) STRICT;

CREATE TABLE evidence (
	document_id TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	kind        TEXT    NOT NULL,
	track_id    TEXT    NOT NULL,
	verdict     INTEGER NOT NULL,
	body        TEXT    NOT NULL,
	digest      BLOB    NOT NULL,
	raw         BLOB,
	PRIMARY KEY (document_id, id),
	UNIQUE (document_id, digest)
) STRICT;

CREATE TABLE pages (
	document_id TEXT    NOT NULL PRIMARY KEY,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	sha256      BLOB    NOT NULL,
	pdf         BLOB    NOT NULL,
	created_at  INTEGER NOT NULL
) STRICT;

CREATE TRIGGER issued_bytes_stay BEFORE UPDATE ON issued
WHEN NEW.environment <> OLD.environment OR NEW.rnc <> OLD.rnc OR NEW.encf <> OLD.encf OR NEW.taxpayer_id <> OLD.taxpayer_id
	OR NEW.document_id <> OLD.document_id OR NEW.security_code <> OLD.security_code OR NEW.signed_at <> OLD.signed_at
	OR NEW.xml_sha256 <> OLD.xml_sha256 OR NEW.sent_sha256 <> OLD.sent_sha256 OR NEW.xml <> OLD.xml OR NEW.summary IS NOT OLD.summary
BEGIN SELECT RAISE(ABORT, 'a signed document never changes'); END;
CREATE TRIGGER issued_no_delete BEFORE DELETE ON issued BEGIN SELECT RAISE(ABORT, 'a number is never given back'); END;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER attempts_no_delete BEFORE DELETE ON attempts BEGIN SELECT RAISE(ABORT, 'attempts are append-only'); END;
CREATE TRIGGER pages_no_update BEFORE UPDATE ON pages BEGIN SELECT RAISE(ABORT, 'a printed page never changes'); END;
CREATE TRIGGER pages_no_delete BEFORE DELETE ON pages BEGIN SELECT RAISE(ABORT, 'a printed page never changes'); END;
