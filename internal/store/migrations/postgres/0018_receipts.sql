-- The printed pages in other formats than letter. Letter pages stay in the table pages,
-- which earlier releases read and write.
CREATE TABLE receipts (
	document_id TEXT COLLATE "C" NOT NULL,
	format      TEXT COLLATE "C" NOT NULL,
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	sha256      BYTEA    NOT NULL,
	pdf         BYTEA    NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (document_id, format)
);

CREATE TRIGGER receipts_append_only BEFORE UPDATE OR DELETE ON receipts FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The format of a page when a request names none. An empty text is letter.
ALTER TABLE taxpayers ADD COLUMN page_format TEXT COLLATE "C" NOT NULL DEFAULT '';
