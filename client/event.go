package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// maxEventWait is the longest wait that the service allows.
const maxEventWait = 30 * time.Second

// Event is an event of the service. The feed and the webhooks have the same events.
// The service may add kinds: ignore the ones that you do not know.
type Event struct {
	ID          string          `json:"id"` // the same when the event is sent again
	Type        EventType       `json:"type"`
	Timestamp   time.Time       `json:"timestamp"`
	Environment string          `json:"environment"`
	TaxpayerID  string          `json:"taxpayer_id"`
	Data        EventData       `json:"-"`    // typed: use a type switch
	Raw         json.RawMessage `json:"data"` // the JSON of the data, with members that Data does not have
}

// UnmarshalJSON decodes an event and its data. Data is UnknownData when the kind is not
// known.
func (e *Event) UnmarshalJSON(text []byte) error {
	type plain Event
	var p plain
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	p.Data = decodeData(p.Type, p.Raw)
	*e = Event(p)
	return nil
}

// EventOptions select the events to read.
type EventOptions struct {
	Cursor string        // NextCursor of the previous page; empty for the first event
	Limit  int           // events per page, 1 to 100; 0 for the default of the service
	Wait   time.Duration // how long to wait when there is no event, up to 30 seconds
}

// Events reads one page of events, oldest first. Use its Meta.NextCursor for the
// next page, also when the page is empty.
func (c *Client) Events(ctx context.Context, o EventOptions) (Response[[]Event], error) {
	query := PageOptions{o.Cursor, o.Limit}.query()
	if o.Wait > 0 {
		query.Set("wait", strconv.Itoa(seconds(o.Wait)))
	}
	return fetch[[]Event](ctx, c, call{method: http.MethodGet, path: "/events", query: query, want: http.StatusOK})
}

// AllEvents yields the events from a cursor up to the end of the feed, and ends there.
// It stops after the first error, which it yields with an empty event. To continue later
// from where it ended, use FollowEvents or Events, which show the cursor.
func (c *Client) AllEvents(ctx context.Context, o EventOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		o := o // each loop over the sequence starts at the same cursor
		for {
			page, err := c.Events(ctx, o)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page.Data {
				if !yield(e, nil) {
					return
				}
			}
			if !page.Meta.HasMore {
				return
			}
			o.Cursor = page.Meta.NextCursor
		}
	}
}

// FollowEvents yields pages of events and waits for new ones. Store Meta.NextCursor
// together with the result of each page, so that a later call can continue there. It
// stops after the first error, which it yields with an empty page. Without a Wait it
// uses the longest wait of the service.
func (c *Client) FollowEvents(ctx context.Context, o EventOptions) iter.Seq2[Response[[]Event], error] {
	if o.Wait == 0 {
		o.Wait = maxEventWait
	}
	return func(yield func(Response[[]Event], error) bool) {
		o := o // each loop over the sequence starts at the same cursor
		for {
			page, err := c.Events(ctx, o)
			if err == nil && len(page.Data) == 0 {
				err = c.wait(ctx, firstWait) // a service that stops answers without waiting
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
