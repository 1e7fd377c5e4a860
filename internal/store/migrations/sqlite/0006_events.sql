-- breaks earlier programs
-- What integrators are told, whom to tell, and what came of telling them; who
-- may tell us; and what was told or used already.
-- A notice is written with the change that it tells of, and has no place in the
-- feed yet: the number is given once, to what is committed, by whoever reads the
-- feed first. Deleted endpoints stay as rows without secrets, because the log
-- refers to them. The kinds of an endpoint have a comma on both ends, so that
-- one of them is found by its text.

CREATE TABLE notices (
	id          TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	number      INTEGER,
	kind        TEXT    NOT NULL,
	document_id TEXT    NOT NULL,
	sequence    INTEGER NOT NULL,
	at          INTEGER NOT NULL,
	body        BLOB    NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id),
	UNIQUE (environment, taxpayer_id, number)
) STRICT;
CREATE INDEX notices_without_number ON notices (environment, taxpayer_id, at, id) WHERE number IS NULL;
CREATE INDEX notices_by_time ON notices (environment, taxpayer_id, at);

CREATE TABLE feeds (
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	last_number INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id)
) STRICT;

CREATE TABLE endpoints (
	id              TEXT    NOT NULL UNIQUE,
	environment     TEXT    NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id     TEXT    NOT NULL REFERENCES taxpayers (id),
	url             TEXT    NOT NULL,
	kinds           TEXT    NOT NULL,
	description     TEXT    NOT NULL,
	status          TEXT    NOT NULL CHECK (status IN ('enabled', 'disabled', 'deleted')),
	disabled_reason TEXT    NOT NULL,
	missed_since    INTEGER,
	secret          BLOB,
	secret_version  INTEGER NOT NULL,
	old_secret      BLOB,
	old_version     INTEGER NOT NULL,
	old_until       INTEGER,
	failures        INTEGER NOT NULL,
	failing_since   INTEGER,
	last_failure_at INTEGER,
	rest_until      INTEGER NOT NULL,
	concurrency     INTEGER NOT NULL CHECK (concurrency BETWEEN 1 AND 4),
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;

CREATE TABLE deliveries (
	endpoint_id TEXT    NOT NULL,
	notice_id   TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	kind        TEXT    NOT NULL,
	document_id TEXT    NOT NULL,
	sequence    INTEGER NOT NULL,
	state       TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
	attempt     INTEGER NOT NULL,
	run_at      INTEGER NOT NULL,
	lease       TEXT    NOT NULL,
	lease_until INTEGER NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (endpoint_id, notice_id)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (endpoint_id, run_at, sequence, notice_id) WHERE state = 'pending';
CREATE INDEX deliveries_of_document ON deliveries (document_id, endpoint_id) WHERE state = 'pending';
CREATE INDEX deliveries_held ON deliveries (endpoint_id, lease_until) WHERE lease <> '';
CREATE INDEX deliveries_failed ON deliveries (endpoint_id) WHERE state = 'failed';

CREATE TABLE delivery_attempts (
	id          TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	endpoint_id TEXT    NOT NULL,
	notice_id   TEXT    NOT NULL,
	kind        TEXT    NOT NULL,
	number      INTEGER NOT NULL,
	at          INTEGER NOT NULL,
	took_us     INTEGER NOT NULL,
	http_status INTEGER NOT NULL,
	error       TEXT    NOT NULL,
	answer      BLOB    NOT NULL,
	next_at     INTEGER,
	PRIMARY KEY (environment, taxpayer_id, endpoint_id, id)
) STRICT;

CREATE TABLE sealed_answers (
	environment    TEXT    NOT NULL,
	taxpayer_id    TEXT    NOT NULL,
	operation      TEXT    NOT NULL,
	key            TEXT    NOT NULL,
	sealed         BLOB    NOT NULL,
	sealed_version INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, operation, key)
) STRICT;

CREATE TABLE sources (
	id             TEXT    NOT NULL UNIQUE,
	environment    TEXT    NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id    TEXT    NOT NULL REFERENCES taxpayers (id),
	kinds          TEXT    NOT NULL,
	secret         BLOB    NOT NULL,
	secret_version INTEGER NOT NULL,
	old_secret     BLOB,
	old_version    INTEGER NOT NULL,
	old_until      INTEGER,
	created_at     INTEGER NOT NULL,
	revoked_at     INTEGER,
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;

CREATE TABLE inbound (
	source_id   TEXT    NOT NULL,
	message_id  TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	kind        TEXT    NOT NULL,
	outcome     TEXT    NOT NULL,
	document_id TEXT    NOT NULL,
	PRIMARY KEY (source_id, message_id)
) STRICT;

CREATE TABLE parked (
	id          TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	source_id   TEXT    NOT NULL,
	message_id  TEXT    NOT NULL,
	kind        TEXT    NOT NULL,
	encf        TEXT    NOT NULL,
	body        BLOB    NOT NULL,
	at          INTEGER NOT NULL,
	expires_at  INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;
CREATE INDEX parked_of_number ON parked (environment, taxpayer_id, encf);
CREATE INDEX parked_by_expiry ON parked (expires_at);

CREATE TABLE used_seeds (
	digest     BLOB    NOT NULL PRIMARY KEY,
	expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX used_seeds_by_expiry ON used_seeds (expires_at);

CREATE TABLE notified (
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	subject     TEXT    NOT NULL,
	mark        TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, subject, mark)
) STRICT;

CREATE TRIGGER notices_stay BEFORE UPDATE ON notices
WHEN OLD.number IS NOT NULL OR NEW.number IS NULL OR NEW.id <> OLD.id OR NEW.environment <> OLD.environment
	OR NEW.taxpayer_id <> OLD.taxpayer_id OR NEW.kind <> OLD.kind OR NEW.document_id <> OLD.document_id
	OR NEW.sequence <> OLD.sequence OR NEW.at <> OLD.at OR NEW.body <> OLD.body
BEGIN SELECT RAISE(ABORT, 'a notice never changes, and has its number once'); END;
CREATE TRIGGER notices_no_delete BEFORE DELETE ON notices BEGIN SELECT RAISE(ABORT, 'notices is append-only'); END;
