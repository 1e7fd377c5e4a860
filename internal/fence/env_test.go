package fence_test

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
)

// env is the environment of live with what the tests of this package add.
type env struct{ *livetest.Env }

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	return &env{livetest.New(t, address, livetest.Options{})}
}

// otherNode returns another node on the same database, with the same signer.
func (w *env) otherNode() *env { return &env{w.OtherNode()} }
