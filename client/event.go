package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// maxEventWait is how long the service lets a reader of events wait.
const maxEventWait = 30 * time.Second

// Event is something that the service tells, the same in the feed and in what it
// posts. Kinds may be added: pass over those that you do not know.
type Event struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Timestamp   time.Time       `json:"timestamp"`
	Environment string          `json:"environment"`
	TaxpayerID  string          `json:"taxpayer_id"`
	Data        json.RawMessage `json:"data"`
}

// EventOptions say from where to read events.
type EventOptions struct {
	Cursor string        // NextCursor of the page before; empty: from the first event
	Limit  int           // events in a page, 1 to 100; 0 leaves it to the service
	Wait   time.Duration // how long to wait for an event when there is none, up to 30 seconds
}

// Events reads one page of events, oldest first. Its Meta.NextCursor leads on
// from there, also when the page is empty.
func (c *Client) Events(ctx context.Context, o EventOptions) (Response[[]Event], error) {
	query := PageOptions{o.Cursor, o.Limit}.query()
	if o.Wait > 0 {
		query.Set("wait", strconv.Itoa(seconds(o.Wait)))
	}
	return fetch[[]Event](ctx, c, call{method: http.MethodGet, path: "/events", query: query, want: http.StatusOK})
}

// FollowEvents goes through all events and waits for more, a page at a time. Keep
// Meta.NextCursor with what was made of a page: from there a later call goes on.
// It stops after the first error, which it yields with an empty page. Without a
// Wait it waits for as long as the service lets it.
func (c *Client) FollowEvents(ctx context.Context, o EventOptions) iter.Seq2[Response[[]Event], error] {
	if o.Wait == 0 {
		o.Wait = maxEventWait
	}
	return func(yield func(Response[[]Event], error) bool) {
		o := o // each loop over the sequence starts from the same place
		for {
			page, err := c.Events(ctx, o)
			if err == nil && len(page.Data) == 0 {
				err = c.wait(ctx, firstWait) // a service that is ending answers at once
			}
			if err != nil {
				yield(Response[[]Event]{}, err)
				return
			}
			o.Cursor = page.Meta.NextCursor
			if len(page.Data) > 0 && !yield(page, nil) {
				return
			}
		}
	}
}
