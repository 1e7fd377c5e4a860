package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// env is the environment of live with what the tests of this package add.
type env struct{ *livetest.Env }

type envOptions = livetest.Options

func newEnv(t *testing.T, address string, o envOptions) *env {
	t.Helper()
	return &env{livetest.New(t, address, o)}
}

// otherNode returns another node on the same database, with the same signer.
func (w *env) otherNode() *env { return &env{w.OtherNode()} }

// otherClient returns another node on the same database, with a client of its own.
func (w *env) otherClient() *env { return &env{w.OtherClient()} }

// otherProvider returns an env with a database of its own and the same authority.
func (w *env) otherProvider() *env { return &env{w.OtherProvider()} }

func TestLiveDocumentsReachAVerdict(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		credit, small, large := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000), w.Create(fiscal.Consumer, 300_000)
		w.Drive(time.Hour)
		w.Want(credit, "queued submitted accepted delivered")
		w.Want(small, "queued accepted")
		w.Want(large, "queued submitted accepted")
		if got := w.Read(credit); got.ENCF != "E310000000001" || got.TrackID == "" {
			t.Errorf("31: %+v", got)
		}
		if got := w.Read(small); got.ENCF != "E320000000001" || got.TrackID != "" {
			t.Errorf("small 32: %+v", got)
		}
		if got := w.Read(large); got.ENCF != "E320000000002" || got.TrackID == "" {
			t.Errorf("large 32: %+v", got)
		}
		w.Clean()
	})
}
