-- The persons who are known to sign for a buyer of a taxpayer: they signed an
-- acknowledgement that came from the buyer's registered address, or an operator has
-- confirmed them.
CREATE TABLE buyer_signers (
	environment TEXT COLLATE "C" NOT NULL CHECK (environment IN ('certification', 'production')),
	taxpayer_id TEXT COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	buyer_rnc   TEXT COLLATE "C" NOT NULL,
	signer      TEXT COLLATE "C" NOT NULL,
	basis       TEXT COLLATE "C" NOT NULL CHECK (basis IN ('acknowledgement', 'operator')),
	document_id TEXT COLLATE "C" NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (environment, taxpayer_id, buyer_rnc, signer)
);

-- Commercial responses of signers who are not known to act for the buyer. The number
-- limits how many of them a document has.
CREATE TABLE unconfirmed_responses (
	document_id TEXT COLLATE "C" NOT NULL,
	number      BIGINT NOT NULL CHECK (number BETWEEN 1 AND 4),
	environment TEXT COLLATE "C" NOT NULL,
	taxpayer_id TEXT COLLATE "C" NOT NULL,
	buyer_rnc   TEXT COLLATE "C" NOT NULL,
	signer      TEXT COLLATE "C" NOT NULL,
	accepted    BIGINT NOT NULL CHECK (accepted IN (0, 1)),
	reason      TEXT COLLATE "C" NOT NULL,
	at          BIGINT NOT NULL,
	xml         BYTEA NOT NULL,
	PRIMARY KEY (document_id, number),
	UNIQUE (document_id, signer, accepted)
);
CREATE INDEX unconfirmed_responses_of_signer ON unconfirmed_responses (environment, taxpayer_id, buyer_rnc, signer);
