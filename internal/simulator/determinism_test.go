package simulator_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// The test posts the same documents ten times, in parallel and so in any order, to
// simulators with the same seed.
func TestSameSeedGivesTheSameVerdicts(t *testing.T) {
	t.Parallel()
	const documents = 16
	run := func(seed uint64, inProcess bool) map[string]string {
		e := newEnv(t, func(o *simulator.Options) {
			o.Seed, o.Config = seed, simulator.Config{Latency: simulator.Fixed(0), MaxParallel: -1, Profile: "chaos"}
		}).login()
		if inProcess {
			e.http = &http.Client{Transport: handlerTransport{e.Handler()}}
		}
		var wait sync.WaitGroup
		for n := 1; n <= documents; n++ {
			wait.Go(func() {
				raw := e.sign(invoice, encf31(n))
				for range 2 {
					e.upload(reception, issuer+encf31(n)+".xml", raw)
				}
			})
		}
		wait.Wait()
		got := map[string]string{}
		for _, d := range e.Documents(simulator.Filter{}) {
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
		t.Error("another seed gives the same verdicts")
	}
}

// A handlerTransport calls a handler without a network.
type handlerTransport struct{ http.Handler }

func (d handlerTransport) RoundTrip(q *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF // the connection was dropped
		}
	}()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, q)
	return w.Result(), nil
}

// Every document is posted to all three environments, because signing is slow.
func TestAThousandPostsAtOnce(t *testing.T) {
	t.Parallel()
	const documents, workers = 334, 50
	e := newEnv(t, func(o *simulator.Options) { o.Config.MaxParallel = -1 })
	tokens := map[string]string{}
	for _, amb := range []string{"ecf", "certecf", "testecf"} {
		to := strings.NewReplacer("/ecf/", "/"+amb+"/")
		tokens[amb], _ = e.authenticate(to.Replace(seedURL), to.Replace(tokenURL), e.id).json(t)["token"].(string)
	}
	raws := make([][]byte, documents)
	work := make(chan int)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for n := range work {
				for amb, token := range tokens {
					w := httptest.NewRecorder()
					body, kind := newUpload(issuer+encf31(n+1)+".xml", raws[n])
					q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(reception, "/ecf/", "/"+amb+"/", 1), body)
					q.Header.Set("Content-Type", kind)
					q.Header.Set("Authorization", "Bearer "+token)
					e.Handler().ServeHTTP(w, q)
					if w.Code != http.StatusOK {
						t.Errorf("%d %s", w.Code, w.Body)
					}
				}
			}
		})
	}
	for n := range documents {
		raws[n] = e.sign(invoice, encf31(n+1))
		work <- n
	}
	close(work)
	wait.Wait()
	seen := map[string]bool{}
	docs := e.Documents(simulator.Filter{})
	for _, d := range docs {
		if seen[d.TrackID] || d.Verdict.Code != 1 {
			t.Errorf("%+v", d)
		}
		seen[d.TrackID] = true
	}
	if len(docs) != 3*documents {
		t.Errorf("%d documents, want %d", len(docs), 3*documents)
	}
	if n := len(e.Requests()); n != 3*documents+6 {
		t.Errorf("%d requests in the journal", n)
	}
}
