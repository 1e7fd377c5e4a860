package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/cause"
)

// maxTabs is how often a person presses Tab to reach a control of a page.
const maxTabs = 200

// press presses keys, one after the other.
func (b *tab) press(keys string) { b.t.Helper(); b.do("keys", chromedp.KeyEvent(keys)) }

// reach presses Tab until a control has the focus. It fails the test when the focus is not
// visible on the way, or does not get there.
func (b *tab) reach(selector string) {
	b.t.Helper()
	b.wait(`document.querySelector(` + quoted(selector) + `)`)
	has := `document.activeElement.matches(` + quoted(selector) + `)`
	between, err := chromedp.Run(b, chromedp.Evaluate[int](controlsBetween(selector)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.press(strings.Repeat(kb.Tab, between)) // at once; the rest step by step
	for range maxTabs {
		if b.evaluate(has) {
			if !b.evaluate(`document.activeElement.checkVisibility()`) {
				b.t.Fatalf("%s has the focus and is not visible", selector)
			}
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("%s is not reached with Tab", selector)
}

// controlsBetween returns an expression for the number of controls between the focus and
// another control, each of which needs at least one press of Tab.
func controlsBetween(selector string) string {
	return `(() => {
		const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
			.filter((c) => !c.disabled && c.type !== 'hidden' && c.tabIndex >= 0 && c.checkVisibility() && !c.closest('dialog:not([open])'));
		const from = all.findIndex((c) => document.activeElement.compareDocumentPosition(c) & Node.DOCUMENT_POSITION_FOLLOWING && !document.activeElement.contains(c)
			|| document.activeElement.contains(c) && c !== document.activeElement);
		const to = all.findIndex((c) => c.matches(` + quoted(selector) + `));
		return from < 0 || to < from ? 0 : to - from;
	})()`
}

// skip jumps over the navigation with the first link of the page.
func (b *tab) skip() {
	b.t.Helper()
	b.wait(`document.querySelector('a.skip')`)
	b.reach("a.skip")
	b.press(kb.Enter)
	b.wait(`document.activeElement.id === 'content'`)
}

// visit opens a page and jumps over its navigation.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.open(path)
	b.skip()
}

// write reaches a field and types into it.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.reach(selector)
	b.press(text)
}

// push reaches a button or a link and presses Enter.
func (b *tab) push(selector string) {
	b.t.Helper()
	b.reach(selector)
	b.press(kb.Enter)
}

// agree answers yes to the question of a button that was pushed.
func (b *tab) agree() {
	b.t.Helper()
	b.wait(`document.getElementById('question').open && document.activeElement.id === 'question-no'`)
	b.push("#question-yes")
}

// disagree leaves the question of a button that was pushed with Escape. The focus returns
// to the button.
func (b *tab) disagree(selector string) {
	b.t.Helper()
	b.wait(`document.getElementById('question').open`)
	b.press(kb.Escape)
	b.wait(`!document.getElementById('question').open && document.activeElement.matches(` + quoted(selector) + `)`)
}

// shows waits until a page says that something is done.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.wait(`document.querySelector('main').innerText.includes(` + quoted(text) + `)`)
}

func quoted(text string) string { return "`" + text + "`" }

// keyboardForms are the forms of the table of pages that the tests of this file send with
// the keyboard alone, by the name of the test.
func keyboardForms() map[string][]string {
	return map[string][]string{
		"TestPeopleWithTheKeyboardAlone": {
			"/console/sign-in", "/console/sign-out", "/console/welcome/{token}", "/console/users", "/console/users/{id}/role", "/console/users/{id}/reset",
			"/console/users/{id}/disable", "/console/account/preferences", "/console/account/password", "/console/account/sessions/{id}/end",
			"/console/account/second-factor/begin", "/console/account/second-factor/confirm", "/console/account/second-factor/remove",
		},
		"TestOperationsWithTheKeyboardAlone": {
			"/console/taxpayers", "/console/taxpayers/{id}", "/console/taxpayers/{id}/logo", "/console/taxpayers/{id}/certificates",
			"/console/taxpayers/{id}/certificates/{certificate}/revoke", "/console/taxpayers/{id}/ranges", "/console/taxpayers/{id}/suspend",
			"/console/taxpayers/{id}/resume", "/console/keys", "/console/keys/{id}/rotate", "/console/keys/{id}/revoke", "/console/webhooks",
			"/console/webhooks/{id}/test", "/console/webhooks/{id}/replay", "/console/webhooks/{id}/rotate", "/console/webhooks/{id}/enable",
			"/console/webhooks/{id}/delete", "/console/authority/release", "/console/work/{id}/requeue",
		},
		"TestDocumentsWithTheKeyboardAlone": {"/console/documents/{document_id}/resolve", "/console/documents/{document_id}/resend"},
		"TestIssuingWithTheKeyboardAlone": {
			"/console/documents/new", "/console/documents/new/draft", "/console/exports", "/console/exports/{id}/delete",
		},
	}
}

// wantForms fails the test unless the tab has sent each form that keyboardForms names for
// the test.
func (b *tab) wantForms() {
	b.t.Helper()
	b.forms.mu.Lock()
	defer b.forms.mu.Unlock()
	for _, address := range keyboardForms()[b.t.Name()] {
		if !b.forms.all[address] {
			b.t.Errorf("the form %s was not sent with the keyboard", address)
		}
	}
}

// Every form of the table of pages is sent by a test with the keyboard alone.
func TestEveryFormIsSentWithTheKeyboard(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var sent []string
	for _, some := range keyboardForms() {
		sent = append(sent, some...)
	}
	for _, p := range e.pages {
		if p.changes() && !slices.Contains(sent, p.address) {
			t.Errorf("no test sends the form %s with the keyboard", p.address)
		}
		if i := slices.Index(sent, p.address); p.changes() && i >= 0 {
			sent = slices.Delete(sent, i, i+1)
		}
	}
	if len(sent) > 0 {
		t.Errorf("these forms do not exist, or are named twice: %s", strings.Join(sent, ", "))
	}
}

// The causes of failed jobs are shown in the language of the person.
func TestCausesOfFailedJobsAreTranslated(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	x := &request{console: e.Console, language: e.languageOf("es")}
	for why, want := range map[cause.Cause]string{
		cause.New(cause.RangeExhausted):                                     "La secuencia de e-NCF se agotó.",
		cause.New(cause.ClockNode, "7s"):                                    "El reloj de este servidor adelanta 7s al de la base de datos: corrija la hora de este servidor.",
		cause.New(cause.CallUnavailable, "reception", "connection refused"): "La DGII no responde (reception): connection refused.",
		"a sentence of an earlier release":                                  "a sentence of an earlier release",
	} {
		if got := x.cause(why); got != want {
			t.Errorf("%q is %q, want %q", why, got, want)
		}
	}
}
