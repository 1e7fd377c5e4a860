-- What the console shows beside the documents themselves: an index for the search, counts
-- for the overview, and the log of API requests. Creations write none of these rows: a
-- background indexer follows the documents and their changes, in small transactions.

-- The indexer finds changes of a status in the order of their ids. Creations are not in
-- this index.
CREATE INDEX history_changes ON history (id) WHERE kind = 'status_changed';

-- How far the indexer has come. created and changed follow what is new; created_before
-- and changed_before follow later over the same rows and over those that existed before
-- the indexer started, and find what was committed late. The row of created has the
-- lease: one node at a time indexes.
CREATE TABLE index_walks (
	walk       TEXT NOT NULL PRIMARY KEY,
	position   TEXT NOT NULL,
	holder     TEXT NOT NULL,
	held_until INTEGER NOT NULL
) STRICT;

-- A buyer of a taxpayer, as documents name it. words is the name in lower case without
-- accents; the id is a digest of the other columns.
CREATE TABLE buyers (
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL,
	id          TEXT NOT NULL,
	rnc         TEXT NOT NULL,
	name        TEXT NOT NULL,
	words       TEXT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;
CREATE INDEX buyers_by_rnc ON buyers (environment, rnc, taxpayer_id, id);

CREATE TABLE buyer_words (
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL,
	word        TEXT NOT NULL,
	buyer_id    TEXT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, word, buyer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX buyer_words_of_all ON buyer_words (environment, word, taxpayer_id, buyer_id);

-- One row for each document. status and verdict_at are what document_counts and
-- verdict_times have counted.
CREATE TABLE document_index (
	document_id TEXT NOT NULL PRIMARY KEY,
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL,
	buyer_id    TEXT NOT NULL,
	total       TEXT NOT NULL,
	track_id    TEXT NOT NULL,
	status      TEXT NOT NULL,
	created_at  INTEGER NOT NULL,
	verdict_at  INTEGER
) STRICT;
CREATE INDEX document_index_by_total ON document_index (environment, total, document_id);
CREATE INDEX document_index_by_taxpayer ON document_index (environment, taxpayer_id, total, document_id);
CREATE INDEX document_index_by_buyer ON document_index (environment, taxpayer_id, buyer_id, document_id) WHERE buyer_id <> '';
CREATE INDEX document_index_by_track ON document_index (environment, track_id) WHERE track_id <> '';
CREATE INDEX document_index_by_status ON document_index (environment, status, document_id);

-- Documents by the time of their creation and their status. The empty taxpayer is the sum
-- over all taxpayers. span is hour, day (of the country) or all, whose start is 0.
CREATE TABLE document_counts (
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL,
	span        TEXT NOT NULL CHECK (span IN ('hour', 'day', 'all')),
	start_at    INTEGER NOT NULL,
	status      TEXT NOT NULL,
	documents   INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, span, start_at, status)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_counts_by_time ON document_counts (span, start_at);

-- Documents by the time of their verdict, and how long it took: bucket is the number of
-- the first upper limit that is not below the time.
CREATE TABLE verdict_times (
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL,
	span        TEXT NOT NULL CHECK (span IN ('hour', 'day')),
	start_at    INTEGER NOT NULL,
	bucket      INTEGER NOT NULL,
	documents   INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, span, start_at, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX verdict_times_by_time ON verdict_times (span, start_at);

-- API requests, without bodies, query strings and secrets. Ids sort by time. The empty
-- taxpayer is that of requests whose credential is not known.
CREATE TABLE request_log (
	id          TEXT NOT NULL,
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL,
	request_id  TEXT NOT NULL,
	at          INTEGER NOT NULL,
	method      TEXT NOT NULL,
	route       TEXT NOT NULL,
	path        TEXT NOT NULL,
	status      INTEGER NOT NULL,
	code        TEXT NOT NULL,
	details     TEXT NOT NULL,
	credential  TEXT NOT NULL,
	took_us     INTEGER NOT NULL,
	replayed    INTEGER NOT NULL CHECK (replayed IN (0, 1)),
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;
CREATE INDEX request_log_by_id ON request_log (id);
CREATE INDEX request_log_by_request ON request_log (request_id);
CREATE INDEX request_log_errors ON request_log (environment, taxpayer_id, id) WHERE code <> '';

-- Exports of documents as files. The file is deleted after its time, the row with it.
CREATE TABLE exports (
	id          TEXT NOT NULL,
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL REFERENCES taxpayers (id),
	from_day    TEXT NOT NULL,
	to_day      TEXT NOT NULL,
	include     TEXT NOT NULL,
	state       TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed')),
	done        INTEGER NOT NULL,
	total       INTEGER NOT NULL,
	file        TEXT NOT NULL,
	problem     TEXT NOT NULL,
	holder      TEXT NOT NULL,
	held_until  INTEGER NOT NULL,
	created_by  TEXT NOT NULL,
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL,
	expires_at  INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, id)
) STRICT;
CREATE INDEX exports_by_expiry ON exports (expires_at);
CREATE INDEX exports_open ON exports (environment, state, id) WHERE state IN ('waiting', 'running');

-- The page of a document lists the deliveries of its events, with their attempts.
CREATE INDEX deliveries_by_document ON deliveries (document_id, notice_id) WHERE document_id <> '';
CREATE INDEX delivery_attempts_of_event ON delivery_attempts (environment, taxpayer_id, notice_id);
