package dgii

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// How much of an answer is read and kept. A real verdict may carry hundreds of
// messages.
const (
	answerLimit = 4 << 20
	rawLimit    = 64 << 10
	textLimit   = 1000 // characters
	listLimit   = 100
	codeLimit   = 40
)

// read parses the body of an answer. Empty is an error here.
func (r *reply) read() (value, error) {
	if r.torn != nil {
		return value{}, r.torn
	}
	if len(bytes.TrimSpace(r.body)) == 0 {
		return value{}, errors.New("the answer is empty")
	}
	v, err := parseValue(r.body)
	if err != nil {
		return value{}, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return v, nil
}

// sentence is a body that is plain text and no page: a refusal may be nothing
// but a sentence.
func (r *reply) sentence() (string, bool) {
	s := strings.TrimSpace(strings.TrimPrefix(string(bytes.TrimSpace(r.body)), "\ufeff"))
	if r.torn != nil || s == "" || len(s) > 4<<10 || !utf8.ValidString(s) || strings.ContainsAny(s[:1], "<{[") {
		return "", false
	}
	return s, true
}

// answer is what every answer has, whatever it says.
func (r *reply) answer() fiscal.Answer {
	return fiscal.Answer{Raw: bytes.Clone(r.body[:min(len(r.body), rawLimit)]), At: r.at}
}

// messages collects what an answer says about a document, wherever it says it.
func (v value) messages() []fiscal.Message {
	var list messageList
	switch v.kind {
	case kindObject:
		for _, name := range []string{"error", "mensaje", "message", "mensajes", "errors", "title", "detail"} {
			list.collect(v.of(name), 2)
		}
	default:
		list.collect(v, 2)
	}
	return list
}

type messageList []fiscal.Message

func (l *messageList) add(code, text string) {
	code, text = clean(code, codeLimit), clean(text, textLimit)
	if text == "" && strings.Trim(code, "0") == "" {
		return
	}
	m := fiscal.Message{Code: code, Text: text}
	if len(*l) >= listLimit || len(*l) > 0 && (*l)[len(*l)-1] == m {
		return
	}
	*l = append(*l, m)
}

func (l *messageList) collect(v value, depth int) {
	if depth < 0 {
		return
	}
	switch v.kind {
	case kindString:
		l.add("", v.text)
	case kindNumber:
		l.add(v.text, "")
	case kindArray:
		for _, item := range v.list {
			l.collect(item, depth-1)
		}
	case kindObject:
		text := v.of("valor", "mensaje", "message", "texto", "error")
		code := v.of("codigo", "code")
		if text.kind != kindNone || code.kind != kindNone {
			l.add(code.scalar(), text.scalar())
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v.members)) { // a model-state object: fields, each with its texts
			l.collect(v.members[name], depth-1)
		}
	default: // says nothing
	}
}

// clean makes a text of others fit to be kept and shown.
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

// What is wrong with a verdict that is none.
var (
	errNoVerdict     = errors.New("there is no verdict in the answer")
	errContradiction = errors.New("codigo and estado contradict each other")
	errUnknownCode   = errors.New("the verdict is none of the known ones")
)

// verdict reads codigo and estado. Both may be given, and must then agree;
// either may be alone, but for one case: a codigo 0 is what a record has that
// nobody filled in, so that "not found" needs its text.
func (v value) verdict() (fiscal.Verdict, error) {
	code, text := v.of("codigo").scalar(), v.of("estado").scalar()
	if code == "" && text == "" {
		return 0, errNoVerdict
	}
	byText, known := verdictOf(text)
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

func verdictOf(text string) (fiscal.Verdict, bool) {
	switch strings.TrimRight(folded(text), ".") {
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

// fill copies what an answer tells about its document.
func (v value) fill(a *fiscal.Answer) {
	a.TrackID = clean(v.of("trackid").scalar(), 200)
	a.RNC = clean(v.of("rnc", "rncemisor").scalar(), 20)
	a.ENCF = clean(v.of("encf", "ncfelectronico").scalar(), 20)
	a.Messages = v.messages()
	switch used := v.of("secuenciautilizada"); strings.ToLower(used.text) {
	case "true":
		a.SequenceUsed, a.SequenceStated = true, true
	case "false":
		a.SequenceStated = true
	}
	a.SecurityCode = clean(v.of("codigoseguridad", "codigoseguridadecf").scalar(), 20)
	if total, err := fiscal.ParseDecimal(v.of("montototal").scalar()); err == nil {
		a.Total, a.HasTotal = total, true
	}
	a.IssueDate = dateOf(v.of("fechaemision").scalar())
}

// dateOf reads the dates whose parts have one meaning. One with slashes has two
// and is not read.
func dateOf(s string) fiscal.Date {
	day, _, _ := strings.Cut(strings.ReplaceAll(s, "T", " "), " ")
	for _, layout := range []string{"02-01-2006", time.DateOnly} {
		if t, err := time.Parse(layout, day); err == nil {
			if d, err := fiscal.ParseDate(t.Format(time.DateOnly)); err == nil {
				return d
			}
		}
	}
	return fiscal.Date{}
}

// about tells whether an answer is of a document, as far as it says.
func about(a fiscal.Answer, rnc, encf string) bool {
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
