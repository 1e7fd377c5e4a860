-- The files of exports, in chunks, so that every node can serve them. Deleting an export
-- leaves its chunks, which are deleted in small batches, the first chunk last. size is the
-- size of the file in bytes; 0: the file is not ready, or an earlier release has made it
-- on one node.
ALTER TABLE exports ADD COLUMN size INTEGER NOT NULL DEFAULT 0;

CREATE TABLE export_chunks (
	environment TEXT NOT NULL,
	taxpayer_id TEXT NOT NULL REFERENCES taxpayers (id),
	export_id   TEXT NOT NULL,
	n           INTEGER NOT NULL,
	bytes       BLOB NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, export_id, n)
) STRICT;
CREATE INDEX export_chunks_first ON export_chunks (environment, taxpayer_id, export_id) WHERE n = 0;
