-- The people who use the console. An empty environment means every environment; an empty
-- password_hash means that the person has not set a password yet. sealed is the secret of
-- the second factor, which is in force from second_factor_at on.
CREATE TABLE users (
	id               TEXT    NOT NULL PRIMARY KEY,
	name             TEXT    NOT NULL,
	email            TEXT    NOT NULL UNIQUE,
	role             TEXT    NOT NULL CHECK (role IN ('operator', 'auditor', 'accountant', 'developer')),
	environment      TEXT    NOT NULL CHECK (environment IN ('', 'sandbox', 'certification', 'production')),
	language         TEXT    NOT NULL CHECK (language IN ('', 'es', 'en')),
	theme            TEXT    NOT NULL CHECK (theme IN ('', 'light', 'dark')),
	password_hash    TEXT    NOT NULL,
	sealed           BLOB,
	second_factor_at INTEGER,
	last_step        INTEGER NOT NULL,
	created_at       INTEGER NOT NULL,
	disabled_at      INTEGER,
	last_sign_in_at  INTEGER
) STRICT, WITHOUT ROWID;

-- The taxpayers that an accountant or a developer works for.
CREATE TABLE user_taxpayers (
	user_id     TEXT NOT NULL REFERENCES users (id),
	taxpayer_id TEXT NOT NULL REFERENCES taxpayers (id),
	PRIMARY KEY (user_id, taxpayer_id)
) STRICT, WITHOUT ROWID;

-- The link with which a person sets a password, as a digest. A person has one at most.
CREATE TABLE user_links (
	user_id    TEXT    NOT NULL PRIMARY KEY REFERENCES users (id),
	digest     BLOB    NOT NULL UNIQUE,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX user_links_by_end ON user_links (expires_at);

-- The sessions of people in a browser. The cookie is stored as a digest.
CREATE TABLE user_sessions (
	id           TEXT    NOT NULL PRIMARY KEY,
	digest       BLOB    NOT NULL UNIQUE,
	user_id      TEXT    NOT NULL REFERENCES users (id),
	address      TEXT    NOT NULL,
	browser      TEXT    NOT NULL,
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX user_sessions_of_user ON user_sessions (user_id, id);
CREATE INDEX user_sessions_by_end ON user_sessions (expires_at);

-- Codes that replace the second factor, each of them once, as digests.
CREATE TABLE recovery_codes (
	user_id TEXT NOT NULL REFERENCES users (id),
	digest  BLOB NOT NULL,
	PRIMARY KEY (user_id, digest)
) STRICT, WITHOUT ROWID;

-- The failed sign-ins of the last minute, for each account and each address of clients.
-- failed_at are instants in microseconds, separated by spaces.
CREATE TABLE sign_in_failures (
	bucket     TEXT    NOT NULL PRIMARY KEY,
	failed_at  TEXT    NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_failures_by_end ON sign_in_failures (expires_at);

-- The public address of the console of each environment, for the links of commands.
CREATE TABLE console_addresses (
	environment TEXT    NOT NULL PRIMARY KEY CHECK (environment IN ('sandbox', 'certification', 'production')),
	base_url    TEXT    NOT NULL,
	updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
