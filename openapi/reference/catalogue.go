package reference

import (
	"html/template"
	"slices"
	"strings"
)

// catalogue explains the error codes and the codes of details.
type catalogue struct {
	Intro template.HTML
	Codes []errorCode
	Rest  template.HTML // the codes of details, and notes
}

// errorCode is one code of the catalogue.
type errorCode struct {
	Code       string
	Cases      []errorCase
	Examples   []example
	Operations []operationRef
}

// errorCase is one HTTP status of a code.
type errorCase struct {
	Status          string
	Meaning, Action template.HTML
}

// operationRef names an operation that can be refused with a code.
type operationRef struct{ ID, Summary string }

// catalogue makes the catalogue from the section "Errors" of the description. Its first
// table has a row for each code and HTTP status.
func (b *builder) catalogue(text string, groups []group) catalogue {
	intro, rest, _ := strings.Cut(strings.TrimSpace(text), "\n\n| `code` |")
	table, rest, _ := strings.Cut(rest, "\n\n")
	c := catalogue{Intro: b.md.block(intro), Rest: b.md.block(rest)}
	for _, line := range strings.Split(table, "\n")[2:] {
		row := cells(line)
		code := strings.Trim(row[0], "`")
		if n := len(c.Codes); n == 0 || c.Codes[n-1].Code != code {
			c.Codes = append(c.Codes, errorCode{Code: code, Examples: b.errorExamples(code), Operations: refusedWith(groups, code)})
		}
		last := &c.Codes[len(c.Codes)-1]
		last.Cases = append(last.Cases, errorCase{Status: row[1], Meaning: b.md.line(row[2]), Action: b.md.line(row[3])})
	}
	return c
}

// errorExamples returns the first body of the document that has a code.
func (b *builder) errorExamples(code string) []example {
	var list []example
	b.root.get("components", "examples").each(func(_ string, e *tree) {
		value := e.get("value")
		if len(list) == 0 && value.get("error", "code").text() == code {
			body := value.indented()
			list = append(list, example{Summary: e.get("summary").text(), Plain: body, Code: highlight("json", body)})
		}
	})
	return list
}

// refusedWith returns the operations that can be refused with a code.
func refusedWith(groups []group, code string) []operationRef {
	var list []operationRef
	for _, g := range groups {
		for _, o := range g.Operations {
			if o.refusedWith(code) {
				list = append(list, operationRef{o.ID, o.Summary})
			}
		}
	}
	return list
}

func (o operation) refusedWith(code string) bool {
	return slices.ContainsFunc(o.Refusals, func(r refusal) bool { return slices.Contains(r.Codes, code) })
}
