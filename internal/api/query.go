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
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const (
	defaultLimit = 25
	maxLimit     = 100
	maxText      = 200 // characters of a text parameter
)

func tooLongText() lang.Message {
	return lang.Messagef("must have at most %d characters", "debe tener un máximo de %d caracteres", maxText)
}

// query holds the parameters of a request, each given once and not empty.
type query map[string]string

// queryProblems collects what is wrong with the parameters of a request.
type queryProblems struct{ list fiscal.Problems }

func (p *queryProblems) add(field, code string, message lang.Message) {
	p.list = append(p.list, fiscal.Problem{Field: field, Code: code, Message: message})
}

// err returns the collected problems as one error, or nil when there are none.
func (p *queryProblems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return badRequest(lang.Messagef(
		"the query string is not valid; see details",
		"los parámetros de la consulta no son válidos; vea los detalles (details)"), p.list...)
}

// readQuery reads the query string. It refuses parameters that are not allowed:
// a misspelt filter must not return the whole list.
func readQuery(r *http.Request, allowed ...string) (query, error) {
	found := make(query)
	var problems queryProblems
	raw := r.URL.RawQuery
	if strings.Contains(raw, ";") {
		problems.add("", fiscal.CodeInvalidFormat, lang.Messagef("separate parameters with &, not with ;", "separe los parámetros con &, no con ;"))
		raw = ""
	}
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" { // as after a last &
			continue
		}
		if len(problems.list) == maxProblems { // a short query must not cause a long answer
			problems.add("", fiscal.CodeTooManyErrors, onlyFirstProblems())
			break
		}
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, ok := unescape(rawName)
		value, okValue := unescape(rawValue)
		_, repeated := found[name]
		switch {
		case !ok:
			problems.add("", fiscal.CodeInvalidFormat, lang.Messagef(
				"the name of a parameter must be percent-encoded UTF-8 text",
				"el nombre de un parámetro debe ser texto UTF-8 codificado con el signo de porcentaje"))
		case !slices.Contains(allowed, name):
			problems.add(shorten(name), fiscal.CodeUnknownParameter, unknownParameter(name, allowed))
		case repeated:
			problems.add(name, fiscal.CodeDuplicateParameter, sendOnce())
		case !okValue:
			problems.add(name, fiscal.CodeInvalidFormat, lang.Messagef(
				"must be percent-encoded UTF-8 text without control characters",
				"debe ser texto UTF-8 codificado con el signo de porcentaje, sin caracteres de control"))
		case value == "":
			problems.add(name, fiscal.CodeTooShort, lang.Messagef("must not be empty", "no debe estar vacío"))
		}
		if ok {
			found[name] = value
		}
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	return found, nil
}

func sendOnce() lang.Message {
	return lang.Messagef("send the parameter only once", "envíe el parámetro una sola vez")
}

func unknownParameter(name string, allowed []string) lang.Message {
	if len(allowed) == 0 {
		return lang.Messagef("this operation has no query parameters", "esta operación no tiene parámetros")
	}
	all := strings.Join(allowed, ", ")
	if meant, ok := strictjson.ClosestName(name, allowed); ok {
		return lang.Messagef("did you mean %s? This operation has only the parameters %s",
			"¿quiso decir %s? Esta operación tiene solo los parámetros %s", meant, all)
	}
	return lang.Messagef("this operation has only the parameters %s", "esta operación tiene solo los parámetros %s", all)
}

// shorten limits the text of a client that an answer repeats.
func shorten(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:63]) + "…"
	}
	return s
}

// unescape decodes a name or a value of the query. It returns false unless the
// result is UTF-8 text without control characters.
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

// required returns a text parameter that must be present.
func (q query) required(name string) (string, error) {
	value, ok := q[name]
	if !ok {
		return "", badRequest(lang.Messagef("the parameter %s is required", "el parámetro %s es obligatorio", name),
			fiscal.Problem{Field: name, Code: fiscal.CodeRequired, Message: lang.Messagef("is required", "es obligatorio")})
	}
	if utf8.RuneCountInString(value) > maxText {
		return "", badRequest(lang.Messagef("the parameter %s is too long", "el parámetro %s es demasiado largo", name),
			fiscal.Problem{Field: name, Code: fiscal.CodeTooLong, Message: tooLongText()})
	}
	return value, nil
}

// limit returns the size of a page.
func (q query) limit(problems *queryProblems) int {
	return q.number("limit", defaultLimit, 1, maxLimit, problems)
}

// number returns a parameter in plain decimal digits from least to most, or
// otherwise when it is absent.
func (q query) number(name string, otherwise, least, most int, problems *queryProblems) int {
	text, ok := q[name]
	if !ok {
		return otherwise
	}
	message := lang.Messagef("must be a whole number from %d to %d", "debe ser un número entero de %d a %d", least, most)
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || strconv.Itoa(n) != text:
		problems.add(name, fiscal.CodeInvalidFormat, message)
	case n < least || n > most:
		problems.add(name, fiscal.CodeOutOfRange, message)
	}
	return n
}

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
