-- breaks earlier programs
-- When the authority could not be reached for long: who sells meanwhile prints a
-- legend, and what was kept back has a deadline once it is over.

CREATE TABLE contingencies (
	environment TEXT    NOT NULL,
	started_at  INTEGER NOT NULL,
	ended_at    INTEGER,
	PRIMARY KEY (environment, started_at)
) STRICT;
