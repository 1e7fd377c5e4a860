-- The files of exports, in chunks, so that every node can serve them. Deleting an export
-- leaves its chunks, which are deleted in small batches, the first chunk last. size is the
-- size of the file in bytes; 0: the file is not ready, or an earlier release has made it
-- on one node.
ALTER TABLE exports ADD COLUMN size BIGINT NOT NULL DEFAULT 0;

CREATE TABLE export_chunks (
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	export_id   TEXT COLLATE "C" NOT NULL,
	n           BIGINT NOT NULL,
	bytes       BYTEA NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, export_id, n)
);
CREATE INDEX export_chunks_first ON export_chunks (environment, taxpayer_id, export_id) WHERE n = 0;
-- The chunks of a ZIP file cannot be compressed further.
ALTER TABLE export_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;
