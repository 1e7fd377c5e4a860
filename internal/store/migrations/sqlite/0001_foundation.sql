-- breaks earlier programs
-- The foundation: taxpayers, credentials, invoices with their fiscal document,
-- idempotent answers, history, jobs and the shared rows of the rate limiter.
-- Instants are microseconds UTC; amounts are canonical decimal text, and
-- those that are only ever read together stand in one column, in the order
-- subtotal, discount_total, tax_total, total, paid, balance. The history is
-- read by its key alone and has no hidden row number.

CREATE TABLE secrets (
	kind       TEXT    NOT NULL,
	version    INTEGER NOT NULL,
	sealed     BLOB    NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (kind, version)
) STRICT;

CREATE TABLE taxpayers (
	id                TEXT    NOT NULL PRIMARY KEY,
	rnc               TEXT    NOT NULL,
	legal_name        TEXT    NOT NULL,
	trade_name        TEXT    NOT NULL,
	branch            TEXT    NOT NULL,
	address           TEXT    NOT NULL,
	municipality      TEXT    NOT NULL,
	province          TEXT    NOT NULL,
	phones            TEXT    NOT NULL,
	email             TEXT    NOT NULL,
	website           TEXT    NOT NULL,
	economic_activity TEXT    NOT NULL,
	income_type       TEXT    NOT NULL,
	electronic_since  TEXT    NOT NULL,
	logo              BLOB,
	created_at        INTEGER NOT NULL,
	updated_at        INTEGER NOT NULL
) STRICT;

CREATE TABLE credentials (
	id             TEXT    NOT NULL PRIMARY KEY,
	prefix         TEXT    NOT NULL UNIQUE,
	environment    TEXT    NOT NULL CHECK (environment IN ('sandbox', 'certification', 'production')),
	taxpayer_id    TEXT    NOT NULL REFERENCES taxpayers (id),
	digest         BLOB    NOT NULL,
	pepper_version INTEGER NOT NULL,
	scopes         TEXT    NOT NULL,
	rate_limit     INTEGER,
	created_at     INTEGER NOT NULL,
	expires_at     INTEGER,
	revoked_at     INTEGER,
	last_used_at   INTEGER
) STRICT;
CREATE INDEX credentials_of_taxpayer ON credentials (taxpayer_id, environment);

CREATE TABLE invoices (
	id             TEXT    NOT NULL,
	document_id    TEXT    NOT NULL UNIQUE,
	environment    TEXT    NOT NULL CHECK (environment IN ('sandbox', 'certification', 'production')),
	taxpayer_id    TEXT    NOT NULL,
	external_id    TEXT    NOT NULL,
	ecf_type       TEXT    NOT NULL,
	status         TEXT    NOT NULL CHECK (status IN ('queued', 'validation_failed', 'submitted', 'processing',
		'accepted', 'accepted_conditional', 'rejected', 'outcome_unknown', 'delivered')),
	sequence       INTEGER NOT NULL,
	currency       TEXT    NOT NULL,
	issue_date     TEXT    NOT NULL,
	amounts        TEXT    NOT NULL,
	document_total TEXT    NOT NULL,
	encf           TEXT,
	track_id       TEXT,
	messages       TEXT    NOT NULL,
	created_at     INTEGER NOT NULL,
	updated_at     INTEGER NOT NULL,
	request        BLOB    NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id),
	UNIQUE (environment, taxpayer_id, external_id)
) STRICT;
CREATE UNIQUE INDEX invoices_by_status ON invoices (environment, taxpayer_id, status, id);

CREATE TABLE idempotency (
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	operation   TEXT    NOT NULL,
	key         TEXT    NOT NULL,
	fingerprint BLOB    NOT NULL,
	raw_digest  BLOB    NOT NULL,
	object_id   TEXT    NOT NULL,
	http_status INTEGER NOT NULL,
	location    TEXT    NOT NULL,
	request_id  TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	body        BLOB    NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, operation, key)
) STRICT;

CREATE TABLE history (
	invoice_id  TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	kind        TEXT    NOT NULL,
	status      TEXT    NOT NULL,
	request_id  TEXT    NOT NULL,
	detail      TEXT    NOT NULL,
	PRIMARY KEY (invoice_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX history_by_request ON history (request_id) WHERE request_id <> '';

CREATE TABLE jobs (
	document_id TEXT    NOT NULL PRIMARY KEY,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	plan        TEXT    NOT NULL,
	stage       TEXT    NOT NULL,
	attempt     INTEGER NOT NULL,
	run_at      INTEGER NOT NULL,
	lease       TEXT    NOT NULL,
	lease_until INTEGER NOT NULL,
	last_error  TEXT    NOT NULL,
	created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_due ON jobs (environment, run_at);

CREATE TABLE rate_windows (
	bucket     TEXT    NOT NULL PRIMARY KEY,
	window_end INTEGER NOT NULL,
	granted    INTEGER NOT NULL
) STRICT;

CREATE TRIGGER history_no_update BEFORE UPDATE ON history BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER history_no_delete BEFORE DELETE ON history BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER idempotency_no_update BEFORE UPDATE ON idempotency BEGIN SELECT RAISE(ABORT, 'idempotency is append-only'); END;
CREATE TRIGGER idempotency_no_delete BEFORE DELETE ON idempotency BEGIN SELECT RAISE(ABORT, 'idempotency is append-only'); END;
