package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// oneLine returns the English text of an error as one line.
func oneLine(err error) string { return oneLineIn(err, lang.English) }

// oneLineIn returns the text of an error in a language as one line.
func oneLineIn(err error, l lang.Language) string {
	lines := strings.FieldsFunc(lang.ErrorText(err, l), func(r rune) bool { return r == '\n' || r == '\r' })
	return printable(strings.Join(mapEach(lines, strings.TrimSpace), "; "))
}

// splitList splits the values of a repeatable flag at commas and spaces.
func splitList(values []string) []string {
	var all []string
	for _, value := range values {
		all = append(all, strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })...)
	}
	return all
}

// formatTime returns an instant in UTC, and an empty text for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// optionalTime returns an instant in UTC, and nil for the zero time.
func optionalTime(t time.Time) *string { return optional(formatTime(t)) }

// optional returns nil for an empty text.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// textOf returns an empty text for nil.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// printable returns a text that cannot control a terminal: line breaks, escape sequences,
// other control characters and characters that change the direction of writing become
// escapes like \x1b, and so do bytes that are no UTF-8.
func printable(text string) string {
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		text = text[size:]
	}
	return b.String()
}

// escapingWriter writes JSON in which the characters that could control a terminal are
// escaped. encoding/json escapes only those below U+0020. Each call of Write must have
// whole characters.
type escapingWriter struct{ w io.Writer }

func (e escapingWriter) Write(p []byte) (int, error) {
	var b []byte
	for i, r := range string(p) {
		harmless := r < utf8.RuneSelf && r != 0x7f || unicode.IsGraphic(r) && r != utf8.RuneError
		if harmless {
			if b != nil {
				b = utf8.AppendRune(b, r)
			}
			continue
		}
		if b == nil {
			b = append(make([]byte, 0, len(p)+64), p[:i]...)
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	if b == nil {
		b = p
	}
	_, err := e.w.Write(b)
	return len(p), err
}

// mapEach returns fn of each row. The result is never nil, so that it prints as
// [] in JSON.
func mapEach[Row, View any](rows []Row, fn func(Row) View) []View {
	views := make([]View, len(rows))
	for i, row := range rows {
		views[i] = fn(row)
	}
	return views
}
