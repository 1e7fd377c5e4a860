-- breaks earlier programs
-- What stands against a database that is older than what was sent from it: the
-- numbers that were given up because of it, and which nodes have a witness.

CREATE TABLE burned (
	environment TEXT    NOT NULL,
	rnc         TEXT    NOT NULL,
	encf        TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	found       TEXT    NOT NULL CHECK (found IN ('found', 'absent', 'unknown')),
	detail      TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	PRIMARY KEY (environment, rnc, encf)
) STRICT;

CREATE TABLE nodes (
	id          TEXT    NOT NULL PRIMARY KEY,
	environment TEXT    NOT NULL,
	has_witness INTEGER NOT NULL,
	seen_at     INTEGER NOT NULL
) STRICT;

CREATE TRIGGER burned_no_update BEFORE UPDATE ON burned BEGIN SELECT RAISE(ABORT, 'a burned number stays burned'); END;
CREATE TRIGGER burned_no_delete BEFORE DELETE ON burned BEGIN SELECT RAISE(ABORT, 'a burned number stays burned'); END;
