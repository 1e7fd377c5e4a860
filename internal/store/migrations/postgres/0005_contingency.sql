-- breaks earlier programs
-- When the authority could not be reached for long: who sells meanwhile prints a
-- legend, and what was kept back has a deadline once it is over.

CREATE TABLE contingencies (
	environment TEXT COLLATE "C" NOT NULL,
	started_at  BIGINT NOT NULL,
	ended_at    BIGINT,
	PRIMARY KEY (environment, started_at)
);
