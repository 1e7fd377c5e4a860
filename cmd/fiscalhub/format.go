package main

import (
	"strings"
	"time"
	"unicode"
)

// oneLine returns the text of an error as one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
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

// cell makes a text safe for a table: control characters, which could break the
// table or control the terminal, become spaces.
func cell(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// shortCell is cell for long texts: it returns at most 80 characters.
func shortCell(text string) string {
	const limit = 80
	if runes := []rune(cell(text)); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return cell(text)
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
