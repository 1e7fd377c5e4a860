package store

import (
	"context"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// SetConsoleAddress stores the public address of the console of an environment. Commands
// make links with it.
func (tx *Tx) SetConsoleAddress(ctx context.Context, env fiscal.Environment, baseURL string) error {
	return tx.exec(ctx, "set console address", `
		INSERT INTO console_addresses (environment, base_url, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (environment) DO UPDATE SET base_url = excluded.base_url, updated_at = excluded.updated_at`,
		string(env), baseURL, micros(tx.now()))
}

// ConsoleAddress returns the public address of the console of an environment, or of the
// environment whose server started last when env is empty. It is empty when no server with
// a console has started.
func (r reader) ConsoleAddress(ctx context.Context, env fiscal.Environment) (baseURL string, err error) {
	baseURL, err = one(r.rows(ctx, "read console address", `
		SELECT base_url FROM console_addresses WHERE environment = $1 OR $1 = '' ORDER BY updated_at DESC LIMIT 1`, string(env)), only[string])
	return baseURL, ifFound(err)
}
