-- breaks earlier programs
-- What stands against a database that is older than what was sent from it: the
-- numbers that were given up because of it, and which nodes have a witness.

CREATE TABLE burned (
	environment TEXT COLLATE "C" NOT NULL,
	rnc         TEXT COLLATE "C" NOT NULL,
	encf        TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	found       TEXT COLLATE "C" NOT NULL CHECK (found IN ('found', 'absent', 'unknown')),
	detail      TEXT COLLATE "C" NOT NULL,
	at          BIGINT NOT NULL,
	PRIMARY KEY (environment, rnc, encf)
);

CREATE TABLE nodes (
	id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	environment TEXT COLLATE "C" NOT NULL,
	has_witness BIGINT NOT NULL,
	seen_at     BIGINT NOT NULL
);

CREATE TRIGGER burned_append_only BEFORE UPDATE OR DELETE ON burned FOR EACH ROW EXECUTE FUNCTION refuse_change();
