package database_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// silentServer accepts connections and never answers, like a machine that has lost its
// power. It returns its port.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// A connection of a server that no longer answers ends, and the failure is temporary.
func TestAConnectionWithoutAnAnswerEnds(t *testing.T) {
	t.Parallel()
	conn, err := database.LimitedDial(new(net.Dialer).DialContext, 50*time.Millisecond)(t.Context(), "tcp", "127.0.0.1:"+silentServer(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !database.PostgresUnavailable(err) {
		t.Errorf("got %v, want a temporary failure", err)
	}
}

// The address names two servers, and the first does not answer. A transaction that needs
// a new connection reaches the second server before its wait ends.
func TestTheSecondServerIsReachedInTime(t *testing.T) {
	t.Parallel()
	address := strings.Replace(storetest.Postgres(t).Empty(t), "host=", "host=127.0.0.1%2C", 1)
	s := open(t, address+"&port="+silentServer(t)+"%2C5432")
	err := s.Update(t.Context(), func(database.Querier) error {
		return s.Update(t.Context(), func(database.Querier) error { return nil }) // on another connection
	})
	if err != nil {
		t.Error(err)
	}
}

// brokenConn is a connection that something else has closed.
type brokenConn struct{ driver.Conn }

func (c brokenConn) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (brokenConn) Driver() driver.Driver                          { return nil }
func (brokenConn) Close() error                                   { return net.ErrClosed }

// A service that stops does not fail because a connection was closed before.
func TestAClosedConnectionDoesNotKeepADatabaseFromClosing(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(brokenConn{})
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close() // back to the pool
	if err := database.ClosePostgres(db); err != nil {
		t.Errorf("the database cannot be closed: %v", err)
	}
}
