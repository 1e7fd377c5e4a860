package notify

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func TestP105WhatAnAnswerMeans(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		for _, tt := range []struct {
			name     string
			code     int
			header   [2]string
			disabled bool
			least    time.Duration
			places   int64 // of concurrency
		}{
			{"410 disables", http.StatusGone, [2]string{}, true, 5 * time.Second, 4},
			{"302 is a failure", http.StatusFound, [2]string{"Location", "http://127.0.0.1:1/"}, false, 5 * time.Second, 4},
			{"429 is left alone as it asks", http.StatusTooManyRequests, [2]string{"Retry-After", "3600"}, false, time.Hour, 2},
			{"503 is left alone as it asks", http.StatusServiceUnavailable, [2]string{"Retry-After", "7200"}, false, 2 * time.Hour, 4},
			{"502 gets half as much", http.StatusBadGateway, [2]string{}, false, 5 * time.Second, 2},
			{"504 gets half as much", http.StatusGatewayTimeout, [2]string{}, false, 5 * time.Second, 2},
			{"400 is a failure", http.StatusBadRequest, [2]string{}, false, 5 * time.Second, 4},
		} {
			t.Run(tt.name, func(t *testing.T) {
				o.t = t
				o.scope = o.taxpayer()
				r := newReceiver(t, func(w http.ResponseWriter, n int) {
					if n > 1 {
						return
					}
					if tt.header[0] != "" {
						w.Header().Set(tt.header[0], tt.header[1])
					}
					w.WriteHeader(tt.code)
				})
				other := newReceiver(t, status(http.StatusOK))
				e, _ := o.endpoint(r.URL, "fiscal_document.accepted")
				o.endpoint(other.URL, event.EndpointDisabled)
				n := o.tell(o.scope, "fiscal_document.accepted")
				s := o.node()
				o.round(s)
				after := o.read(e)
				if (after.Status == store.EndpointDisabled) != tt.disabled || after.Failures != 1 || after.Concurrency != tt.places {
					t.Errorf("the endpoint: %+v", after)
				}
				if log := o.log(e); len(log) != 1 || log[0].Error != "status_"+strconv.Itoa(tt.code) || log[0].HTTPStatus != int64(tt.code) {
					t.Errorf("the log: %+v", log)
				}
				d, err := o.store.DeliveriesOf(t.Context(), o.scope, n.ID)
				o.must(err)
				wait := d[0].RunAt.Sub(o.now())
				if d[0].State != store.DeliveryPending || wait < tt.least || wait > tt.least+tt.least/10 {
					t.Errorf("%s, and again after %s, want %s", d[0].State, wait, tt.least)
				}
				o.round(s) // the others are told that an endpoint was disabled, if it was
				if told := other.letters(); (len(told) == 1) != tt.disabled {
					t.Errorf("the other endpoint was told %d times", len(told))
				} else if tt.disabled && !bytes.Contains(told[0].body, []byte(`"data":{"object":"webhook_endpoint","id":"`+e.ID+`","url":"`+r.URL+`","reason":"gone"}`)) {
					t.Errorf("the other endpoint was told %s", told[0].body)
				}
				o.set(d[0].RunAt)
				if sent := o.round(s); sent != map[bool]int{true: 0, false: 1}[tt.disabled] {
					t.Errorf("then %d were sent", sent)
				}
				if tt.disabled {
					_, err := o.Enable(t.Context(), o.scope, e.ID)
					o.must(err)
					if o.round(s) != 1 || len(r.letters()) != 2 {
						t.Error("what waited did not go on when the endpoint was enabled")
					}
				}
				o.must(o.Delete(t.Context(), o.scope, e.ID))
			})
		}
	})
}

// An endpoint that fails for five days is disabled; what it missed is told by a
// replay, under its own id.
func TestFiveDaysOfFailuresDisable(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		var up atomic.Bool
		r := newReceiver(t, func(w http.ResponseWriter, _ int) {
			if !up.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		e, _ := o.endpoint(r.URL, "fiscal_document.accepted")
		s, began := o.node(), o.now()
		var told []string
		for o.read(e).Status == store.EndpointEnabled {
			if o.now().Sub(began) > 6*24*time.Hour {
				t.Fatal("never disabled")
			}
			told = append(told, o.tell(o.scope, "fiscal_document.accepted").ID)
			o.advance(6 * time.Hour)
			for o.round(s) > 0 {
				o.advance(restTime)
			}
		}
		if span := o.now().Sub(began); span < 5*24*time.Hour {
			t.Errorf("disabled after %s", span)
		}
		if e := o.read(e); e.DisabledReason != store.DisabledFailing {
			t.Errorf("because %s", e.DisabledReason)
		}
		since := o.now()
		missed := o.tell(o.scope, "fiscal_document.accepted").ID
		other := o.tell(o.scope, "fiscal_document.rejected").ID
		up.Store(true)
		_, err := o.Enable(t.Context(), o.scope, e.ID)
		o.must(err)
		// heard plays on until nothing is due and returns what was heard since.
		heard := func() (ids []string) {
			before := len(r.letters())
			o.advance(48 * time.Hour)
			for o.round(s) > 0 {
				continue
			}
			for _, l := range r.letters()[before:] {
				ids = append(ids, l.id())
			}
			return ids
		}
		if ids := heard(); slices.Contains(ids, missed) || len(ids) == 0 {
			t.Errorf("enabled: %d were sent, what was missed: %v", len(ids), slices.Contains(ids, missed))
		}
		n, err := o.Replay(t.Context(), o.scope, e.ID, Replay{Failed: true})
		if ids := heard(); err != nil || int(n) != len(ids) || !slices.Contains(ids, missed) || slices.Contains(ids, other) {
			t.Errorf("replayed %d, %v: %v", n, err, ids)
		}
		n, err = o.Replay(t.Context(), o.scope, e.ID, Replay{Since: since})
		if ids := heard(); err != nil || n != 1 || !slices.Equal(ids, []string{missed}) {
			t.Errorf("replayed %d since, %v: %v", n, err, ids)
		}
		n, err = o.Replay(t.Context(), o.scope, e.ID, Replay{NoticeID: other})
		if ids := heard(); err != nil || n != 1 || !slices.Equal(ids, []string{other}) {
			t.Errorf("replayed %d event, %v: %v", n, err, ids)
		}
		if _, err := o.Replay(t.Context(), o.scope, e.ID, Replay{}); err == nil {
			t.Error("a replay of nothing was done")
		}
		heardAll := map[string]bool{}
		for _, l := range r.letters() {
			heardAll[l.id()] = true
		}
		for _, id := range told {
			if !heardAll[id] {
				t.Errorf("%s was never told", id)
			}
		}
	})
}
