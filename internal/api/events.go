package api

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// feedMeta is the meta member of a page of the feed. Unlike in other lists, the
// last page has a next_cursor too: later events follow it.
type feedMeta struct {
	RequestID  string `json:"request_id"`
	NextCursor string `json:"next_cursor"`
	HasMore    bool   `json:"has_more"`
}

// feedRequest is the part of the feed that a client asks for.
type feedRequest struct {
	after int64         // position of the last event that the client has; 0: none
	limit int           // events of a page
	wait  time.Duration // how long to wait for an event when there is none
}

// listEvents answers the events of the taxpayer after a position of the feed,
// oldest first. When there are none it waits for one, if the client asks for it.
func (a *API) listEvents(x *exchange) error {
	query, err := readQuery(x.r, "cursor", "limit", "wait")
	if err != nil {
		return err
	}
	page, err := a.feedRequest(x.scope, query)
	if err != nil {
		return err
	}
	events, err := a.readFeed(x, page)
	if err != nil {
		return err
	}
	m := feedMeta{RequestID: x.id, NextCursor: query["cursor"]}
	if m.HasMore = len(events) > page.limit; m.HasMore {
		events = events[:page.limit]
	}
	data := make([]json.RawMessage, len(events))
	for i, e := range events {
		data[i] = event.Absolute(e.Body, a.o.BaseURL)
		page.after = e.Number
	}
	if m.NextCursor == "" || len(events) > 0 {
		m.NextCursor = a.cursors().Make(positionID(page.after), feedList(x.scope))
	}
	return x.respondWith(data, m)
}

// readFeed reads one event more than the page holds. When there is none and the
// client wants to wait, the request gives its slots back and waits; it takes
// slots again to read the event that came.
func (a *API) readFeed(x *exchange, page feedRequest) ([]store.Event, error) {
	read := func() ([]store.Event, error) {
		ctx, cancel := x.deadline()
		defer cancel()
		return a.o.Feed.Read(ctx, x.scope, page.after, page.limit+1)
	}
	await := func(ctx context.Context) error { return a.o.Feed.Wait(ctx, x.scope, page.after) }
	if a.o.Environment == fiscal.Sandbox || a.o.Feed == nil {
		read = func() ([]store.Event, error) { return nil, nil }
		await = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	}
	events, err := read()
	if err != nil || len(events) > 0 || page.wait == 0 {
		return events, err
	}
	var waitErr error
	refused := a.wait(x, page.wait, func(ctx context.Context) {
		waitErr = await(ctx)
		if ctx.Err() != nil {
			waitErr = ctx.Err() // the time is over; the database did not fail
		}
	})
	if refused != nil || waitErr != nil {
		return nil, nil
	}
	if err := a.stillAllowed(x); err != nil {
		return nil, err
	}
	if err := a.takeSlot(x); err != nil {
		return nil, err
	}
	return read()
}

// feedRequest reads the parameters of the feed.
func (a *API) feedRequest(scope store.Scope, q query) (feedRequest, error) {
	var problems queryProblems
	page := feedRequest{limit: q.limit(&problems)}
	page.wait = time.Duration(q.number("wait", 0, 0, maxFeedWait, &problems)) * time.Second
	if id, ok := a.readCursor(q, feedList(scope), lang.Messagef(
		"must be a next_cursor of the events of this taxpayer", "debe ser un next_cursor de los eventos de este contribuyente"), &problems); ok {
		page.after = positionOf(id)
	}
	return page, problems.err()
}

// feedList identifies the feed of a taxpayer in its cursors.
func feedList(scope store.Scope) cursor.List {
	return cursor.NewList("events", string(scope.Environment), scope.TaxpayerID)
}

// positionID returns a position in the feed in the form that a cursor holds.
func positionID(n int64) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)) //nolint:gosec // positions start at 1
	return id
}

// positionOf is the inverse of positionID.
func positionOf(id uuid.UUID) int64 {
	return int64(binary.BigEndian.Uint64(id[8:])) //nolint:gosec // cursors are authenticated: the value comes from positionID
}
