-- The binding of a credential authenticates its taxpayer, environment, scopes and end with
-- a key that the database holds only encrypted. Programs of earlier versions store none.
ALTER TABLE credentials ADD COLUMN binding BYTEA;

-- What an operator has suspended: credential:ID, taxpayer:ID or environment:NAME.
CREATE TABLE suspensions (
	subject      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	reason       TEXT COLLATE "C" NOT NULL,
	suspended_at BIGINT NOT NULL
);
