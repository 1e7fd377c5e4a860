package api

import (
	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// pageRequest is the part of a list that a client asks for.
type pageRequest struct {
	cursors cursor.Keys
	list    cursor.List
	before  string // id of the last item of the page before; empty for the first page
	limit   int    // items of a page
}

// pageMeta is the meta member of a page.
type pageMeta struct {
	RequestID  string  `json:"request_id"`
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// pageRequest reads the parameters limit and cursor.
func (a *API) pageRequest(q query, list cursor.List, problems *queryProblems) pageRequest {
	p := pageRequest{cursors: a.cursors(), list: list, limit: q.limit(problems)}
	if id, ok := a.readCursor(q, list, lang.Messagef(
		"must be the next_cursor of a page of this list, with the same filters",
		"debe ser el next_cursor de una página de esta lista, con los mismos filtros"), problems); ok {
		p.before = id.String()
	}
	return p
}

// unfilteredPage reads the parameters of a list that has no filters.
func (a *API) unfilteredPage(q query, list cursor.List) (pageRequest, error) {
	var problems queryProblems
	p := a.pageRequest(q, list, &problems)
	return p, problems.err()
}

// readCursor reads the parameter cursor. It returns false when the parameter is
// absent or not valid.
func (a *API) readCursor(q query, list cursor.List, message lang.Message, problems *queryProblems) (uuid.UUID, bool) {
	text, ok := q["cursor"]
	if !ok {
		return uuid.UUID{}, false
	}
	id, ok := a.cursors().Read(text, list)
	if !ok {
		problems.add("cursor", fiscal.CodeInvalidCursor, message)
	}
	return id, ok
}

// respondPage answers one page, newest first. The caller must have read
// p.limit+1 rows: the extra one shows that another page follows. The function
// render returns the id and the resource of a row.
func respondPage[Row, Resource any](x *exchange, p pageRequest, rows []Row, render func(Row) (id string, resource Resource)) error {
	meta := pageMeta{RequestID: x.id}
	more := len(rows) > p.limit
	if more {
		rows = rows[:p.limit]
	}
	data := make([]Resource, len(rows))
	last := ""
	for i, row := range rows {
		last, data[i] = render(row)
	}
	if more {
		id, err := uuid.Parse(last)
		if err != nil {
			return err
		}
		next := p.cursors.Make(id, p.list)
		meta.NextCursor = &next
	}
	return x.respondWith(data, meta)
}
