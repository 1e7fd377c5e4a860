package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command line in the blocks and in the text of the pages is one that the program
// understands: the command and its flags exist, and the values have the right form. A
// test in docs runs those that can run anywhere.
func TestCommandsOfTheDocumentationParse(t *testing.T) {
	t.Parallel()
	pages := []string{"../../README.md", "../../README.es.md", "../../CONTRIBUTING.md", "../../SECURITY.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md", "../../docs/es/*/*.md"} {
		found, err := filepath.Glob(pattern)
		must(t, err)
		pages = slices.Concat(pages, found)
	}
	block := regexp.MustCompile("(?m)^(?:bin/)?(fiscalhub [a-z].*)$")
	inline := regexp.MustCompile("`(?:bin/)?(fiscalhub [a-z][^`]*)`")
	parsed, results, parser := 0, map[string]error{}, newParser(t)
	parse := func(line string) error { // the Spanish pages have the same lines
		if _, ok := results[line]; !ok {
			results[line] = parseDocumented(t, parser, line)
		}
		return results[line]
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range block.FindAllStringSubmatch(codeOf(string(text)), -1) {
			parsed++
			if err := parse(m[1]); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
			parsed++
			// The text may name a command without what it needs.
			if err := parse(m[1]); err != nil && !regexp.MustCompile(`^(missing |expected )`).MatchString(err.Error()) {
				t.Errorf("%s: %s: %v", page, m[1], err)
			}
		}
	}
	if parsed < 150 {
		t.Errorf("only %d command lines were found", parsed)
	}
}

// codeOf returns the blocks of code of a page.
func codeOf(page string) string {
	return strings.Join(regexp.MustCompile("(?ms)^```(sh|text)\n.*?^```$").FindAllString(page, -1), "\n")
}

// parseDocumented parses a command line, with a value in the place of each placeholder.
func parseDocumented(t *testing.T, parser *kong.Kong, line string) error {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	words := quotedWords(line)[1:]
	_, err := parser.Parse(words)
	if err != nil { // a parser that was used before can fail; a new one takes ten times as long
		_, err = newParser(t).Parse(words)
	}
	if err != nil && (strings.Contains(err.Error(), "no such file") || strings.Contains(err.Error(), "stat ")) {
		return nil // a file of the reader
	}
	return err
}

// quotedWords splits a command line at spaces outside of quotes.
func quotedWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1) {
		words = append(words, strings.NewReplacer(`"`, "", "'", "").Replace(word))
	}
	return words
}
