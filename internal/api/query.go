package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	defaultLimit = 25
	maxLimit     = 100
	maxText      = 200

	// maxQueryProblems keeps a short query from having a long answer.
	maxQueryProblems = 100
)

// query holds the parameters of a request, each given once and not empty.
type query map[string]string

// readQuery reads the query string strictly: a parameter that is misspelt must
// not silently list everything.
func readQuery(r *http.Request, allowed ...string) (query, error) {
	found := make(query)
	var problems fiscal.Problems
	problem := func(field, code, message string) {
		problems = append(problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	raw := r.URL.RawQuery
	if strings.Contains(raw, ";") {
		problem("", fiscal.CodeInvalidFormat, "parameters are separated by &")
		raw = ""
	}
	for part := range strings.SplitSeq(raw, "&") {
		if raw == "" {
			break
		}
		if len(problems) == maxQueryProblems {
			problem("", fiscal.CodeTooManyErrors, "only the first problems are listed")
			break
		}
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, ok := unescape(rawName)
		value, okValue := unescape(rawValue)
		_, repeated := found[name]
		switch {
		case !ok:
			problem("", fiscal.CodeInvalidFormat, "a parameter's name is not percent-encoded UTF-8 text")
		case !slices.Contains(allowed, name):
			problem(cut(name), fiscal.CodeUnknownParameter, "this operation knows "+orNone(allowed))
		case repeated:
			problem(name, fiscal.CodeDuplicateParameter, "give it once")
		case !okValue:
			problem(name, fiscal.CodeInvalidFormat, "the value is not percent-encoded UTF-8 text without control characters")
		case value == "":
			problem(name, fiscal.CodeTooShort, "the value is empty")
		}
		if ok {
			found[name] = value
		}
	}
	if len(problems) > 0 {
		return nil, badRequest("the query string is not valid; see details", problems...)
	}
	return found, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no parameters"
	}
	return strings.Join(names, ", ")
}

// cut keeps what a client sent from filling an answer.
func cut(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:63]) + "…"
	}
	return s
}

// unescape decodes a part of the query to plain text.
func unescape(s string) (string, bool) {
	text, err := url.QueryUnescape(s)
	if err != nil || !utf8.ValidString(text) {
		return "", false
	}
	for _, c := range text {
		if c < 0x20 {
			return "", false
		}
	}
	return text, true
}

// required is a text parameter that must be there.
func (q query) required(name string) (string, error) {
	value, ok := q[name]
	if !ok {
		return "", badRequest("the parameter "+name+" is required",
			fiscal.Problem{Field: name, Code: fiscal.CodeRequired, Message: "give " + name})
	}
	if utf8.RuneCountInString(value) > maxText {
		return "", badRequest("the parameter "+name+" is too long",
			fiscal.Problem{Field: name, Code: fiscal.CodeTooLong, Message: "at most 200 characters"})
	}
	return value, nil
}

// limit is the size of a page.
func (q query) limit(problem func(field, code, message string)) int {
	return q.number("limit", defaultLimit, 1, maxLimit, problem)
}

// number is a parameter in plain digits, within bounds.
func (q query) number(name string, otherwise, least, most int, problem func(field, code, message string)) int {
	text, ok := q[name]
	if !ok {
		return otherwise
	}
	want := "want a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || strconv.Itoa(n) != text:
		problem(name, fiscal.CodeInvalidFormat, want)
	case n < least || n > most:
		problem(name, fiscal.CodeOutOfRange, want)
	}
	return n
}

// pageOf reads the parameters of a list that is not filtered: behind which id it
// goes on, empty for its beginning, and how many items.
func (a *API) pageOf(q query, list cursor.List) (before string, limit int, err error) {
	var problems fiscal.Problems
	problem := func(field, code, message string) {
		problems = append(problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	limit = q.limit(problem)
	if text, ok := q["cursor"]; ok {
		if id, ok := a.cursors.Read(text, list); ok {
			before = id.String()
		} else {
			problem("cursor", fiscal.CodeInvalidCursor, "want the next_cursor of a page of this list")
		}
	}
	if len(problems) > 0 {
		return "", 0, badRequest("the query string is not valid; see details", problems...)
	}
	return before, limit, nil
}

// nextPage is what a page says of the one behind it, which begins after an id.
func (a *API) nextPage(x *exchange, last string, list cursor.List) (pageMeta, error) {
	id, err := uuid.Parse(last)
	if err != nil {
		return pageMeta{}, err
	}
	next := a.cursors.Make(id, list)
	return pageMeta{RequestID: x.id, NextCursor: &next}, nil
}

// invoiceFilter reads the parameters of the list.
func (a *API) invoiceFilter(scope store.Scope, q query) (store.InvoiceFilter, error) {
	f := store.InvoiceFilter{ExternalID: q["external_id"]}
	var problems fiscal.Problems
	problem := func(field, code, message string) {
		problems = append(problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	if utf8.RuneCountInString(f.ExternalID) > maxText {
		problem("external_id", fiscal.CodeTooLong, "at most 200 characters")
	}
	if text, ok := q["status"]; ok {
		if f.Status, ok = fiscal.ParseStatus(text); !ok {
			problem("status", fiscal.CodeInvalidEnum, "want one of "+statusNames())
		}
	}
	f.Limit = q.limit(problem)
	if text, ok := q["cursor"]; ok {
		if id, ok := a.cursors.Read(text, invoiceList(scope, f)); ok {
			f.Before = id.String()
		} else {
			problem("cursor", fiscal.CodeInvalidCursor, "want the next_cursor of a page of this list, with the same filters")
		}
	}
	if len(problems) > 0 {
		return store.InvoiceFilter{}, badRequest("the query string is not valid; see details", problems...)
	}
	return f, nil
}

// invoiceList names a list of invoices. The page size may change from page to
// page.
func invoiceList(scope store.Scope, f store.InvoiceFilter) cursor.List {
	return cursor.NewList("invoices", string(scope.Environment), scope.TaxpayerID, f.ExternalID, string(f.Status))
}

func statusNames() string {
	all := fiscal.Statuses()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
