package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/fiscalhub/fiscalhub/internal/browsertest"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// tabTime is how long a test may use its tab, and waitTime how long a page may take to
	// show something. Both are for a busy machine.
	tabTime  = 10 * time.Minute
	waitTime = 90 * time.Second
)

// sharedBrowser is one browser for all tests of the package. Each tab has cookies of its
// own.
type sharedBrowser struct {
	start sync.Once
	ctx   context.Context //nolint:containedctx // chromedp keeps the browser in the context
	stop  func()
	err   error
}

var theBrowser sharedBrowser

// open starts the browser.
func (s *sharedBrowser) open(program string) (context.Context, error) {
	s.start.Do(func() {
		var folder string
		if folder, s.err = os.MkdirTemp("", "fiscalhub-console-"); s.err != nil {
			return
		}
		var stop func()
		s.ctx, stop, s.err = browsertest.Start(context.Background(), program, folder, "es-DO,es")
		s.stop = func() {
			if stop != nil {
				stop()
			}
			_ = os.RemoveAll(folder)
		}
	})
	return s.ctx, s.err
}

func TestMain(m *testing.M) {
	code := m.Run()
	if theBrowser.stop != nil {
		theBrowser.stop()
	}
	os.Exit(code)
}

// tab is a page in a real browser.
type tab struct {
	context.Context //nolint:containedctx // chromedp keeps the tab in the context
	t               *testing.T
	server          *httptest.Server
	forms           sentForms
}

// sentForms are the rows of the table of pages whose form a tab has sent, and which the
// console did not refuse.
type sentForms struct {
	mu  sync.Mutex
	all map[string]bool
}

func (f *sentForms) handler(c *Console) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		row, _ := c.match(&request{Request: r.Clone(r.Context()), console: c})
		got := &statusWriter{ResponseWriter: w}
		c.ServeHTTP(got, r)
		if row != nil && row.changes() && got.status < http.StatusBadRequest {
			f.mu.Lock()
			f.all[row.address] = true
			f.mu.Unlock()
		}
	})
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// openTab opens a tab of a browser for the console.
func (e *env) openTab() *tab {
	e.t.Helper()
	browser, err := theBrowser.open(browsertest.Program(e.t))
	e.must(err)
	b := &tab{t: e.t, forms: sentForms{all: map[string]bool{}}}
	b.server = httptest.NewServer(b.forms.handler(e.Console))
	e.t.Cleanup(b.server.Close)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	e.t.Cleanup(cancel)
	// The first call opens the tab and must not carry a deadline.
	e.must(chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})))
	b.Context, cancel = context.WithTimeout(ctx, tabTime)
	e.t.Cleanup(cancel)
	return b
}

func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b *tab) open(path string) { b.t.Helper(); b.do(path, chromedp.Navigate(b.server.URL+path)) }

// signIn gives the tab the session of a new person.
func (b *tab) signIn(e *env, role store.Role, taxpayers ...string) store.User {
	b.t.Helper()
	signedIn, u := e.signedIn(role, taxpayers...)
	for name, value := range signedIn.cookies {
		b.do("cookie", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: b.server.URL, Path: "/", SameSite: network.CookieSameSiteStrict})
			return err
		}))
	}
	return u
}

// fill types a text into a field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(selector, chromedp.SendKeys(selector, text))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(selector, chromedp.Click(selector))
}

// confirm clicks a button that asks a question, and answers yes. With a name, it also
// checks the accessibility of the question.
func (b *tab) confirm(selector, name string) {
	b.t.Helper()
	b.click(selector)
	b.wait(`document.getElementById('question').open && document.activeElement.id === 'question-no'`)
	if name != "" {
		b.picture(name)
	}
	b.click("#question-yes")
}

func (b *tab) evaluate(expression string) bool {
	b.t.Helper()
	got, err := chromedp.Run(b, chromedp.Evaluate[bool](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// wait fails the test unless the expression becomes true in the page.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b, waitTime)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 160*time.Millisecond) {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === 'complete' && !!(`+expression+`)`))
		switch {
		case err == nil && got:
			return
		case ctx.Err() != nil:
			text, _ := chromedp.Run(b, chromedp.Evaluate[string](`location.href + ' ' + document.activeElement?.outerHTML.slice(0, 200) + ' ' + document.body.innerText`))
			b.t.Fatalf("%s is not true in: %.1200s", expression, text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// picture checks that everybody can use the page. It also writes pictures of it at two
// widths into the folder FISCALHUB_PICTURES, for a person to look at.
func (b *tab) picture(name string) {
	b.t.Helper()
	b.accessible(name)
	dir := os.Getenv("FISCALHUB_PICTURES")
	if dir == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		b.do("size", chromedp.EmulateViewport(width, 900))
		got, err := chromedp.Run(b, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, width)), got, 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.do("size", chromedp.EmulateViewport(1280, 900))
}

// The rules of WCAG 2.2, levels A and AA, as axe-core checks them. testdata/axe.min.js is
// axe-core 4.14.0, under the Mozilla Public License 2.0.
const checkAccessibility = `axe.run(document, {preload: false, resultTypes: ['violations'], runOnly: {type: 'tag',
	values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa']}}).then(found => found.violations.map(v =>
	v.id + ' (' + v.help + '): ' + v.nodes.slice(0, 3).map(n => n.target + ' ' + n.html.slice(0, 160)).join(' | ')).join('\n'))`

// checkedPages are the names of the pages that have been checked.
var checkedPages sync.Map

// accessible fails the test when the page that is open violates a rule of accessibility.
// It checks each page once, half of them in each theme. With FISCALHUB_AXE=all it checks
// every state of every page, at
// two widths and in both themes.
func (b *tab) accessible(name string) {
	b.t.Helper()
	widths, themes := []int64{1280}, []string{[]string{"light", "dark"}[len(name)%2]}
	if os.Getenv("FISCALHUB_AXE") == "all" {
		widths, themes = []int64{1280, 390}, []string{"light", "dark"}
	} else if _, checked := checkedPages.LoadOrStore(strings.TrimSuffix(name, "-dark"), true); checked {
		return
	}
	b.evaluate(axe(b.t) + `; typeof axe === 'object'`)
	before, err := chromedp.Run(b, chromedp.Evaluate[string](`document.documentElement.dataset.theme || ''`))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, theme := range themes {
		b.theme(theme)
		for _, width := range widths {
			if len(widths) > 1 {
				b.do("size", chromedp.EmulateViewport(width, 900))
			}
			found, err := chromedp.Run(b, chromedp.Evaluate[string](checkAccessibility, chromedp.EvalAwaitPromise))
			if err != nil {
				b.t.Fatalf("%s: %v", name, err)
			}
			if found != "" {
				b.t.Errorf("%s %s at %d px violates:\n%s", name, theme, width, found)
			}
		}
	}
	b.theme(before)
	if len(widths) > 1 {
		b.do("size", chromedp.EmulateViewport(1280, 900))
	}
}

// theme changes the theme of the page that is open. Colours do not change slowly, or they
// would be measured on their way.
func (b *tab) theme(name string) {
	b.t.Helper()
	b.evaluate(`(document.documentElement.dataset.theme = '` + name + `', document.body.offsetHeight, document.getAnimations().forEach(a => a.finish()), true)`)
}

func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}
