-- The comparison of accepted documents with what the tax authority shows. An
-- environment has one row: when any node may compare next, and how far the walks
-- over the accepted documents have come. first is the walk that compares each document
-- once, a day after its last change; again compares older documents again, up to
-- again_until.

CREATE TABLE comparisons (
	environment TEXT    NOT NULL PRIMARY KEY,
	next_at     INTEGER NOT NULL,
	holder      TEXT    NOT NULL,
	turn        INTEGER NOT NULL,
	attempt     INTEGER NOT NULL,
	first_at    INTEGER NOT NULL,
	first_id    TEXT    NOT NULL,
	again_at    INTEGER NOT NULL,
	again_id    TEXT    NOT NULL,
	again_since INTEGER NOT NULL,
	again_until INTEGER NOT NULL,
	compared_at INTEGER
) STRICT;

-- What differed between a document and the authority's answer about it. A difference
-- has ended when a later answer agreed.

CREATE TABLE differences (
	document_id TEXT    NOT NULL,
	kind        TEXT    NOT NULL CHECK (kind IN ('not_found', 'state', 'security_code', 'total', 'buyer')),
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	ours        TEXT    NOT NULL,
	theirs      TEXT    NOT NULL,
	found_at    INTEGER NOT NULL,
	seen_at     INTEGER NOT NULL,
	check_at    INTEGER NOT NULL,
	ended_at    INTEGER,
	PRIMARY KEY (document_id, kind)
) STRICT;
CREATE INDEX differences_open ON differences (environment, check_at) WHERE ended_at IS NULL;

-- The walks read one accepted document after the other, however many there are.
-- Documents of the sandbox have no number and are not in the index.

CREATE INDEX invoices_accepted ON invoices (environment, updated_at, document_id)
	WHERE encf IS NOT NULL AND status IN ('accepted', 'accepted_conditional', 'delivered');
