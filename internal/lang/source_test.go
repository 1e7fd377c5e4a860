package lang_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// makers are the functions that take an English text and a Spanish one, as the first two
// arguments.
var makers = []string{"Messagef", "Errorf", "Text", "wrongUsage"}

// A textPair is a call of a maker in the source.
type textPair struct {
	at               string
	english, spanish string
	literal          bool // both texts are literals
	arguments        int  // after the texts
	table            bool // the arguments come later
	passedOn         bool // the call passes on the texts of the function around it
}

// Every text for people has both languages: the texts are literals, they differ, and
// they have the same placeholders. The compiler finds a text without Spanish, because
// a Message has no other constructor; this test finds a Spanish text that is wrong.
func TestEveryTextHasBothLanguages(t *testing.T) {
	t.Parallel()
	pairs, err := textPairs()
	if err != nil {
		t.Fatal(err)
	}
	if len(pairs) < 300 {
		t.Fatalf("only %d texts were found", len(pairs))
	}
	for _, p := range pairs {
		switch {
		case p.passedOn:
		case !p.literal:
			t.Errorf("%s: the texts must be literals", p.at)
		case strings.TrimSpace(p.english) == "" || strings.TrimSpace(p.spanish) == "":
			t.Errorf("%s: a text is empty", p.at)
		case p.english == p.spanish && hasWords(p.english):
			t.Errorf("%s: both languages have the text %q", p.at, p.english)
		case (p.arguments > 0 || p.table) && !slices.Equal(verbs(p.english), verbs(p.spanish)):
			t.Errorf("%s: the placeholders of %q are %v, those of %q are %v", p.at, p.english, verbs(p.english), p.spanish, verbs(p.spanish))
		case p.arguments == 0 && !p.table && len(verbs(p.english))+len(verbs(p.spanish)) > 0:
			t.Errorf("%s: %q has placeholders and no arguments", p.at, p.english)
		}
	}
}

// Messages must be plain: words and sentences that readers had to guess are not allowed.
func TestTextsAreInPlainWords(t *testing.T) {
	t.Parallel()
	hard := regexp.MustCompile(`(?i)a minute and credential|want a date|whose a |whoever|\btold\b|\bnobody\b|date of the calendar|says least`)
	pairs, err := textPairs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		if found := hard.FindString(p.english); found != "" {
			t.Errorf("%s: %q is hard to understand in %q", p.at, found, p.english)
		}
	}
}

// verbs returns the placeholders of a text in an order that does not depend on the
// language.
func verbs(text string) []string {
	var all []string
	for i, v := range regexp.MustCompile(`%(\[\d+\])?[-+# 0]*\d*[a-zA-Z]`).FindAllString(strings.ReplaceAll(text, "%%", ""), -1) {
		if !strings.HasPrefix(v, "%[") {
			v = "%[" + strconv.Itoa(i+1) + "]" + v[1:]
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// hasWords reports whether a text has words beside its placeholders, flags and names of
// the authority's elements, which are the same in both languages.
func hasWords(text string) bool {
	text = regexp.MustCompile(`%(\[\d+\])?[-+# 0]*\d*[a-zA-Z]|--[a-z-]+|Idempotency-Key|fiscalhub|XML|PDF`).ReplaceAllString(text, "")
	return regexp.MustCompile(`[A-Za-z]{2,}`).MatchString(text)
}

// textPairs returns the calls of makers in the Go files of the project. It reads them
// once.
var textPairs = sync.OnceValues(func() ([]textPair, error) {
	var all []textPair
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2 || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isMaker(call.Fun) && len(call.Args) >= 2 {
				all = append(all, newTextPair(files.Position(call.Pos()).String(), call))
			}
			return true
		})
		return nil
	})
	return all, err
})

func isMaker(fun ast.Expr) bool {
	if local, ok := fun.(*ast.Ident); ok {
		return local.Name != "Errorf" && local.Name != "Text" && slices.Contains(makers, local.Name)
	}
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == "lang" && slices.Contains(makers, selector.Sel.Name)
}

func newTextPair(at string, call *ast.CallExpr) textPair {
	english, ok := literal(call.Args[0])
	spanish, okSpanish := literal(call.Args[1])
	selector, _ := call.Fun.(*ast.SelectorExpr)
	first, isName := call.Args[0].(*ast.Ident)
	return textPair{
		at: at, english: english, spanish: spanish, literal: ok && okSpanish, arguments: len(call.Args) - 2,
		table:    selector != nil && selector.Sel.Name == "Text",
		passedOn: isName && first.Name == "english",
	}
}

// literal returns the value of a string literal, or of several that are joined with +.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		x, ok := literal(e.X)
		y, okY := literal(e.Y)
		return x + y, ok && okY && e.Op == token.ADD
	}
	return "", false
}
