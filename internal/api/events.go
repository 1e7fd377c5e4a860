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
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// feedMeta says where to go on reading, also where nothing is left to read.
type feedMeta struct {
	RequestID  string `json:"request_id"`
	NextCursor string `json:"next_cursor"`
	HasMore    bool   `json:"has_more"`
}

// feedPage is what is asked of a feed.
type feedPage struct {
	after int64
	limit int
	wait  time.Duration
}

// listEvents answers what the taxpayer has been told behind a place, in order,
// and waits for something if there is nothing.
func (a *API) listEvents(x *exchange) error {
	query, err := readQuery(x.r, "cursor", "limit", "wait")
	if err != nil {
		return err
	}
	page, err := a.feedPage(x.scope, query)
	if err != nil {
		return err
	}
	notices, err := a.readFeed(x, page)
	if err != nil {
		return err
	}
	m := feedMeta{RequestID: x.id, NextCursor: query["cursor"]}
	if m.HasMore = len(notices) > page.limit; m.HasMore {
		notices = notices[:page.limit]
	}
	data := make([]json.RawMessage, len(notices))
	for i, n := range notices {
		data[i] = event.Absolute(n.Body, a.BaseURL)
		page.after = n.Number
	}
	if m.NextCursor == "" || len(notices) > 0 {
		m.NextCursor = a.cursors.Make(placeID(page.after), feedList(x.scope))
	}
	return x.respondWith(data, m)
}

// readFeed reads one notice more than a page has. A request that has waited is
// one of those that execute again once there is something.
func (a *API) readFeed(x *exchange, page feedPage) ([]store.Event, error) {
	read := func() ([]store.Event, error) {
		ctx, cancel := x.deadline()
		defer cancel()
		return a.Feed.Read(ctx, x.scope, page.after, page.limit+1)
	}
	look := func(ctx context.Context) error { return a.Feed.Wait(ctx, x.scope, page.after) }
	if a.Environment == fiscal.Sandbox || a.Feed == nil {
		read = func() ([]store.Event, error) { return nil, nil }
		look = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	}
	notices, err := read()
	if err != nil || len(notices) > 0 || page.wait == 0 {
		return notices, err
	}
	var nothing error
	waited := a.wait(x, page.wait, func(ctx context.Context) {
		nothing = look(ctx)
		if ctx.Err() != nil {
			nothing = ctx.Err() // that the time was up is no fault of the database
		}
	})
	if !waited || nothing != nil {
		return nil, nil
	}
	if err := a.enter(x); err != nil {
		return nil, err
	}
	return read()
}

// feedPage reads the parameters of the feed.
func (a *API) feedPage(scope store.Scope, q query) (feedPage, error) {
	var problems fiscal.Problems
	problem := func(field, code, message string) {
		problems = append(problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	page := feedPage{limit: q.limit(problem)}
	page.wait = time.Duration(q.number("wait", 0, 0, maxFeedWait, problem)) * time.Second
	if text, ok := q["cursor"]; ok {
		if id, ok := a.cursors.Read(text, feedList(scope)); ok {
			page.after = placeOf(id)
		} else {
			problem("cursor", fiscal.CodeInvalidCursor, "want the next_cursor of this taxpayer's events")
		}
	}
	if len(problems) > 0 {
		return feedPage{}, badRequest("the query string is not valid; see details", problems...)
	}
	return page, nil
}

func feedList(scope store.Scope) cursor.List {
	return cursor.NewList("events", string(scope.Environment), scope.TaxpayerID)
}

// placeID is a place in the feed as a cursor can hold it.
func placeID(n int64) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)) //nolint:gosec // places are counted from 1
	return id
}

func placeOf(id uuid.UUID) int64 {
	return int64(binary.BigEndian.Uint64(id[8:])) //nolint:gosec // nobody else makes a cursor
}
