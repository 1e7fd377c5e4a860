package systemtest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

const (
	shopTills  = 2
	tillPause  = 150 * time.Millisecond
	lookPause  = 20 * time.Millisecond
	shopPace   = "300" // a contingency begins after two seconds
	shopLimit  = 3 * time.Minute
	tillLimit  = 10 * time.Minute // a till repeats a request for so long
	documentOf = "fiscal-documents?external_id=ext-"
)

// A shop sells through the nodes of a service, and keeps everything that it gets in the
// hand: the answers, the pages and the events. The authority is a process of its own.
type shop struct {
	*env
	*hands
	authority *simulatorProcess
	bases     [2]atomic.Pointer[string] // addresses of nodes
	stop      context.CancelFunc
	working   sync.WaitGroup
	gate      sync.RWMutex // who holds it keeps the shop from sending requests

	saleMu  sync.Mutex
	next    int
	sold    []int        // acknowledged sales
	pages   map[int]bool // sales with a page; true: with the legend
	legends [2]int       // pages with the legend of sales of the contingency, by type
	gone    map[int]bool // acknowledged sales that the service does not have
	settled map[int]bool // sales with a final status
	first   int          // the first sale of the contingency, or -1
}

// newShop starts the authority, and registers the taxpayer in a database. The shop opens
// with open.
func newShop(t *testing.T, address string) *shop {
	t.Helper()
	s := &shop{hands: newHands(), pages: map[int]bool{}, gone: map[int]bool{}, settled: map[int]bool{}, first: -1}
	s.env = &env{program: harness.Program(t), dir: t.TempDir(), address: address}
	s.authority = startSimulator(t, map[string]any{}, "--enroll", "199000013", "--out", s.dir)
	for from, to := range map[string]string{"199000013.p12": "signer.p12", "199000013.password": "password"} {
		if err := os.Rename(filepath.Join(s.dir, from), filepath.Join(s.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	s.register(t, s.authority.authority, "", shopPace)
	return s
}

// open starts the tills, and those who look at pages and events.
func (s *shop) open(t *testing.T, nodes ...*harness.Server) {
	t.Helper()
	s.reach(nodes...)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	for range shopTills {
		s.working.Go(func() {
			for ctx.Err() == nil {
				s.saleMu.Lock()
				n := s.next
				s.next++
				s.saleMu.Unlock()
				s.sell(ctx, t, n)
				pause(ctx, tillPause)
			}
		})
	}
	s.working.Go(func() {
		for ctx.Err() == nil {
			s.lookAtAll(ctx, t)
			pause(ctx, lookPause)
		}
	})
	s.working.Go(func() {
		for cursor := ""; ctx.Err() == nil; pause(ctx, tillPause) {
			cursor = s.follow(ctx, cursor)
		}
	})
	t.Cleanup(s.closeShop)
}

func (s *shop) closeShop() {
	s.stop()
	s.working.Wait()
}

// reach tells the shop where the nodes are.
func (s *shop) reach(nodes ...*harness.Server) {
	for i := range s.bases {
		s.bases[i].Store(&nodes[i%len(nodes)].Base)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// sell repeats the request for a sale until it is acknowledged, or the shop closes.
func (s *shop) sell(ctx context.Context, t *testing.T, n int) {
	for begun, attempt := time.Now(), n; ctx.Err() == nil; attempt++ {
		got, err := s.sendSale(t, n, attempt)
		switch {
		case err == nil && got.Status == http.StatusAccepted:
			return
		case err == nil && !mayRepeat(got) && !isRefused(got):
			t.Errorf("sale %d: %d %s", n, got.Status, got.Body)
			return
		}
		if time.Since(begun) > tillLimit {
			t.Errorf("sale %d is not acknowledged within %s: %d %s, %v", n, tillLimit, got.Status, got.Body, err)
			return
		}
		pause(ctx, tillPause)
	}
}

func (s *shop) sendSale(t *testing.T, n, attempt int) (harness.Answer, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	got, err := s.postBody(t.Context(), *s.bases[attempt%len(s.bases)].Load(), n, saleBody(n))
	if err == nil && got.Status == http.StatusAccepted {
		s.saleMu.Lock()
		defer s.saleMu.Unlock()
		delete(s.gone, n)
		if !slices.Contains(s.sold, n) {
			s.sold = append(s.sold, n)
		}
	}
	return got, err
}

// get reads a resource of the taxpayer.
func (s *shop) get(ctx context.Context, n int, path string) (harness.Answer, error) {
	return s.client.Get(ctx, *s.bases[n%len(s.bases)].Load(), path)
}

// sale returns the number of the sale that a document is for, or -1.
func (d documentRead) sale() int {
	n, err := strconv.Atoi(strings.TrimPrefix(d.ExternalID, "ext-"))
	if err != nil {
		return -1
	}
	return n
}

// lookAtAll looks at every sale without a final status, at the last one first: its buyer
// waits for the page.
func (s *shop) lookAtAll(ctx context.Context, t *testing.T) {
	s.saleMu.Lock()
	sold := slices.DeleteFunc(slices.Clone(s.sold), func(n int) bool { return s.settled[n] })
	s.saleMu.Unlock()
	for _, n := range slices.Backward(sold) {
		if ctx.Err() != nil {
			return
		}
		s.look(t, n)
	}
}

// look reads the document of a sale, and its page when it has one.
func (s *shop) look(t *testing.T, n int) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	got, err := s.get(t.Context(), n/2, documentOf+strconv.Itoa(n))
	if err != nil || got.Status != http.StatusOK {
		return
	}
	var list struct{ Data []documentRead }
	if err := json.Unmarshal([]byte(got.Body), &list); err != nil || len(list.Data) > 1 {
		t.Errorf("sale %d: %s, %v", n, got.Body, err)
		return
	}
	s.saleMu.Lock()
	s.gone[n] = len(list.Data) == 0
	s.saleMu.Unlock()
	if len(list.Data) == 0 || list.Data[0].ENCF == "" {
		return
	}
	d := list.Data[0]
	s.see(d.ENCF, n, "", "answer")
	page, err := s.get(t.Context(), n/2, "fiscal-documents/"+d.ID+"/pdf")
	if err != nil || page.Status != http.StatusOK {
		return
	}
	legend := s.readPage(t, n, page.Body)
	s.saleMu.Lock()
	defer s.saleMu.Unlock()
	if legend && !s.pages[n] && s.first >= 0 && n >= s.first {
		s.legends[n%2]++
	}
	s.pages[n] = s.pages[n] || legend
	s.settled[n] = d.Status == "accepted"
}

// readPage reads the number and the content of a sale from its page, and reports whether it
// has the legend of a contingency.
func (s *shop) readPage(t *testing.T, n int, page string) (legend bool) {
	cmd := exec.CommandContext(t.Context(), "pdftotext", "-layout", "-enc", "UTF-8", "-", "-")
	cmd.Stdin = strings.NewReader(page)
	out, err := cmd.Output()
	if err != nil {
		if t.Context().Err() == nil {
			t.Errorf("pdftotext: %v", err)
		}
		return false
	}
	text := string(out)
	number, code := pageNumber.FindString(text), pageCode.FindStringSubmatch(text)
	if total := pesos(int64(firstNet+n) * 118); number == "" || code == nil || !strings.Contains(strings.ReplaceAll(text, ",", ""), total) {
		t.Errorf("the page of sale %d does not have its number, its code and its total %s:\n%s", n, total, text)
		return false
	}
	s.see(number, n, code[1], "page")
	return pageLegend.MatchString(text)
}

// follow reads the next events of the feed, and returns the cursor after them.
func (s *shop) follow(ctx context.Context, cursor string) string {
	s.gate.RLock()
	defer s.gate.RUnlock()
	path := "events?limit=100"
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	got, err := s.get(ctx, len(cursor), path)
	if err != nil || got.Status != http.StatusOK {
		if err == nil && got.Status == http.StatusBadRequest {
			return "" // the copy does not know the cursor
		}
		return cursor
	}
	var page struct {
		Data []struct {
			Type string       `json:"type"`
			Data documentRead `json:"data"`
		}
		Meta struct {
			NextCursor string `json:"next_cursor"`
			HasMore    bool   `json:"has_more"`
		}
	}
	if json.Unmarshal([]byte(got.Body), &page) != nil {
		return cursor
	}
	for _, e := range page.Data {
		if e.Type == event.ContingencyStarted {
			s.saleMu.Lock()
			if s.first < 0 {
				s.first = s.next
			}
			s.saleMu.Unlock()
		}
		if e.Data.ENCF != "" {
			s.see(e.Data.ENCF, e.Data.sale(), "", "event")
		}
	}
	return page.Meta.NextCursor
}

// maintain lets the authority be out of reach, or back.
func (s *shop) maintain(t *testing.T, is bool) {
	t.Helper()
	s.authority.call(t, http.MethodPut, "/config", map[string]bool{"maintenance": is})
}

// meetContingency lets the authority be out of reach until buyers have pages with the
// legend.
func (s *shop) meetContingency(t *testing.T) {
	t.Helper()
	s.maintain(t, true)
	s.awaitLegends(t, 2+rand.IntN(5))
	if rand.IntN(3) == 0 {
		s.maintain(t, false) // some of the documents that wait are sent
	}
	time.Sleep(rand.N(500 * time.Millisecond)) // what comes next meets any point of the work
}

// readAuthority reads everything that the authority has received, and returns how many
// documents that are.
func (s *shop) readAuthority(t *testing.T) int {
	t.Helper()
	var all []simulator.DocumentView
	decodeJSON(t, s.authority.call(t, http.MethodGet, "/documents", nil), &all)
	for _, d := range all {
		s.see(d.ENCF, saleOf(d.Total), d.Security, "authority")
	}
	return len(all)
}

// counts returns how many sales are acknowledged and settled, how many are gone, and how
// many pages there are.
func (s *shop) counts() (sold, settled, gone, pages int) {
	s.saleMu.Lock()
	defer s.saleMu.Unlock()
	for _, n := range s.sold {
		if s.settled[n] {
			settled++
		}
		if s.gone[n] {
			gone++
		}
	}
	return len(s.sold), settled, gone, len(s.pages)
}

// awaitSettled waits until so many sales are accepted and have their pages.
func (s *shop) awaitSettled(t *testing.T, count int) {
	t.Helper()
	harness.Eventually(t, shopLimit, strconv.Itoa(count)+" sales are accepted", func() bool {
		_, settled, _, _ := s.counts()
		return settled >= count || t.Failed()
	})
}

// awaitMore waits until so many more sales are accepted and have their pages.
func (s *shop) awaitMore(t *testing.T, count int) {
	t.Helper()
	_, settled, _, _ := s.counts()
	s.awaitSettled(t, settled+count)
}

// awaitLegends waits until buyers have so many pages of each type with the legend, of sales
// that began after the contingency.
func (s *shop) awaitLegends(t *testing.T, count int) {
	t.Helper()
	harness.Eventually(t, shopLimit, "buyers have pages with the legend", func() bool {
		s.saleMu.Lock()
		defer s.saleMu.Unlock()
		return t.Failed() || min(s.legends[0], s.legends[1]) >= count
	})
}

// awaitFence waits until the readiness of the taxpayer says that its ranges are fenced.
func (s *shop) awaitFence(t *testing.T) {
	t.Helper()
	harness.Eventually(t, shopLimit, "the ranges are fenced", func() bool {
		var shown json.RawMessage
		harness.Run(t, s.program, &shown, append([]string{"taxpayer", "show", s.client.Taxpayer}, s.shared...)...)
		return strings.Contains(string(shown), "sequence.fenced")
	})
}

// release reconciles. When the marks are lost, the command must ask for the last numbers
// first. They are what anybody has in the hand.
func (s *shop) release(t *testing.T, node []string, lost bool) {
	t.Helper()
	code, said := s.reconcile(t, node)
	if lost {
		if code != 1 || !strings.Contains(said, "--sent-up-to") {
			t.Errorf("reconcile without the marks: exit code %d\n%s", code, said)
		}
		s.gate.Lock() // nobody gets another number in the hand meanwhile
		s.readAuthority(t)
		stated := s.last()
		s.gate.Unlock()
		code, said = s.reconcile(t, node, stated...)
	}
	if code != 0 {
		t.Fatalf("reconcile: exit code %d\n%s", code, said)
	}
	t.Logf("%s", said)
}

// finish sells on after a release, also some of the sales that are gone, and waits until
// every document has its final status. Then it looks at everything once more.
func (s *shop) finish(t *testing.T, more int) {
	t.Helper()
	s.lookAgain(t)
	s.saleMu.Lock()
	var again []int
	for _, n := range s.sold {
		if s.gone[n] && n%3 == 0 {
			again = append(again, n)
		}
	}
	s.saleMu.Unlock()
	for _, n := range again {
		s.sell(t.Context(), t, n)
	}
	s.awaitMore(t, more)
	s.closeShop()
	s.settle(t, *s.bases[0].Load())
	s.lookAgain(t)
	for cursor, next := "-", ""; cursor != next; {
		cursor = next
		next = s.follow(t.Context(), cursor)
	}
}

// lookAgain looks at every sale, also at those that had their final status.
func (s *shop) lookAgain(t *testing.T) {
	t.Helper()
	s.saleMu.Lock()
	clear(s.settled)
	s.saleMu.Unlock()
	s.lookAtAll(t.Context(), t)
}
