package database

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// responseLimit is how long the server may take to answer a statement. It is longer than
// every time limit of the server and of a transaction.
const responseLimit = 15 * time.Second

// limitConnection sets the time limits of a connection that does not migrate.
//
// The address may name several servers, which the driver tries one after the other. A
// server whose machine has lost its power does not refuse a connection, so each server
// gets a share of connectionWait: the last one must be tried before the wait ends.
func limitConnection(config *pgx.ConnConfig) {
	servers := map[string]bool{serverOf(config.Host, config.Port): true}
	for _, f := range config.Fallbacks {
		servers[serverOf(f.Host, f.Port)] = true
	}
	config.ConnectTimeout = connectionWait / time.Duration(len(servers))
	if len(servers) > 1 {
		config.ConnectTimeout -= config.ConnectTimeout / 5
	}
	config.DialFunc = limitedDial(config.DialFunc, responseLimit)
}

func serverOf(host string, port uint16) string {
	network, address := pgconn.NetworkAddress(host, port)
	return network + " " + address
}

func limitedDial(dial pgconn.DialFunc, limit time.Duration) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return limitedConn{conn, limit}, nil
	}
}

// limitedConn closes itself when the server does not answer within the limit. A server
// whose machine has lost its power closes no connection, and the network would wait for
// it for a quarter of an hour.
type limitedConn struct {
	net.Conn
	limit time.Duration
}

func (c limitedConn) Read(b []byte) (int, error) {
	late := time.AfterFunc(c.limit, func() { _ = c.Close() }) // Read returns net.ErrClosed
	defer late.Stop()
	return c.Conn.Read(b)
}
