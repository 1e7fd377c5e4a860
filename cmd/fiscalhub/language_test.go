package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestLanguageOfACommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args, variable, terminal string
		want                     lang.Language
	}{
		{"taxpayer list", "", "", lang.English},
		{"taxpayer list", "", "es_DO.UTF-8", lang.Spanish},
		{"taxpayer list", "en", "es_DO.UTF-8", lang.English},
		{"--lang es taxpayer list", "en", "en_US.UTF-8", lang.Spanish},
		{"taxpayer list --lang=en", "es", "es_DO.UTF-8", lang.English},
		{"taxpayer list --lang", "", "", lang.English},
		{"--lang fr taxpayer list", "", "es_DO.UTF-8", lang.Spanish},
	} {
		values := map[string]string{"FISCALHUB_LANG": test.variable, "LANG": test.terminal}
		if got := languageOf(strings.Fields(test.args), func(name string) string { return values[name] }); got != test.want {
			t.Errorf("languageOf(%q) with %v = %s, want %s", test.args, values, got, test.want)
		}
	}
}

// Every heading of a table and every name of a line has a Spanish word.
func TestEveryLabelIsTranslated(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"": true}
	for _, m := range labels() {
		if m.In(lang.Spanish) == "" {
			t.Errorf("%s has no translation", m)
		}
		known[strings.ToLower(m.In(lang.English))] = true
	}
	eachCall(t, func(at string, call *ast.CallExpr) {
		for _, text := range labelsOf(call) {
			if !known[strings.ToLower(text)] {
				t.Errorf("%s: the label %q is not in language.go", at, text)
			}
		}
	})
}

// The errors of commands have both languages: lang.Errorf and wrongUsage make them.
func TestErrorsOfCommandsHaveBothLanguages(t *testing.T) {
	t.Parallel()
	eachCall(t, func(at string, call *ast.CallExpr) {
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if of, ok := selector.X.(*ast.Ident); ok && (of.Name+"."+selector.Sel.Name == "errors.New" || of.Name+"."+selector.Sel.Name == "fmt.Errorf") {
			t.Errorf("%s: %s.%s makes an error in English only; use lang.Errorf", at, of.Name, selector.Sel.Name)
		}
	})
}

// eachCall calls fn for every call in the files of this package.
func eachCall(t *testing.T, fn func(at string, call *ast.CallExpr)) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				fn(set.Position(call.Pos()).String(), call)
			}
			return true
		})
	}
}

// labelsOf returns the headings of a call of newTable, and the name of the line of a call
// of line.
func labelsOf(call *ast.CallExpr) (all []string) {
	name, ok := call.Fun.(*ast.Ident)
	if !ok {
		return nil
	}
	var args []ast.Expr
	switch {
	case name.Name == "newTable":
		args = call.Args
	case name.Name == "line" && len(call.Args) > 1:
		args = call.Args[1:2]
	}
	for _, arg := range args {
		if text, ok := arg.(*ast.BasicLit); ok {
			if value, err := strconv.Unquote(text.Value); err == nil {
				all = append(all, value)
			}
		}
	}
	return all
}

// The history of a rejected document and work show have the words of the authority, and
// what they mean in the language of the operator. JSON does not depend on the language.
func TestCommandsExplainARejection(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		inv := addRejected(t, address)
		run := func(args ...string) string {
			var out, errOut bytes.Buffer
			if code := run(t.Context(), append(args, "--data", t.TempDir(), "--database", address), &out, &errOut); code != exitOK {
				t.Fatalf("%v: exit code %d: %s", args, code, errOut.String())
			}
			return out.String()
		}
		history := []string{"history", "--taxpayer", inv.TaxpayerID, "--environment", string(inv.Environment), "--document", inv.DocumentID}
		show := []string{"work", "show", inv.DocumentID}
		for _, command := range [][]string{history, show} {
			for language, status := range map[lang.Language]string{lang.English: "status", lang.Spanish: "estado"} {
				got := run(append(command, "--lang", string(language))...)
				meaning, whatToDo, _ := rejection.Explain("135", language)
				for _, want := range []string{status, "[135] Número de secuencia no autorizada.", meaning, whatToDo} {
					if !strings.Contains(got, want) {
						t.Errorf("%s in %s has no %q:\n%s", command[0], language, want, got)
					}
				}
			}
			english, spanish := run(append(command, "--json", "--lang", "en")...), run(append(command, "--json", "--lang", "es")...)
			if english != spanish {
				t.Errorf("the JSON of %s depends on the language:\n%s\n%s", command[0], english, spanish)
			}
		}
	})
}

