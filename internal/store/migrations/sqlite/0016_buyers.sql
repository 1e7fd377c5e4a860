-- The persons who are known to sign for a buyer of a taxpayer: they signed an
-- acknowledgement that came from the buyer's registered address, or an operator has
-- confirmed them.
CREATE TABLE buyer_signers (
	environment TEXT    NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id TEXT    NOT NULL REFERENCES taxpayers (id),
	buyer_rnc   TEXT    NOT NULL,
	signer      TEXT    NOT NULL,
	basis       TEXT    NOT NULL CHECK (basis IN ('acknowledgement', 'operator')),
	document_id TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, buyer_rnc, signer)
) STRICT;

-- Commercial responses of signers who are not known to act for the buyer. The number
-- limits how many of them a document has.
CREATE TABLE unconfirmed_responses (
	document_id TEXT    NOT NULL,
	number      INTEGER NOT NULL CHECK (number BETWEEN 1 AND 4),
	environment TEXT    NOT NULL,
	taxpayer_id TEXT    NOT NULL,
	buyer_rnc   TEXT    NOT NULL,
	signer      TEXT    NOT NULL,
	accepted    INTEGER NOT NULL CHECK (accepted IN (0, 1)),
	reason      TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	xml         BLOB    NOT NULL,
	PRIMARY KEY (document_id, number),
	UNIQUE (document_id, signer, accepted)
) STRICT;
CREATE INDEX unconfirmed_responses_of_signer ON unconfirmed_responses (environment, taxpayer_id, buyer_rnc, signer);
