-- The comparison of accepted documents with what the tax authority shows. An
-- environment has one row: when any node may compare next, and how far the walks
-- over the accepted documents have come. first is the walk that compares each document
-- once, a day after its last change; again compares older documents again, up to
-- again_until.

CREATE TABLE comparisons (
	environment TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	next_at     BIGINT NOT NULL,
	holder      TEXT COLLATE "C" NOT NULL,
	turn        BIGINT NOT NULL,
	attempt     BIGINT NOT NULL,
	first_at    BIGINT NOT NULL,
	first_id    TEXT COLLATE "C" NOT NULL,
	again_at    BIGINT NOT NULL,
	again_id    TEXT COLLATE "C" NOT NULL,
	again_since BIGINT NOT NULL,
	again_until BIGINT NOT NULL,
	compared_at BIGINT
);

-- What differed between a document and the authority's answer about it. A difference
-- has ended when a later answer agreed.

CREATE TABLE differences (
	document_id TEXT COLLATE "C" NOT NULL,
	kind        TEXT COLLATE "C" NOT NULL CHECK (kind IN ('not_found', 'state', 'security_code', 'total', 'buyer')),
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	ours        TEXT COLLATE "C" NOT NULL,
	theirs      TEXT COLLATE "C" NOT NULL,
	found_at    BIGINT NOT NULL,
	seen_at     BIGINT NOT NULL,
	check_at    BIGINT NOT NULL,
	ended_at    BIGINT,
	PRIMARY KEY (document_id, kind)
);
CREATE INDEX differences_open ON differences (environment, check_at) WHERE ended_at IS NULL;

-- The walks read one accepted document after the other, however many there are.
-- Documents of the sandbox have no number and are not in the index.

CREATE INDEX invoices_accepted ON invoices (environment, updated_at, document_id)
	WHERE encf IS NOT NULL AND status IN ('accepted', 'accepted_conditional', 'delivered');
