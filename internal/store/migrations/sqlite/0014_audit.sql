-- What operators and the service's own guards changed. Each row has the hash of itself
-- and of all rows before it, so that a later change of a row can be seen. audit_head
-- has one row: the number and the hash of the newest entry.
CREATE TABLE audit_entries (
	seq         INTEGER NOT NULL PRIMARY KEY,
	at          INTEGER NOT NULL,
	actor       TEXT    NOT NULL,
	origin      TEXT    NOT NULL,
	request_id  TEXT    NOT NULL,
	reason      TEXT    NOT NULL,
	action      TEXT    NOT NULL,
	object      TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	before      TEXT    NOT NULL,
	after       TEXT    NOT NULL,
	hash        BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_entries_by_time ON audit_entries (at, seq);
CREATE INDEX audit_entries_by_object ON audit_entries (object, seq);
CREATE INDEX audit_entries_by_actor ON audit_entries (actor, seq);
CREATE TRIGGER audit_entries_no_update BEFORE UPDATE ON audit_entries BEGIN SELECT RAISE(ABORT, 'audit_entries is append-only'); END;
CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries BEGIN SELECT RAISE(ABORT, 'audit_entries is append-only'); END;

CREATE TABLE audit_head (
	id   INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
	seq  INTEGER NOT NULL,
	hash BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, zeroblob(32));

-- Signed statements of the head, so that a chain that was computed again can be seen.
CREATE TABLE audit_checkpoints (
	seq       INTEGER NOT NULL PRIMARY KEY,
	hash      BLOB    NOT NULL,
	at        TEXT    NOT NULL,
	signature BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_checkpoints_no_update BEFORE UPDATE ON audit_checkpoints BEGIN SELECT RAISE(ABORT, 'audit_checkpoints is append-only'); END;
CREATE TRIGGER audit_checkpoints_no_delete BEFORE DELETE ON audit_checkpoints BEGIN SELECT RAISE(ABORT, 'audit_checkpoints is append-only'); END;
