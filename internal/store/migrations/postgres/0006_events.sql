-- breaks earlier programs
-- What integrators are told, whom to tell, and what came of telling them; who
-- may tell us; and what was told or used already.
-- A notice is written with the change that it tells of, and has no place in the
-- feed yet: the number is given once, to what is committed, by whoever reads the
-- feed first. Deleted endpoints stay as rows without secrets, because the log
-- refers to them. The kinds of an endpoint have a comma on both ends, so that
-- one of them is found by its text.

CREATE TABLE notices (
	id          TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	number      BIGINT,
	kind        TEXT COLLATE "C" NOT NULL,
	document_id TEXT COLLATE "C" NOT NULL,
	sequence    BIGINT NOT NULL,
	at          BIGINT NOT NULL,
	body        BYTEA NOT NULL,
	UNIQUE (environment, taxpayer_id, number)
);
CREATE INDEX notices_without_number ON notices (environment, taxpayer_id, at, id) WHERE number IS NULL;
CREATE INDEX notices_by_time ON notices (environment, taxpayer_id, at);
ALTER TABLE notices ADD PRIMARY KEY (environment, taxpayer_id, id); -- made last, it is taken first

CREATE TABLE feeds (
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	last_number BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id)
);

CREATE TABLE endpoints (
	id              TEXT COLLATE "C" NOT NULL UNIQUE,
	environment     TEXT COLLATE "C" NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id     TEXT COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	url             TEXT COLLATE "C" NOT NULL,
	kinds           TEXT COLLATE "C" NOT NULL,
	description     TEXT COLLATE "C" NOT NULL,
	status          TEXT COLLATE "C" NOT NULL CHECK (status IN ('enabled', 'disabled', 'deleted')),
	disabled_reason TEXT COLLATE "C" NOT NULL,
	missed_since    BIGINT,
	secret          BYTEA,
	secret_version  BIGINT NOT NULL,
	old_secret      BYTEA,
	old_version     BIGINT NOT NULL,
	old_until       BIGINT,
	failures        BIGINT NOT NULL,
	failing_since   BIGINT,
	last_failure_at BIGINT,
	rest_until      BIGINT NOT NULL,
	concurrency     BIGINT NOT NULL CHECK (concurrency BETWEEN 1 AND 4),
	created_at      BIGINT NOT NULL,
	updated_at      BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
);

CREATE TABLE deliveries (
	endpoint_id TEXT COLLATE "C" NOT NULL,
	notice_id   TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	document_id TEXT COLLATE "C" NOT NULL,
	sequence    BIGINT NOT NULL,
	state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
	attempt     BIGINT NOT NULL,
	run_at      BIGINT NOT NULL,
	lease       TEXT COLLATE "C" NOT NULL,
	lease_until BIGINT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (endpoint_id, notice_id)
);
CREATE INDEX deliveries_due ON deliveries (endpoint_id, run_at, sequence, notice_id) WHERE state = 'pending';
CREATE INDEX deliveries_of_document ON deliveries (document_id, endpoint_id) WHERE state = 'pending';
CREATE INDEX deliveries_held ON deliveries (endpoint_id, lease_until) WHERE lease <> '';
CREATE INDEX deliveries_failed ON deliveries (endpoint_id) WHERE state = 'failed';

CREATE TABLE delivery_attempts (
	id          TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	endpoint_id TEXT COLLATE "C" NOT NULL,
	notice_id   TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	number      BIGINT NOT NULL,
	at          BIGINT NOT NULL,
	took_us     BIGINT NOT NULL,
	http_status BIGINT NOT NULL,
	error       TEXT COLLATE "C" NOT NULL,
	answer      BYTEA NOT NULL,
	next_at     BIGINT,
	PRIMARY KEY (environment, taxpayer_id, endpoint_id, id)
);

CREATE TABLE sealed_answers (
	environment    TEXT COLLATE "C" NOT NULL,
	taxpayer_id    TEXT COLLATE "C" NOT NULL,
	operation      TEXT COLLATE "C" NOT NULL,
	key            TEXT COLLATE "C" NOT NULL,
	sealed         BYTEA NOT NULL,
	sealed_version BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, operation, key)
);

CREATE TABLE sources (
	id             TEXT COLLATE "C" NOT NULL UNIQUE,
	environment    TEXT COLLATE "C" NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id    TEXT COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	kinds          TEXT COLLATE "C" NOT NULL,
	secret         BYTEA NOT NULL,
	secret_version BIGINT NOT NULL,
	old_secret     BYTEA,
	old_version    BIGINT NOT NULL,
	old_until      BIGINT,
	created_at     BIGINT NOT NULL,
	revoked_at     BIGINT,
	PRIMARY KEY (environment, taxpayer_id, id)
);

CREATE TABLE inbound (
	source_id   TEXT COLLATE "C" NOT NULL,
	message_id  TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	at          BIGINT NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	outcome     TEXT COLLATE "C" NOT NULL,
	document_id TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (source_id, message_id)
);

CREATE TABLE parked (
	id          TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	source_id   TEXT COLLATE "C" NOT NULL,
	message_id  TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL,
	encf        TEXT COLLATE "C" NOT NULL,
	body        BYTEA NOT NULL,
	at          BIGINT NOT NULL,
	expires_at  BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
);
CREATE INDEX parked_of_number ON parked (environment, taxpayer_id, encf);
CREATE INDEX parked_by_expiry ON parked (expires_at);

CREATE TABLE used_seeds (
	digest     BYTEA NOT NULL PRIMARY KEY,
	expires_at BIGINT NOT NULL
);
CREATE INDEX used_seeds_by_expiry ON used_seeds (expires_at);

CREATE TABLE notified (
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	subject     TEXT COLLATE "C" NOT NULL,
	mark        TEXT COLLATE "C" NOT NULL,
	at          BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, subject, mark)
);

CREATE FUNCTION refuse_other_notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.number IS NOT NULL OR NEW.number IS NULL
		OR (NEW.id, NEW.environment, NEW.taxpayer_id, NEW.kind, NEW.document_id, NEW.sequence, NEW.at, NEW.body)
		IS DISTINCT FROM (OLD.id, OLD.environment, OLD.taxpayer_id, OLD.kind, OLD.document_id, OLD.sequence, OLD.at, OLD.body) THEN
		RAISE EXCEPTION 'a notice never changes, and has its number once';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER notices_stay BEFORE UPDATE ON notices FOR EACH ROW EXECUTE FUNCTION refuse_other_notice();
CREATE TRIGGER notices_no_delete BEFORE DELETE ON notices FOR EACH ROW EXECUTE FUNCTION refuse_change();
