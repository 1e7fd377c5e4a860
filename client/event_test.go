package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// eventPage answers with events and a cursor.
func eventPage(cursor string, more bool, ids ...string) http.HandlerFunc {
	events := make([]string, len(ids))
	for i, id := range ids {
		events[i] = fmt.Sprintf(`{"id":%q,"type":"fiscal_document.accepted","timestamp":"2026-11-14T12:00:00.000Z","data":{"object":"fiscal_document"}}`, id)
	}
	return reply(http.StatusOK, fmt.Sprintf(`{"data":[%s],"meta":{"request_id":"req_1","next_cursor":%q,"has_more":%v}}`, strings.Join(events, ","), cursor, more))
}

func TestEvents(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, eventPage("n", true, "evt_1", "evt_2"))
	got, err := c.Events(testContext(t), EventOptions{Cursor: "c&", Limit: 2, Wait: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Data[1].ID != "evt_2" || string(got.Data[1].Raw) != `{"object":"fiscal_document"}` || got.Meta.NextCursor != "n" || !got.Meta.HasMore {
		t.Errorf("got %+v", got)
	}
	if want := "/v1/taxpayers/" + taxpayer + "/events?cursor=c%26&limit=2&wait=2"; s.seen[0].uri != want {
		t.Errorf("asked for %s, want %s", s.seen[0].uri, want)
	}
}

func TestFollowEvents(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, eventPage("1", true, "a", "b"), eventPage("2", false, "c"), eventPage("2", false), eventPage("3", false, "d"), reply(403, failure(CodeForbidden)))
	var got []string
	var cursor string
	var last error
	for page, err := range c.FollowEvents(testContext(t), EventOptions{Cursor: "0"}) {
		if last = err; err != nil {
			break
		}
		for _, e := range page.Data {
			got = append(got, e.ID)
		}
		cursor = page.Meta.NextCursor
	}
	if e, ok := asError(last); !ok || e.Code != CodeForbidden {
		t.Errorf("ended with %v", last)
	}
	if strings.Join(got, " ") != "a b c d" || cursor != "3" {
		t.Errorf("got %v up to %s", got, cursor)
	}
	for i, want := range []string{"0", "1", "2", "2", "3"} {
		if uri := s.seen[i].uri; !strings.HasSuffix(uri, "?cursor="+want+"&wait=30") {
			t.Errorf("request %d was for %s", i+1, uri)
		}
	}
	if len(s.waits) != 1 {
		t.Errorf("waited %v, want once, after the empty page", s.waits)
	}
	for range c.FollowEvents(testContext(t), EventOptions{}) {
		break
	}
}

func TestWithWait(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, reply(http.StatusOK, created))
	for _, opts := range [][]CallOption{nil, {WithWait(20 * time.Second)}, {WithWait(time.Millisecond)}, {WithWait(-1)}} {
		if _, err := c.Invoice(testContext(t), someID, opts...); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"", "wait=20", "wait=1", "wait=0"} {
		if got := s.seen[i].header.Get("Prefer"); got != want {
			t.Errorf("request %d: Prefer %q, want %q", i+1, got, want)
		}
	}
	c, s = start(t, nil, reply(http.StatusAccepted, created))
	if _, err := c.CreateInvoice(testContext(t), "k", InvoiceRequest{}, WithWait(5*time.Second)); err != nil || s.seen[0].header.Get("Prefer") != "wait=5" {
		t.Errorf("a creation: %v, %v", err, s.seen[0].header)
	}
}
