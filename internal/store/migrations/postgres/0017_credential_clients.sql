-- Who may use a credential: client networks in CIDR notation, and SHA-256 fingerprints of
-- client certificates, separated by spaces. An empty text allows every client.
ALTER TABLE credentials ADD COLUMN allowed_networks TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE credentials ADD COLUMN client_certificates TEXT COLLATE "C" NOT NULL DEFAULT '';
