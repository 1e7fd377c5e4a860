-- A replay is the request to send events to an endpoint again. The sender works it off
-- in small transactions, and deletes the row at the end. Each transaction also moves the
-- position, so that no event is prepared twice after a crash or by two nodes. since and
-- missed go through the events in the order of their time and id; failed goes through
-- the failed deliveries in the order of the event id. An endpoint has at most one row
-- for each of them.
CREATE TABLE replays (
	endpoint_id TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	what        TEXT    NOT NULL CHECK (what IN ('since', 'failed', 'missed')),
	position_at INTEGER NOT NULL,
	position_id TEXT    NOT NULL,
	until_at    INTEGER NOT NULL,
	done        INTEGER NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, endpoint_id, what)
) STRICT;

-- A batch reads the next events or failed deliveries from an index in its order, however
-- many there are.
DROP INDEX notices_by_time;
CREATE INDEX notices_by_time ON notices (environment, taxpayer_id, at, id);
DROP INDEX deliveries_failed;
CREATE INDEX deliveries_failed ON deliveries (endpoint_id, state, notice_id) WHERE state = 'failed';
