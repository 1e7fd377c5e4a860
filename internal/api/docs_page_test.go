package api_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/browsertest"
)

// pictures makes TestDocsInABrowser write the pictures of the documentation.
var pictures = flag.Bool("pictures", false, "write docs/pictures/docs-*.png")

// browser is a headless Chromium that can connect only to this machine.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func newBrowser(t *testing.T) browser {
	t.Helper()
	ctx, stop, err := browsertest.Start(t.Context(), browsertest.Program(t), t.TempDir(), "en-US")
	must(t, err)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return browser{t, ctx}
}

// do runs one action.
func (b browser) do(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, action); err != nil {
		b.t.Fatal(err)
	}
}

// text returns the value of an expression in the page, as text.
func (b browser) text(expression string) string {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// want fails the test unless an expression of the page has a value.
func (b browser) want(expression, want string) {
	b.t.Helper()
	if got := b.text(expression); got != want {
		b.t.Errorf("%s is %s, want %s", expression, got, want)
	}
}

// wait fails the test unless an expression becomes true in the page.
func (b browser) wait(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		b.t.Fatalf("%s: %v; the page shows %.400s", expression, err, b.text("document.body.innerText"))
	}
}

// prefer makes the browser prefer a colour scheme, as the settings of a system do.
func (b browser) prefer(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// picture writes a picture of the screen for the documentation, when asked for.
func (b browser) picture(name string) {
	b.t.Helper()
	if !*pictures {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "pictures", name), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// watch records the requests and the console of the page until the returned function is
// called, which reports what should not be there. A violation of the policy is a message
// on the console.
func (b browser) watch(own string) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	var requests, messages []string
	done := make(chan struct{}, 2)
	sent, console := chromedp.Events(ctx, network.RequestWillBeSent), chromedp.Console(ctx)
	go func() {
		for e, err := range sent {
			if err != nil {
				break
			}
			requests = append(requests, e.Request.URL)
		}
		done <- struct{}{}
	}()
	go func() {
		for m, err := range console {
			if err != nil {
				break
			}
			messages = append(messages, m.String())
		}
		done <- struct{}{}
	}()
	return func() {
		cancel()
		<-done
		<-done
		for _, url := range requests {
			if !strings.HasPrefix(url, own+"/") {
				b.t.Errorf("the page requested %s", url)
			}
		}
		if len(requests) < 4 {
			b.t.Errorf("only %d requests were seen: %v", len(requests), requests)
		}
		for _, m := range messages {
			b.t.Errorf("message on the console: %s", m)
		}
	}
}

// The page works in a browser at whatever address it is served from, on a desk and on a
// phone, with the keyboard, in light and dark, and sends requests with a key that it
// keeps nowhere.
func TestDocsInABrowser(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		b := newBrowser(t)
		stop := b.watch(e.base)
		b.prefer("light")
		b.do(chromedp.EmulateViewport(1280, 900))
		b.do(chromedp.Navigate(e.base + "/docs"))
		b.wait(`document.readyState === 'complete' && document.querySelector('[role=tablist]') !== null`)
		b.want(`document.title`, "fiscalhub API")
		b.want(`['header', 'nav', 'main', 'h1'].map((name) => document.querySelectorAll('body > .layout > ' + name + ', body > ' + name + ', ' + (name === 'h1' ? 'h1' : 'none')).length)`, "1,1,1,1")

		b.want(`document.getElementById('setup-curl').textContent.includes('FISCALHUB_URL=`+e.base+`\n')`, "true")
		b.want(`document.documentElement.scrollWidth <= innerWidth`, "true")
		b.want(`document.getElementById('contents').getBoundingClientRect().width > 200`, "true")
		b.want(`document.getElementById('createInvoice').getBoundingClientRect().top < 1000`, "true")
		b.picture("docs-1280.png")
		b.text(`(() => { const filter = document.getElementById('filter'); filter.value = '/xml'; filter.dispatchEvent(new Event('input')); })()`)
		b.want(`[...document.querySelectorAll('#contents .section li:not([hidden]) a')].map((link) => link.hash)`, "#downloadFiscalDocumentXml")
		b.text(`(() => { const filter = document.getElementById('filter'); filter.value = ''; filter.dispatchEvent(new Event('input')); })()`)
		reachByKeyboard(b)
		chooseLanguage(b)
		tryIt(b, e)

		b.do(chromedp.EmulateViewport(390, 844))
		b.want(`document.documentElement.scrollWidth <= 390`, "true")
		openEverything(b)
		b.want(`document.documentElement.scrollWidth <= 390`, "true")
		b.want(`getComputedStyle(document.getElementById('contents')).display`, "none")
		b.text(`document.getElementById('menu').click()`)
		b.want(`getComputedStyle(document.getElementById('contents')).display`, "block")
		b.want(`document.getElementById('menu').getAttribute('aria-expanded')`, "true")
		b.text(`document.querySelector('#contents a[href="#createInvoice"]').click()`)
		b.want(`getComputedStyle(document.getElementById('contents')).display`, "none")
		takePictures(b, e.base)
		stop()
	})
}

