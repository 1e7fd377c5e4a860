-- breaks earlier programs
-- The foundation: taxpayers, credentials, invoices with their fiscal document,
-- idempotent answers, history, jobs and the shared rows of the rate limiter.
-- Ordered text is COLLATE "C" because SQLite compares bytes; instants are
-- microseconds UTC; amounts are canonical decimal text, and
-- those that are only ever read together stand in one column, in the order
-- subtotal, discount_total, tax_total, total, paid, balance.

CREATE TABLE secrets (
	kind       TEXT   COLLATE "C" NOT NULL,
	version    BIGINT NOT NULL,
	sealed     BYTEA  NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (kind, version)
);

CREATE TABLE taxpayers (
	id                TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
	rnc               TEXT   COLLATE "C" NOT NULL,
	legal_name        TEXT   NOT NULL,
	trade_name        TEXT   NOT NULL,
	branch            TEXT   NOT NULL,
	address           TEXT   NOT NULL,
	municipality      TEXT   NOT NULL,
	province          TEXT   NOT NULL,
	phones            TEXT   NOT NULL,
	email             TEXT   NOT NULL,
	website           TEXT   NOT NULL,
	economic_activity TEXT   NOT NULL,
	income_type       TEXT   NOT NULL,
	electronic_since  TEXT   NOT NULL,
	logo              BYTEA,
	created_at        BIGINT NOT NULL,
	updated_at        BIGINT NOT NULL
);

CREATE TABLE credentials (
	id             TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
	prefix         TEXT   COLLATE "C" NOT NULL UNIQUE,
	environment    TEXT   COLLATE "C" NOT NULL CHECK (environment IN ('sandbox', 'certification', 'production')),
	taxpayer_id    TEXT   COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	digest         BYTEA  NOT NULL,
	pepper_version BIGINT NOT NULL,
	scopes         TEXT   NOT NULL,
	rate_limit     BIGINT,
	created_at     BIGINT NOT NULL,
	expires_at     BIGINT,
	revoked_at     BIGINT,
	last_used_at   BIGINT
);
CREATE INDEX credentials_of_taxpayer ON credentials (taxpayer_id, environment);

CREATE TABLE invoices (
	id             TEXT   COLLATE "C" NOT NULL,
	document_id    TEXT   COLLATE "C" NOT NULL UNIQUE,
	environment    TEXT   COLLATE "C" NOT NULL CHECK (environment IN ('sandbox', 'certification', 'production')),
	taxpayer_id    TEXT   COLLATE "C" NOT NULL,
	external_id    TEXT   COLLATE "C" NOT NULL,
	ecf_type       TEXT   COLLATE "C" NOT NULL,
	status         TEXT   COLLATE "C" NOT NULL CHECK (status IN ('queued', 'validation_failed', 'submitted', 'processing',
		'accepted', 'accepted_conditional', 'rejected', 'outcome_unknown', 'delivered')),
	sequence       BIGINT NOT NULL,
	currency       TEXT   NOT NULL,
	issue_date     TEXT   COLLATE "C" NOT NULL,
	amounts        TEXT   NOT NULL,
	document_total TEXT   NOT NULL,
	encf           TEXT   COLLATE "C",
	track_id       TEXT   COLLATE "C",
	messages       TEXT   NOT NULL,
	created_at     BIGINT NOT NULL,
	updated_at     BIGINT NOT NULL,
	request        BYTEA  NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id),
	UNIQUE (environment, taxpayer_id, external_id)
);
CREATE UNIQUE INDEX invoices_by_status ON invoices (environment, taxpayer_id, status, id);

CREATE TABLE idempotency (
	environment TEXT   COLLATE "C" NOT NULL,
	taxpayer_id TEXT   COLLATE "C" NOT NULL,
	operation   TEXT   COLLATE "C" NOT NULL,
	key         TEXT   COLLATE "C" NOT NULL,
	fingerprint BYTEA  NOT NULL,
	raw_digest  BYTEA  NOT NULL,
	object_id   TEXT   COLLATE "C" NOT NULL,
	http_status BIGINT NOT NULL,
	location    TEXT   NOT NULL,
	request_id  TEXT   COLLATE "C" NOT NULL,
	created_at  BIGINT NOT NULL,
	body        BYTEA  NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, operation, key)
);

CREATE TABLE history (
	invoice_id  TEXT   COLLATE "C" NOT NULL,
	id          TEXT   COLLATE "C" NOT NULL,
	environment TEXT   COLLATE "C" NOT NULL,
	taxpayer_id TEXT   COLLATE "C" NOT NULL,
	at          BIGINT NOT NULL,
	kind        TEXT   COLLATE "C" NOT NULL,
	status      TEXT   COLLATE "C" NOT NULL,
	request_id  TEXT   COLLATE "C" NOT NULL,
	detail      TEXT   NOT NULL,
	PRIMARY KEY (invoice_id, id)
);
CREATE INDEX history_by_request ON history (request_id) WHERE request_id <> '';

CREATE TABLE jobs (
	document_id TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
	environment TEXT   COLLATE "C" NOT NULL,
	taxpayer_id TEXT   COLLATE "C" NOT NULL,
	plan        TEXT   NOT NULL,
	stage       TEXT   NOT NULL,
	attempt     BIGINT NOT NULL,
	run_at      BIGINT NOT NULL,
	lease       TEXT   NOT NULL,
	lease_until BIGINT NOT NULL,
	last_error  TEXT   NOT NULL,
	created_at  BIGINT NOT NULL
);
CREATE INDEX jobs_due ON jobs (environment, run_at);

CREATE TABLE rate_windows (
	bucket     TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
	window_end BIGINT NOT NULL,
	granted    BIGINT NOT NULL
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER history_append_only BEFORE UPDATE OR DELETE ON history
	FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER idempotency_append_only BEFORE UPDATE OR DELETE ON idempotency
	FOR EACH ROW EXECUTE FUNCTION refuse_change();
