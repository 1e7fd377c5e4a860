package simulator_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// TestDeterminism posts the same documents ten times, in parallel and so in no
// order, to simulators of the same seed.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	const documents = 16
	run := func(seed uint64, inProcess bool) map[string]string {
		r := newRig(t, func(o *simulator.Options) {
			o.Seed, o.Config = seed, simulator.Config{Latency: simulator.Fixed(0), MaxParallel: -1, Profile: "chaos"}
		}).login()
		if inProcess {
			r.http = &http.Client{Transport: direct{r.Handler()}}
		}
		var wait sync.WaitGroup
		for n := 1; n <= documents; n++ {
			wait.Go(func() {
				raw := r.sign(invoice, encf31(n))
				for range 2 {
					r.upload(reception, issuer+encf31(n)+".xml", raw)
				}
			})
		}
		wait.Wait()
		got := map[string]string{}
		for _, d := range r.Documents(simulator.Filter{}) {
			got[fmt.Sprint(d.ENCF, " ", d.Attempt)] = fmt.Sprint(d.TrackID, " ", d.Due.Sub(d.Received), " ", d.Verdict, d.Hidden)
		}
		return got
	}
	first := run(7, false)
	for i := range 9 {
		if diff := cmp.Diff(first, run(7, i%2 == 0)); diff != "" {
			t.Fatal(diff)
		}
	}
	if cmp.Equal(first, run(8, false)) {
		t.Error("another seed gives the same")
	}
}

// direct calls a handler without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(q *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF // the connection was dropped
		}
	}()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, q)
	return w.Result(), nil
}

// TestThousandAtOnce posts every document to each environment: to sign is what
// takes long.
func TestThousandAtOnce(t *testing.T) {
	t.Parallel()
	const documents, workers = 334, 50
	r := newRig(t, func(o *simulator.Options) { o.Config.MaxParallel = -1 })
	tokens := map[string]string{}
	for _, amb := range []string{"ecf", "certecf", "testecf"} {
		to := strings.NewReplacer("/ecf/", "/"+amb+"/")
		tokens[amb], _ = r.authenticate(to.Replace(seedURL), to.Replace(tokenURL), r.id).json(t)["token"].(string)
	}
	raws := make([][]byte, documents)
	work := make(chan int)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for n := range work {
				for amb, token := range tokens {
					w := httptest.NewRecorder()
					body, kind := file(issuer+encf31(n+1)+".xml", raws[n])
					q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(reception, "/ecf/", "/"+amb+"/", 1), body)
					q.Header.Set("Content-Type", kind)
					q.Header.Set("Authorization", "Bearer "+token)
					r.Handler().ServeHTTP(w, q)
					if w.Code != http.StatusOK {
						t.Errorf("%d %s", w.Code, w.Body)
					}
				}
			}
		})
	}
	for n := range documents {
		raws[n] = r.sign(invoice, encf31(n+1))
		work <- n
	}
	close(work)
	wait.Wait()
	seen := map[string]bool{}
	docs := r.Documents(simulator.Filter{})
	for _, d := range docs {
		if seen[d.TrackID] || d.Verdict.Code != 1 {
			t.Errorf("%+v", d)
		}
		seen[d.TrackID] = true
	}
	if len(docs) != 3*documents {
		t.Errorf("%d of %d", len(docs), 3*documents)
	}
	if n := len(r.Requests()); n != 3*documents+6 {
		t.Errorf("%d in the journal", n)
	}
}

func TestDefaultDelays(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *simulator.Options) { o.Config.ValidationDelay = nil }).login()
	quick := 0
	for n := 1; n <= 100; n++ {
		r.send(encf31(n), r.sign(invoice, encf31(n)))
	}
	for _, d := range r.Documents(simulator.Filter{}) {
		took := d.Due.Sub(d.Received)
		if took < 150*time.Millisecond || took > 5*time.Minute {
			t.Errorf("%s", took)
		}
		if took <= 400*time.Millisecond {
			quick++
		}
	}
	if quick < 65 || quick > 92 {
		t.Errorf("%d of 100 within 400 ms", quick)
	}
}

func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *simulator.Options) { o.Config.JournalSize = 3 })
	for range 5 {
		r.get(seedURL)
	}
	seqs := func() (all []uint64) {
		for _, q := range r.Requests() {
			all = append(all, q.Seq)
		}
		return all
	}
	if diff := cmp.Diff([]uint64{3, 4, 5}, seqs()); diff != "" {
		t.Error(diff)
	}
	must(t, r.Configure(func(c *simulator.Config) { c.JournalSize = 2 }))
	r.get(seedURL)
	if diff := cmp.Diff([]uint64{5, 6}, seqs()); diff != "" {
		t.Error(diff)
	}
	must(t, r.Configure(func(c *simulator.Config) { c.JournalSize = 3 }))
	r.get(seedURL)
	r.get(seedURL)
	if diff := cmp.Diff([]uint64{6, 7, 8}, seqs()); diff != "" {
		t.Error(diff)
	}
	must(t, r.Configure(func(c *simulator.Config) { c.Lean = true }))
	r.get(seedURL)
	if len(seqs()) != 0 {
		t.Error("lean keeps a journal")
	}
}
