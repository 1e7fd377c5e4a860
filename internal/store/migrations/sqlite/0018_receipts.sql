-- The printed pages in other formats than letter. Letter pages stay in the table pages,
-- which earlier releases read and write.
CREATE TABLE receipts (
	document_id TEXT    NOT NULL,
	format      TEXT    NOT NULL,
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	sha256      BLOB    NOT NULL,
	pdf         BLOB    NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (document_id, format)
) STRICT;

CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'a printed page never changes'); END;
CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts BEGIN SELECT RAISE(ABORT, 'a printed page never changes'); END;

-- The format of a page when a request names none. An empty text is letter.
ALTER TABLE taxpayers ADD COLUMN page_format TEXT NOT NULL DEFAULT '';
