package console

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Every name that is part of a key has its texts.
func TestEveryNameHasItsTexts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, role := range store.Roles() {
		e.mustHave("role." + string(role))
	}
	for _, status := range fiscal.Statuses() {
		e.mustHave("status." + string(status))
	}
	for _, env := range []string{"sandbox", "certification", "production"} {
		e.mustHave("environment." + env)
	}
	for _, group := range navGroups() {
		e.mustHave("nav." + group.name)
		for _, name := range group.pages {
			e.mustHave("nav." + name)
			if icons[name] == "" {
				t.Errorf("the page %s has no icon", name)
			}
		}
	}
	for _, one := range []*pageError{errBadRequest, errForbidden, errCrossSite, errNotFound, errLink, errMethod, errCrowded, errBusy, errUnavailable, errInternal} {
		for _, part := range []string{".title", ".text", ".next"} {
			e.mustHave("error." + one.key + part)
		}
	}
	e.mustHave("error.limited.text") // an answer without a page, so without a title
	e.mustHave("error.limited.next")
}

func (e *env) mustHave(key string) {
	e.t.Helper()
	if e.texts[key].IsZero() {
		e.t.Errorf("there is no text %s", key)
	}
}

// Every text that a template or a handler names exists, and every text is named. A key that
// is put together at run time is named by its beginning.
func TestEveryTextIsUsedAndEveryUsedTextExists(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var source strings.Builder
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "texts") ||
			!strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".html") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	e.must(err)
	all := source.String()
	for _, m := range regexp.MustCompile(`(?:\bt|\.text\(|\bhas) ?"([a-z_.]+[a-z_])"`).FindAllStringSubmatch(all, -1) {
		e.mustHave(m[1])
	}
	composed := regexp.MustCompile(`^(role|status|environment|nav|error|time|done|form|attention|advice|stage|evidence|verdict|difference|payment|delivery|type|chart|decision|check)\.|\.(one|many)$`)
	for key := range e.texts {
		if !composed.MatchString(key) && !strings.Contains(all, `"`+key+`"`) {
			t.Errorf("no page uses the text %s", key)
		}
		if name, ok := strings.CutPrefix(key, "done."); ok && !strings.Contains(all, `"`+name+`"`) {
			t.Errorf("no page uses the text %s", key)
		}
	}
}

// The language is that of the person, else that of the browser, else Spanish.
func TestLanguageOfAPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, u := e.signedIn(store.RoleAuditor)
	for _, test := range []struct{ chosen, accepted, want string }{
		{"", "", "es"}, {"", "fr", "es"}, {"", "en-US,en", "en"}, {"", "es-DO", "es"}, {"es", "en", "es"}, {"en", "es", "en"},
	} {
		e.must(e.o.People.SetPreferences(t.Context(), u.ID, test.chosen, ""))
		b.header.Set("Accept-Language", test.accepted)
		if got := b.get("/console/account").body; !strings.Contains(got, `<html lang="`+test.want+`"`) {
			t.Errorf("chosen %q, accepted %q: the page is %.60s", test.chosen, test.accepted, got)
		}
	}
	stranger := e.browser()
	stranger.header.Set("Accept-Language", "en")
	if got := stranger.get("/console/sign-in").body; !strings.Contains(got, "Sign in") {
		t.Error("the sign-in page ignores the language of the browser")
	}
	text, err := e.texts.Text(lang.English, "sign_in.limited", 7)
	if err != nil || !strings.Contains(text, "7 seconds") {
		t.Errorf("%s, %v", text, err)
	}
}
