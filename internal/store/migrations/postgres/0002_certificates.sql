-- breaks earlier programs
-- The certificates that taxpayers sign with. The private key is sealed; the
-- fingerprint, the SHA-256 of the certificate, makes importing one twice the
-- same as importing it once.

CREATE TABLE certificates (
	id             TEXT   COLLATE "C" NOT NULL,
	environment    TEXT   COLLATE "C" NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id    TEXT   COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	fingerprint    BYTEA  NOT NULL,
	certificate    BYTEA  NOT NULL,
	subject        TEXT   NOT NULL,
	serial         TEXT   COLLATE "C" NOT NULL,
	person         TEXT   COLLATE "C" NOT NULL,
	not_before     BIGINT NOT NULL,
	not_after      BIGINT NOT NULL,
	sealed         BYTEA  NOT NULL,
	sealed_version BIGINT NOT NULL,
	created_at     BIGINT NOT NULL,
	revoked_at     BIGINT,
	PRIMARY KEY (environment, taxpayer_id, id),
	UNIQUE (environment, taxpayer_id, fingerprint)
);
