package reference

import (
	"embed"
	"fmt"
	"html/template"
	"strings"
)

// The programs of the page. Package api runs all of them against the service.
//
//go:embed samples
var sampleFiles embed.FS

// sampleLanguage is a language in which the page shows how to call an operation.
type sampleLanguage struct {
	ID, Name string
	suffix   string
}

// sampleLanguages returns the languages in the order of the page.
func sampleLanguages() []sampleLanguage {
	return []sampleLanguage{
		{"curl", "curl", ".sh"},
		{"go", "Go", ".go.txt"},
		{"typescript", "TypeScript", ".ts"},
		{"python", "Python", ".py"},
	}
}

// sample is a piece of a program in one language.
type sample struct {
	Language, Name string
	Code           template.HTML
}

// Sample returns the program that shows an operation in a language of the page: "curl",
// "go", "typescript" or "python". The operation "setup" is what all others build on. It
// fails when there is no such program.
func Sample(operation, language string) (string, error) {
	for _, l := range sampleLanguages() {
		if l.ID != language {
			continue
		}
		text, err := sampleFiles.ReadFile("samples/" + operation + l.suffix)
		if err != nil {
			return "", fmt.Errorf("reference: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	return "", fmt.Errorf("reference: there are no programs in %s", language)
}

// samples returns the programs of an operation in all languages.
func samples(operation string) ([]sample, error) {
	var list []sample
	for _, l := range sampleLanguages() {
		code, err := Sample(operation, l.ID)
		if err != nil {
			return nil, err
		}
		list = append(list, sample{Language: l.ID, Name: l.Name, Code: highlight(l.ID, code)})
	}
	return list, nil
}
