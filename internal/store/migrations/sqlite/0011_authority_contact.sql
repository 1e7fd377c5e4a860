-- What the nodes of an environment know together about reaching the tax authority:
-- when any of them last got an answer, since when calls have failed, and whether jobs
-- that waited must still be woken.

CREATE TABLE authority_contact (
	environment   TEXT    NOT NULL PRIMARY KEY,
	answered_at   INTEGER NOT NULL,
	failing_since INTEGER,
	waking        INTEGER NOT NULL
) STRICT;

-- The witness of a node follows what other nodes have sent since the last heartbeat.

CREATE INDEX attempts_by_time ON attempts (environment, opened_at);
