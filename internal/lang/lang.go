// Package lang has texts for people in English and Spanish, and finds out which language a
// header or a terminal asks for.
package lang

import (
	"strings"

	"golang.org/x/text/language"
)

// A Language is a language in which the service writes texts for people. Its
// value is the tag of HTTP and HTML.
type Language string

// The languages of the service.
const (
	English Language = "en"
	Spanish Language = "es"
)

// Parse returns the language of a tag such as "es", "es-DO" or "en_US.UTF-8".
// It returns false when the tag names another language or none.
func Parse(tag string) (Language, bool) {
	tag, _, _ = strings.Cut(tag, ".")
	tag, _, _ = strings.Cut(tag, "@")
	parsed, err := language.Parse(tag)
	if err != nil {
		return "", false
	}
	return of(parsed)
}

// maxHeader bounds the work for a hostile header, in bytes.
const maxHeader = 512

// FromHeader returns the language that an Accept-Language header prefers. It
// returns fallback when the header is absent, cannot be read, is longer than any
// browser sends, or accepts neither of the two languages.
func FromHeader(header string, fallback Language) Language {
	if header == "" || len(header) > maxHeader {
		return fallback
	}
	// The tags come back with the preferred one first. A weight of 0 refuses a
	// language.
	tags, weights, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return fallback
	}
	for i, tag := range tags {
		if weights[i] <= 0 {
			continue
		}
		if found, ok := of(tag); ok {
			return found
		}
	}
	return fallback
}

// FromEnvironment returns the language of a terminal: LC_ALL, LC_MESSAGES and
// LANG in this order, as POSIX wants it. It returns English when none of them
// names one of the two languages.
func FromEnvironment(getenv func(string) string) Language {
	for _, name := range [...]string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		if found, ok := Parse(value); ok {
			return found
		}
		return English
	}
	return English
}

func of(tag language.Tag) (Language, bool) {
	base, confidence := tag.Base()
	if confidence == language.No {
		return "", false
	}
	switch base.String() {
	case "en":
		return English, true
	case "es":
		return Spanish, true
	default:
		return "", false
	}
}