// reachByKeyboard reaches the first operation with Tab and follows its link with Enter.
func reachByKeyboard(b browser) {
	b.t.Helper()
	for range 30 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if b.text(`document.activeElement.hash === '#createInvoice'`) == "true" {
			b.want(`getComputedStyle(document.activeElement).outlineStyle`, "solid")
			b.do(chromedp.KeyEvent(kb.Enter))
			b.wait(`location.hash === '#createInvoice'`)
			return
		}
	}
	b.t.Error("Tab does not reach an operation")
}

// chooseLanguage moves from one language to the next with the keyboard. The choice holds
// for all examples.
func chooseLanguage(b browser) {
	b.t.Helper()
	b.text(`document.getElementById('createInvoice-curl-tab').focus()`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.want(`document.activeElement.textContent`, "Go")
	b.want(`[...document.querySelectorAll('.sample:not([hidden])')].every((sample) => sample.dataset.language === 'go')`, "true")
	b.text(`document.getElementById('createInvoice-curl-tab').click()`)
}

// tryIt creates an invoice with the form of the page, and reads it with another one.
func tryIt(b browser, e *env) {
	b.t.Helper()
	panel := func(id string) string { return `document.querySelector('#` + id + ` [data-try]')` }
	b.text(panel("createInvoice") + `.open = true`)
	for selector, value := range map[string]string{"[data-key]": e.key, `[data-name="taxpayer_id"]`: e.taxpayer} {
		b.text(fmt.Sprintf(`(() => { const input = %s.querySelector(%q); input.value = %q; input.dispatchEvent(new Event('input', { bubbles: true })); })()`,
			panel("createInvoice"), selector, value))
	}
	b.text(panel("createInvoice") + `.querySelector('.send').click()`)
	b.wait(panel("createInvoice") + `.querySelector('.result .line').textContent.startsWith('202')`)
	b.text(panel("getInvoice") + `.querySelector('.send').click()`)
	b.wait(panel("getInvoice") + `.querySelector('.result').textContent.includes('"external_id": "FA-2026-0418"')`)
	b.want(`JSON.stringify([localStorage, sessionStorage, document.cookie]).includes('fh_')`, "false")
}

// openEverything opens all parts of the page that can be opened.
func openEverything(b browser) {
	b.t.Helper()
	b.text(`document.querySelectorAll('details').forEach((part) => { part.open = true; })`)
}

// takePictures takes the other pictures of the documentation, and looks at both themes.
func takePictures(b browser, base string) {
	b.t.Helper()
	background := `getComputedStyle(document.body).backgroundColor`
	b.do(chromedp.Navigate(base + "/docs#createInvoice"))
	b.do(chromedp.Reload()) // closes what openEverything has opened
	b.wait(`document.querySelector('[role=tablist]') !== null`)
	b.text(`document.getElementById('createInvoice').scrollIntoView({ behavior: 'instant' })`)
	b.picture("docs-390.png")
	light := b.text(background)
	b.prefer("dark")
	dark := b.text(background)
	b.text(`document.getElementById('theme').click()`)
	if switched := b.text(background); dark == light || switched != light {
		b.t.Errorf("the background is %s, %s when the system is dark, and %s after the switch", light, dark, switched)
	}
	b.text(`document.getElementById('theme').click()`)
	b.do(chromedp.EmulateViewport(1280, 900))
	b.text(`document.getElementById('createInvoice').scrollIntoView({ behavior: 'instant' })`)
	b.picture("docs-1280-dark.png")
	b.do(chromedp.EmulateViewport(390, 844))
	b.text(`document.getElementById('createInvoice').scrollIntoView({ behavior: 'instant' })`)
	b.picture("docs-390-dark.png")
	b.do(chromedp.EmulateViewport(1280, 900))
	b.text(`document.getElementById('error-external_id_conflict').scrollIntoView({ behavior: 'instant' })`)
	b.picture("docs-1280-errors.png")
}
