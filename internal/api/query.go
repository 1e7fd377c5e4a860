package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

const (
	defaultLimit = 25
	maxLimit     = 100
	maxText      = 200 // characters of a text parameter
)

const tooLongText = "must have at most 200 characters"

// query holds the parameters of a request, each given once and not empty.
type query map[string]string

// queryProblems collects what is wrong with the parameters of a request.
type queryProblems struct{ list fiscal.Problems }

func (p *queryProblems) add(field, code, message string) {
	p.list = append(p.list, fiscal.Problem{Field: field, Code: code, Message: message})
}

// err returns the collected problems as one error, or nil when there are none.
func (p *queryProblems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return badRequest("the query string is not valid; see details", p.list...)
}

// readQuery reads the query string. It refuses parameters that are not allowed:
// a misspelt filter must not return the whole list.
func readQuery(r *http.Request, allowed ...string) (query, error) {
	found := make(query)
	var problems queryProblems
	raw := r.URL.RawQuery
	if strings.Contains(raw, ";") {
		problems.add("", fiscal.CodeInvalidFormat, "separate parameters with &, not with ;")
		raw = ""
	}
	for part := range strings.SplitSeq(raw, "&") {
		if raw == "" {
			break
		}
		if len(problems.list) == maxProblems { // a short query must not cause a long answer
			problems.add("", fiscal.CodeTooManyErrors, onlyFirstProblems)
			break
		}
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, ok := unescape(rawName)
		value, okValue := unescape(rawValue)
		_, repeated := found[name]
		switch {
		case !ok:
			problems.add("", fiscal.CodeInvalidFormat, "the name of a parameter must be percent-encoded UTF-8 text")
		case !slices.Contains(allowed, name):
			problems.add(shorten(name), fiscal.CodeUnknownParameter, unknownParameter(allowed))
		case repeated:
			problems.add(name, fiscal.CodeDuplicateParameter, "send the parameter only once")
		case !okValue:
			problems.add(name, fiscal.CodeInvalidFormat, "must be percent-encoded UTF-8 text without control characters")
		case value == "":
			problems.add(name, fiscal.CodeTooShort, "must not be empty")
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

func unknownParameter(allowed []string) string {
	if len(allowed) == 0 {
		return "this operation has no query parameters"
	}
	return "this operation has only the parameters " + strings.Join(allowed, ", ")
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
		return "", badRequest("the parameter "+name+" is required",
			fiscal.Problem{Field: name, Code: fiscal.CodeRequired, Message: "is required"})
	}
	if utf8.RuneCountInString(value) > maxText {
		return "", badRequest("the parameter "+name+" is too long",
			fiscal.Problem{Field: name, Code: fiscal.CodeTooLong, Message: tooLongText})
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
	message := "must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || strconv.Itoa(n) != text:
		problems.add(name, fiscal.CodeInvalidFormat, message)
	case n < least || n > most:
		problems.add(name, fiscal.CodeOutOfRange, message)
	}
	return n
}
