-- The people who use the console. An empty environment means every environment; an empty
-- password_hash means that the person has not set a password yet. sealed is the secret of
-- the second factor, which is in force from second_factor_at on.
CREATE TABLE users (
	id               TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	name             TEXT COLLATE "C" NOT NULL,
	email            TEXT COLLATE "C" NOT NULL UNIQUE,
	role             TEXT COLLATE "C" NOT NULL CHECK (role IN ('operator', 'auditor', 'accountant', 'developer')),
	environment      TEXT COLLATE "C" NOT NULL CHECK (environment IN ('', 'sandbox', 'certification', 'production')),
	language         TEXT COLLATE "C" NOT NULL CHECK (language IN ('', 'es', 'en')),
	theme            TEXT COLLATE "C" NOT NULL CHECK (theme IN ('', 'light', 'dark')),
	password_hash    TEXT COLLATE "C" NOT NULL,
	sealed           BYTEA,
	second_factor_at BIGINT,
	last_step        BIGINT NOT NULL,
	created_at       BIGINT NOT NULL,
	disabled_at      BIGINT,
	last_sign_in_at  BIGINT
);

-- The taxpayers that an accountant or a developer works for.
CREATE TABLE user_taxpayers (
	user_id     TEXT COLLATE "C" NOT NULL REFERENCES users (id),
	taxpayer_id TEXT COLLATE "C" NOT NULL REFERENCES taxpayers (id),
	PRIMARY KEY (user_id, taxpayer_id)
);

-- The link with which a person sets a password, as a digest. A person has one at most.
CREATE TABLE user_links (
	user_id    TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES users (id),
	digest     BYTEA    NOT NULL UNIQUE,
	expires_at BIGINT NOT NULL
);
CREATE INDEX user_links_by_end ON user_links (expires_at);

-- The sessions of people in a browser. The cookie is stored as a digest.
CREATE TABLE user_sessions (
	id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	digest       BYTEA    NOT NULL UNIQUE,
	user_id      TEXT COLLATE "C" NOT NULL REFERENCES users (id),
	address      TEXT COLLATE "C" NOT NULL,
	browser      TEXT COLLATE "C" NOT NULL,
	created_at   BIGINT NOT NULL,
	last_used_at BIGINT NOT NULL,
	expires_at   BIGINT NOT NULL
);
CREATE INDEX user_sessions_of_user ON user_sessions (user_id, id);
CREATE INDEX user_sessions_by_end ON user_sessions (expires_at);

-- Codes that replace the second factor, each of them once, as digests.
CREATE TABLE recovery_codes (
	user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id),
	digest  BYTEA NOT NULL,
	PRIMARY KEY (user_id, digest)
);

-- The failed sign-ins of the last minute, for each account and each address of clients.
-- failed_at are instants in microseconds, separated by spaces.
CREATE TABLE sign_in_failures (
	bucket     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	failed_at  TEXT COLLATE "C" NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX sign_in_failures_by_end ON sign_in_failures (expires_at);

-- The public address of the console of each environment, for the links of commands.
CREATE TABLE console_addresses (
	environment TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (environment IN ('sandbox', 'certification', 'production')),
	base_url    TEXT COLLATE "C" NOT NULL,
	updated_at  BIGINT NOT NULL
);
