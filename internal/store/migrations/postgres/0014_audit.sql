-- What operators and the service's own guards changed. Each row has the hash of itself
-- and of all rows before it, so that a later change of a row can be seen. audit_head
-- has one row: the number and the hash of the newest entry. Its lock orders the entries.
CREATE TABLE audit_entries (
	seq         BIGINT NOT NULL PRIMARY KEY,
	at          BIGINT NOT NULL,
	actor       TEXT COLLATE "C" NOT NULL,
	origin      TEXT COLLATE "C" NOT NULL,
	request_id  TEXT COLLATE "C" NOT NULL,
	reason      TEXT COLLATE "C" NOT NULL,
	action      TEXT COLLATE "C" NOT NULL,
	object      TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	before      TEXT COLLATE "C" NOT NULL,
	after       TEXT COLLATE "C" NOT NULL,
	hash        BYTEA NOT NULL
);
CREATE INDEX audit_entries_by_time ON audit_entries (at, seq);
CREATE INDEX audit_entries_by_object ON audit_entries (object, seq);
CREATE INDEX audit_entries_by_actor ON audit_entries (actor, seq);
CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE ON audit_entries
	FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE audit_head (
	id   BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
	seq  BIGINT NOT NULL,
	hash BYTEA NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

-- Signed statements of the head, so that a chain that was computed again can be seen.
CREATE TABLE audit_checkpoints (
	seq       BIGINT NOT NULL PRIMARY KEY,
	hash      BYTEA NOT NULL,
	at        TEXT COLLATE "C" NOT NULL,
	signature BYTEA NOT NULL
);
CREATE TRIGGER audit_checkpoints_append_only BEFORE UPDATE OR DELETE ON audit_checkpoints
	FOR EACH ROW EXECUTE FUNCTION refuse_change();
