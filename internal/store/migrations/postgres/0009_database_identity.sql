-- A random name of the database. Copies of the database share it.

CREATE TABLE database_identity (
	id TEXT COLLATE "C" NOT NULL PRIMARY KEY
);

INSERT INTO database_identity (id) VALUES (replace(gen_random_uuid()::text, '-', ''));
