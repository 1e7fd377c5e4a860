package storetest

import "database/sql"

// Blocks returns how many blocks of a table and its indexes the sessions of a database
// have read that have ended since the server started.
func (s *Server) Blocks(database, table string) (blocks int64, err error) {
	db, err := sql.Open("pgx", s.URL(database))
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRow(`
		SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relname = $1`, table).Scan(&blocks) //nolint:noctx // a benchmark
	return blocks, err
}
