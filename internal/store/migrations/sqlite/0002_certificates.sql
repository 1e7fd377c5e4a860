-- breaks earlier programs
-- The certificates that taxpayers sign with. The private key is sealed; the
-- fingerprint, the SHA-256 of the certificate, makes importing one twice the
-- same as importing it once.

CREATE TABLE certificates (
	id             TEXT    NOT NULL,
	environment    TEXT    NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id    TEXT    NOT NULL REFERENCES taxpayers (id),
	fingerprint    BLOB    NOT NULL,
	certificate    BLOB    NOT NULL,
	subject        TEXT    NOT NULL,
	serial         TEXT    NOT NULL,
	person         TEXT    NOT NULL,
	not_before     INTEGER NOT NULL,
	not_after      INTEGER NOT NULL,
	sealed         BLOB    NOT NULL,
	sealed_version INTEGER NOT NULL,
	created_at     INTEGER NOT NULL,
	revoked_at     INTEGER,
	PRIMARY KEY (environment, taxpayer_id, id),
	UNIQUE (environment, taxpayer_id, fingerprint)
) STRICT;
