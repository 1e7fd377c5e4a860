package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestW10TheFeedIsInOrderAndGoesOn(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		if f := w.events(""); len(f.Data) != 0 || f.Meta.HasMore || f.Meta.NextCursor == "" {
			t.Fatalf("an empty feed: %+v", f)
		}
		start := w.events("").Meta.NextCursor
		var want []string
		for i := range 5 {
			w.clock.advance(time.Millisecond)
			want = append(want, w.tell("taxpayer.contingency_started").ID)
			if i == 2 {
				w.events("") // the places of those so far are given by a reader
			}
		}
		var got []string
		query, pages := "?limit=2&cursor="+start, 0
		for more := true; more; pages++ {
			f := w.events(query)
			got = append(got, f.ids()...)
			query, more = "?limit=2&cursor="+f.Meta.NextCursor, f.Meta.HasMore
		}
		if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
			t.Errorf("%d pages (-want +got):\n%s", pages, diff)
		}
		end := strings.TrimPrefix(query, "?limit=2&cursor=")
		if f := w.events(query); len(f.Data) != 0 || f.Meta.HasMore || f.Meta.NextCursor != end {
			t.Errorf("behind the last: %+v", f)
		}
		late := w.tell("taxpayer.contingency_ended").ID
		if f := w.events("?cursor=" + end); len(f.Data) != 1 || f.Data[0].ID != late || f.Meta.HasMore {
			t.Errorf("behind the last, after another: %+v", f)
		}
		if diff := cmp.Diff(append(want, late), w.events("?limit=100").ids()); diff != "" {
			t.Errorf("all (-want +got):\n%s", diff)
		}
	})
}

// What is read is what was written, but for the link.
func TestW10EventsAreReadAsTheyAreSent(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		n := w.tellOfDocument()
		a := w.send(request{path: "events"})
		want := bytes.Replace(n.Body, []byte(`"self":"/v1/`), []byte(`"self":"https://invoices.example/v1/`), 1)
		if !bytes.HasPrefix(a.body, append([]byte(`{"data":[`), append(want, `],"meta":`...)...)) {
			t.Errorf("want %s, got %s", want, a)
		}
	})
}

func TestW10WaitingEndsWithAnEvent(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		first := w.tell("taxpayer.contingency_started").ID
		if f := w.events("?wait=30"); len(f.Data) != 1 || f.Data[0].ID != first {
			t.Errorf("there is something: %+v", f)
		}
		cursor := w.events("").Meta.NextCursor
		waiting := w.sendLater(request{path: "events?wait=30&cursor=" + cursor})
		w.awaitWaiting(t, 1)
		told := w.tell("taxpayer.contingency_ended").ID
		a := soon(t, "an event", waiting)
		var f feed
		decode(t, a.body, &f)
		if len(f.Data) != 1 || f.Data[0].ID != told {
			t.Errorf("what came: %s", a)
		}
		// When nothing comes it ends as well.
		cursor = f.Meta.NextCursor
		if f := w.events("?wait=1&cursor=" + cursor); len(f.Data) != 0 || f.Meta.NextCursor != cursor || f.Meta.HasMore {
			t.Errorf("nothing came: %+v", f)
		}
	})
}

// Another process has nobody to tell of what it has written.
func TestW10WhatAnotherNodeTellsIsSeen(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres") {
			return // one process has the file
		}
		opt := liveOptions()
		opt.masterKey = filepath.Join(t.TempDir(), "master.key")
		w := start(t, address, opt)
		other := node(t, address, opt)
		other.taxpayer = w.taxpayer
		waiting := w.sendLater(request{path: "events?wait=30"})
		w.awaitWaiting(t, 1)
		told := other.tell("taxpayer.contingency_started").ID
		if a := soon(t, "an event", waiting); !bytes.Contains(a.body, []byte(told)) {
			t.Errorf("what came: %s", a)
		}
	})
}

func TestW10TheFeedIsStrict(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		w.tell("taxpayer.contingency_started")
		other := *w
		other.taxpayer = w.newTaxpayer()
		other.key = w.newKey(other.taxpayer, w.opt.env, apikey.AllScopes()...)
		foreign := other.events("").Meta.NextCursor
		own := w.events("").Meta.NextCursor
		if foreign == own {
			t.Fatal("two taxpayers have one cursor")
		}
		w.hook("a")
		w.hook("b")
		var page struct {
			Meta struct {
				NextCursor string `json:"next_cursor"`
			} `json:"meta"`
		}
		decode(t, w.send(request{path: "webhook-endpoints?limit=1"}).body, &page)
		for query, code := range map[string]string{
			"cursor=" + foreign: fiscal.CodeInvalidCursor, "cursor=" + page.Meta.NextCursor: fiscal.CodeInvalidCursor, "cursor=" + own[:len(own)-1]: fiscal.CodeInvalidCursor,
			"wait=31": fiscal.CodeOutOfRange, "wait=-1": fiscal.CodeOutOfRange, "wait=1.0": fiscal.CodeInvalidFormat, "wait=05": fiscal.CodeInvalidFormat,
			"wait=x": fiscal.CodeInvalidFormat, "wait=": fiscal.CodeTooShort, "wait=1&wait=1": fiscal.CodeDuplicateParameter,
			"limit=0": fiscal.CodeOutOfRange, "limit=101": fiscal.CodeOutOfRange, "since=2026-11-15": fiscal.CodeUnknownParameter,
		} {
			a := w.send(request{path: "events?" + query})
			if a.status != http.StatusBadRequest || a.code() != "bad_request" || a.details(t)[0].Code != code {
				t.Errorf("%s: want %s, got %s", query, code, a)
			}
		}
		for query := range map[string]bool{"wait=0": true, "wait=30&limit=1": true, "limit=100": true} {
			if f := w.events("?" + query); len(f.Data) != 1 {
				t.Errorf("%s: %+v", query, f)
			}
		}
		if f := other.events(""); len(f.Data) != 0 {
			t.Errorf("another taxpayer's: %+v", f)
		}
	})
}

// awaitWaiting waits until so many requests wait for news.
func (w *world) awaitWaiting(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " requests wait"), func() bool { return w.api.Waiting() == n })
}
