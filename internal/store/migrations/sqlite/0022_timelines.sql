-- The timeline on which the database of an environment is known to be complete. A copy of
-- the database that continues another timeline may have lost numbers that were sent. On
-- SQLite a copy has the same timeline, so the table stays empty.
CREATE TABLE timelines (
	environment TEXT NOT NULL PRIMARY KEY,
	timeline    TEXT NOT NULL
) STRICT;
