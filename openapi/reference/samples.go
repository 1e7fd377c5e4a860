package reference

import (
	"embed"
	"fmt"
	"html"
	"html/template"
	"regexp"
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

// The groups of tokens: comment, string, number, word.
const (
	hashComments  = `(#[^\n]*)`
	slashComments = `(//[^\n]*)`
	noComments    = `(\x00)`
	otherTokens   = `|("(?:\\.|[^"\\\n])*"|'[^'\n]*'|` + "`[^`]*`" + `)|(\b[0-9][0-9.]*\b)|([A-Za-z_][A-Za-z0-9_]*)`
)

// syntax is what the page colours in a language.
type syntax struct {
	tokens   *regexp.Regexp
	keywords string
}

// syntaxOf returns the syntax of a language.
func syntaxOf(language string) syntax {
	switch language {
	case "go":
		return syntax{regexp.MustCompile(slashComments + otherTokens),
			" break case defer else err for func if import nil package range return struct switch var true false "}
	case "typescript":
		return syntax{regexp.MustCompile(slashComments + otherTokens),
			" async await const else export for from function if import let new null of return throw true false type "}
	case "python":
		return syntax{regexp.MustCompile(hashComments + otherTokens),
			" as def else except for from if import in None not print raise return True False try with "}
	case "curl":
		return syntax{regexp.MustCompile(hashComments + otherTokens), " curl export "}
	}
	return syntax{regexp.MustCompile(noComments + otherTokens), " true false null "}
}

// highlight returns code as HTML, with the kinds of its tokens as classes.
func highlight(language, code string) template.HTML {
	s := syntaxOf(language)
	var out strings.Builder
	last := 0
	for _, at := range s.tokens.FindAllStringSubmatchIndex(code, -1) {
		out.WriteString(html.EscapeString(code[last:at[0]]))
		token := code[at[0]:at[1]]
		last = at[1]
		class := ""
		switch {
		case at[2] >= 0:
			class = "c"
		case at[4] >= 0:
			class = "s"
			if language == "json" && strings.HasPrefix(code[at[1]:], ":") {
				class = "k"
			}
		case at[6] >= 0 && language != "curl": // there, a number is a part of an address
			class = "n"
		case strings.Contains(s.keywords, " "+token+" "):
			class = "w"
		}
		if class == "" {
			out.WriteString(html.EscapeString(token))
			continue
		}
		out.WriteString(`<span class="` + class + `">` + html.EscapeString(token) + "</span>")
	}
	out.WriteString(html.EscapeString(code[last:]))
	return template.HTML(out.String()) //nolint:gosec // every piece of the code is escaped
}