// addRejected adds a taxpayer with a rejected document to a database.
func addRejected(t *testing.T, address string) store.Invoice {
	t.Helper()
	s := storetest.Open(t, address, time.Now)
	now := time.Now().UTC().Truncate(time.Millisecond)
	taxpayer := store.Taxpayer{ID: store.NewID(), RNC: "199000013", LegalName: "Palma", Phones: []string{}, IncomeType: "01", CreatedAt: now, UpdatedAt: now}
	inv := store.Invoice{
		Scope: store.Scope{Environment: fiscal.Certification, TaxpayerID: taxpayer.ID}, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: "x",
		Type: fiscal.Consumer, Status: fiscal.Rejected, Revision: 1, Currency: "DOP", IssueDate: "2026-11-14",
		Subtotal: "1.00", DiscountTotal: "0.00", TaxTotal: "0.00", Total: "1.00", Paid: "1.00", Balance: "0.00", DocumentTotal: "1.00",
		Messages: []string{"[135] Número de secuencia no autorizada."}, CreatedAt: now, UpdatedAt: now,
	}
	must(t, s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), taxpayer) }))
	_, err := s.Register(t.Context(), store.Registration{
		Invoice: inv, Request: []byte("{}"),
		Reply: store.StoredReply{
			Scope: inv.Scope, Operation: "create_invoice", Key: "k", Fingerprint: []byte{1}, RawDigest: []byte{1}, ObjectID: inv.ID,
			HTTPStatus: 202, Location: "/", RequestID: "req_0", CreatedAt: now, Body: []byte("{}"),
		},
		Entry: store.HistoryEntry{Scope: inv.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "created", Status: inv.Status},
	})
	must(t, err)
	return inv
}

// A list has no English words in Spanish.
func TestListsAreTranslated(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	command := func(args ...string) string {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), append(args, "--data", data), &out, &errOut); code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, errOut.String())
		}
		return strings.TrimSpace(out.String())
	}
	taxpayer := command("taxpayer", "create", "--rnc", "199000013", "--legal-name", "Palma")
	command("credential", "create", "--taxpayer", taxpayer, "--environment", "sandbox", "--scope", "ecf.read")
	command("taxpayer", "suspend", taxpayer)
	command("environment", "suspend", "production")
	command("user", "create", "--name", "Ana", "--email", "ana@example.com", "--role", "auditor")
	command("source", "create", "--taxpayer", taxpayer, "--environment", "certification")
	for list, want := range map[string][]string{
		"taxpayer":    {"suspendido"},
		"credential":  {"suspendida"},
		"environment": {"en uso", "suspendido desde 2"},
		"user":        {"invitada", "todos"},
		"source":      {"vigente"},
		"keys":        {"la más reciente; credenciales que la usan: 1"},
	} {
		got := command(list, "list", "--lang", "es")
		for _, words := range want {
			if !strings.Contains(got, words) {
				t.Errorf("%s list has no %q:\n%s", list, words, got)
			}
		}
	}
}

func TestEmptyVariablesAreUnset(t *testing.T) {
	t.Parallel()
	var unset []string
	unsetEmpty([]string{"FISCALHUB_LISTEN=", "FISCALHUB_DATA=d", "HOME=", "FISCALHUB_JSON="}, func(name string) error {
		unset = append(unset, name)
		return nil
	})
	if got := strings.Join(unset, " "); got != "FISCALHUB_LISTEN FISCALHUB_JSON" {
		t.Errorf("unset are %s", got)
	}
}
