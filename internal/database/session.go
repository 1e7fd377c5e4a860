package database

import "context"

// Session says how this process is connected to the database.
type Session struct {
	Role          string // of the server; empty on SQLite
	ChangesTables bool   // the role may create tables
	Local         bool   // the database is on this machine
	Encrypted     bool   // the connection has TLS
}

// Session reads how this process is connected to the database.
func (db *DB) Session(ctx context.Context) (Session, error) {
	found, err := db.dialect.session(ctx, db.read)
	return found, db.dialect.Wrap("database: read the session", err)
}

func postgresSession(ctx context.Context, q Querier) (found Session, err error) {
	err = q.QueryRowContext(ctx, `
		SELECT current_user, has_schema_privilege(current_user, 'public', 'CREATE'),
			coalesce(host(inet_client_addr()) IN ('127.0.0.1', '::1') OR inet_client_addr() = inet_server_addr(), true),
			coalesce((SELECT l.ssl FROM pg_stat_ssl l WHERE l.pid = pg_backend_pid()), false)`).Scan(
		&found.Role, &found.ChangesTables, &found.Local, &found.Encrypted)
	return found, err
}
