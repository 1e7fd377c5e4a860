package dgii

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestAHostReceivesEightCallsAtOnce(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	full := make(chan struct{})
	var once sync.Once
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 8 {
			once.Do(func() { close(full) })
		}
		<-full
		answer(200, `{"trackId":"t"}`)(w, r)
	})
	c := s.client(t)
	id := signer(t)
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			var err error
			if n%2 == 0 {
				_, err = c.Submit(testContext(t), id, shipmentOf(n))
			} else {
				_, err = c.Result(testContext(t), id, "t")
				if errors.Is(err, fiscal.ErrUnavailable) {
					err = nil // the handler answers look-ups with a track id too
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 8 {
		t.Errorf("%d calls at once, want 8", most.Load())
	}
	if n := len(c.reception.slots); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}
