package decision_test

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
