package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lines []string
		want  int // -1: no preference
	}{
		{nil, -1},
		{[]string{""}, -1},
		{[]string{"wait=10"}, 10},
		{[]string{"wait=0"}, 0},
		{[]string{"wait=20"}, 20},
		{[]string{"wait=21"}, 20},
		{[]string{"wait=99999999999999999999999"}, 20},
		{[]string{"wait=007"}, 7},
		{[]string{"WAIT = 5"}, 5},
		{[]string{`wait="5"`}, 5},
		{[]string{"respond-async, wait=5"}, 5},
		{[]string{"respond-async", "wait=5;a=b"}, 5},
		{[]string{`note="a, wait=3", wait=5`}, 5},
		{[]string{`note="a\", wait=3", wait=5`}, 5},
		{[]string{"wait=5, wait=6"}, 5},
		{[]string{"wait=x, wait=6"}, -1},
		{[]string{"wait"}, -1},
		{[]string{"wait="}, -1},
		{[]string{"wait=-1"}, -1},
		{[]string{"wait=+1"}, -1},
		{[]string{"wait=1.5"}, -1},
		{[]string{"wait=5s"}, -1},
		{[]string{`wait="5`}, -1},
		{[]string{`"wait=5`}, -1},
		{[]string{"waits=5"}, -1},
		{[]string{"wait=٣"}, -1},
		{[]string{";wait=5"}, -1},
	} {
		t.Run(fmt.Sprint(tt.lines), func(t *testing.T) {
			t.Parallel()
			got, ok := preferredWait(http.Header{"Prefer": tt.lines})
			if ok != (tt.want >= 0) || (ok && got != tt.want) {
				t.Errorf("%q: %d, %v, want %d", tt.lines, got, ok, tt.want)
			}
		})
	}
}

func TestPreferredWaitIsLimited(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`([a-z"\\=;, 0-9]|wait=[0-9]{0,12}|WAIT ?= ?"[0-9]*"){0,6}`).Draw(t, "line")
		n, ok := preferredWait(http.Header{"Prefer": {line}})
		if n < 0 || n > maxPreferredWait || (ok && !strings.Contains(strings.ToLower(line), "wait")) {
			t.Errorf("%q: %d, %v", line, n, ok)
		}
	})
}

func TestWaitsEndTogether(t *testing.T) {
	t.Parallel()
	w := &waits{}
	var all []context.Context
	var done []func()
	for range 10 {
		ctx, end, ok := w.begin(t.Context(), time.Hour)
		if !ok {
			t.Fatal("a wait was refused")
		}
		all, done = append(all, ctx), append(done, end)
	}
	done[0]()
	for i, ctx := range all {
		if ended := ctx.Err() != nil; ended != (i == 0) {
			t.Fatalf("wait %d has ended: %v", i, ended)
		}
	}
	w.end()
	for i, ctx := range all {
		if ctx.Err() == nil {
			t.Fatalf("wait %d goes on after end", i)
		}
	}
	if _, _, ok := w.begin(t.Context(), time.Hour); ok {
		t.Error("a wait began after end")
	}
	for _, end := range done {
		end()
	}
	if len(w.cancels) != 0 {
		t.Errorf("%d waits are still known", len(w.cancels))
	}
}
