-- The binding of a credential authenticates its taxpayer, environment, scopes and end with
-- a key that the database holds only encrypted. Programs of earlier versions store none.
ALTER TABLE credentials ADD COLUMN binding BLOB;
