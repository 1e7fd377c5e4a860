package watch_test

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
)

// env is the environment of live with what the tests of this package add.
type env struct{ *livetest.Env }

type envOptions = livetest.Options

func newEnv(t *testing.T, address string, o envOptions) *env {
	t.Helper()
	return &env{livetest.New(t, address, o)}
}

// otherClient returns another node on the same database, with a client of its own.
func (w *env) otherClient() *env { return &env{w.OtherClient()} }

// otherProvider returns an env with a database of its own and the same authority.
func (w *env) otherProvider() *env { return &env{w.OtherProvider()} }
