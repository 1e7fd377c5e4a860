package dgii

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// How much of a response is read and kept. A real verdict may have hundreds of
// messages.
const (
	maxAnswerResponse = 4 << 20
	maxRaw            = 64 << 10
	maxMessageText    = 1000 // characters
	maxMessages       = 100
	maxMessageCode    = 40
)

// parse reads the body of a response as JSON. It fails when the body is empty or
// incomplete.
func (r *response) parse() (jsonValue, error) {
	if r.bodyErr != nil {
		return jsonValue{}, r.bodyErr
	}
	if len(bytes.TrimSpace(r.body)) == 0 {
		return jsonValue{}, errors.New("the response is empty")
	}
	v, err := parseJSON(r.body)
	if err != nil {
		return jsonValue{}, fmt.Errorf("the response cannot be read: %w", err)
	}
	return v, nil
}

// plainText returns a body that is plain text, neither JSON nor markup. Some
// refusals of the authority are just a sentence.
func (r *response) plainText() (string, bool) {
	s := strings.TrimSpace(strings.TrimPrefix(string(bytes.TrimSpace(r.body)), "\ufeff"))
	if r.bodyErr != nil || s == "" || len(s) > 4<<10 || !utf8.ValidString(s) || strings.ContainsAny(s[:1], "<{[") {
		return "", false
	}
	return s, true
}

// newAnswer returns an answer with what every response has: its bytes and date.
func (r *response) newAnswer() fiscal.AuthorityAnswer {
	return fiscal.AuthorityAnswer{Raw: bytes.Clone(r.body[:min(len(r.body), maxRaw)]), At: r.date}
}

// messages collects the messages of a response from all members that may hold
// them.
func (v jsonValue) messages() []fiscal.Message {
	var list messageList
	switch v.kind {
	case kindObject:
		for _, name := range []string{"error", "mensaje", "message", "mensajes", "errors", "title", "detail"} {
			list.collect(v.member(name), 2)
		}
	default:
		list.collect(v, 2)
	}
	return list
}

type messageList []fiscal.Message

func (l *messageList) add(code, text string) {
	code, text = clean(code, maxMessageCode), clean(text, maxMessageText)
	if text == "" && strings.Trim(code, "0") == "" {
		return
	}
	m := fiscal.Message{Code: code, Text: text}
	if len(*l) >= maxMessages || len(*l) > 0 && (*l)[len(*l)-1] == m {
		return
	}
	*l = append(*l, m)
}

func (l *messageList) collect(v jsonValue, depth int) {
	if depth < 0 {
		return
	}
	switch v.kind {
	case kindString:
		l.add("", v.text)
	case kindNumber:
		l.add(v.text, "")
	case kindArray:
		for _, item := range v.items {
			l.collect(item, depth-1)
		}
	case kindObject:
		text := v.member("valor", "mensaje", "message", "texto", "error")
		code := v.member("codigo", "code")
		if text.kind != kindNone || code.kind != kindNone {
			l.add(code.scalar(), text.scalar())
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v.members)) { // an ASP.NET model state: a list of texts for each field
			l.collect(v.members[name], depth-1)
		}
	default: // a boolean or null is no message
	}
}

// clean makes a text of others safe to store and show: valid UTF-8, without
// control characters, and at most limit characters long.
func clean(s string, limit int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd")))
	n := 0
	for i := range s {
		if n == limit {
			return s[:i]
		}
		n++
	}
	return s
}

// Why a response has no valid verdict.
var (
	errNoVerdict     = errors.New("the response has no verdict")
	errContradiction = errors.New("codigo and estado contradict each other")
	errUnknownCode   = errors.New("the verdict is unknown")
)

// verdict reads codigo and estado. If both are present, they must agree. One of
// them is enough, except for codigo 0: an empty record has codigo 0 as well, so
// "not found" needs the text.
func (v jsonValue) verdict() (fiscal.Verdict, error) {
	code, text := v.member("codigo").scalar(), v.member("estado").scalar()
	if code == "" && text == "" {
		return 0, errNoVerdict
	}
	byText, known := parseVerdict(text)
	if code == "" {
		if !known {
			return 0, errUnknownCode
		}
		return byText, nil
	}
	n, err := strconv.Atoi(code)
	if err != nil || n < 0 || n > int(fiscal.VerdictConditional) {
		return 0, errUnknownCode
	}
	byCode := fiscal.Verdict(n)
	switch {
	case text == "" && byCode == fiscal.VerdictNotFound:
		return 0, errNoVerdict
	case text == "":
		return byCode, nil
	case !known || byText != byCode:
		return 0, errContradiction
	}
	return byCode, nil
}

func parseVerdict(text string) (fiscal.Verdict, bool) {
	switch strings.TrimRight(normalizeText(text), ".") {
	case "no encontrado", "noencontrado", "trackid no encontrado", "no encontrada":
		return fiscal.VerdictNotFound, true
	case "aceptado":
		return fiscal.VerdictAccepted, true
	case "rechazado":
		return fiscal.VerdictRejected, true
	case "en proceso", "enproceso":
		return fiscal.VerdictInProcess, true
	case "aceptado condicional", "aceptadocondicional":
		return fiscal.VerdictConditional, true
	}
	return 0, false
}

// fill copies what the response says about its document.
func (v jsonValue) fill(a *fiscal.AuthorityAnswer) {
	a.TrackID = clean(v.member("trackid").scalar(), 200)
	a.RNC = clean(v.member("rnc", "rncemisor").scalar(), 20)
	a.ENCF = clean(v.member("encf", "ncfelectronico").scalar(), 20)
	a.Messages = v.messages()
	switch used := v.member("secuenciautilizada"); strings.ToLower(used.text) {
	case "true":
		a.NumberUsed, a.NumberStated = true, true
	case "false":
		a.NumberStated = true
	}
	a.SecurityCode = clean(v.member("codigoseguridad", "codigoseguridadecf").scalar(), 20)
	a.BuyerRNC = digits(clean(v.member("rnccomprador").scalar(), 20))
	if total, err := fiscal.ParseDecimal(v.member("montototal").scalar()); err == nil {
		a.Total, a.HasTotal = total, true
	}
	a.IssueDate = parseDate(v.member("fechaemision").scalar())
}

// parseDate reads a date with dashes. It returns the zero date for a date with
// slashes, where it is not clear which number is the day.
func parseDate(s string) fiscal.Date {
	day, _, _ := strings.Cut(strings.ReplaceAll(s, "T", " "), " ")
	if d := fiscal.ParseDGIIDate(day); !d.IsZero() {
		return d
	}
	d, err := fiscal.ParseDate(day)
	if err != nil {
		return fiscal.Date{}
	}
	return d
}

// matchesDocument reports whether an answer is about a document. An answer that
// names no document matches.
func matchesDocument(a fiscal.AuthorityAnswer, rnc, encf string) bool {
	return (a.RNC == "" || digits(a.RNC) == digits(rnc)) && (a.ENCF == "" || strings.EqualFold(a.ENCF, encf))
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}
