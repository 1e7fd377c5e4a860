-- A random name of the database. Copies of the database share it.

CREATE TABLE database_identity (
	id TEXT NOT NULL PRIMARY KEY
) STRICT;

INSERT INTO database_identity (id) VALUES (lower(hex(randomblob(16))));
