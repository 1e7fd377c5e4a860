package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
