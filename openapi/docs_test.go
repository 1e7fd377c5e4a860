package openapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func docsServer(t *testing.T) *httptest.Server {
	t.Helper()
	text, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	docs := Docs("/v1/openapi.json")
	mux.Handle("/docs", docs)
	mux.Handle("/docs/", docs)
	mux.HandleFunc("/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(text) // the test sees a failure in the page
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// fetched is a response with its whole body.
type fetched struct {
	status int
	header http.Header
	body   string
}

func fetch(t *testing.T, method, url string) fetched {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fetched{resp.StatusCode, resp.Header, string(body)}
}

var addressPattern = regexp.MustCompile(`(?:src|href|data-spec)="([^"]*)"`)

func TestDocsPageUsesOnlyItsOwnFiles(t *testing.T) {
	t.Parallel()
	server := docsServer(t)
	for _, path := range []string{"/docs", "/docs/"} {
		resp := fetch(t, "GET", server.URL+path)
		page := resp.body
		if resp.status != 200 || !strings.Contains(page, "<title>fiscalhub API</title>") {
			t.Fatalf("%s answered %d: %s", path, resp.status, page)
		}
		if strings.Contains(page, "://") {
			t.Errorf("%s contains the address of another origin: %s", path, page)
		}
		for _, m := range addressPattern.FindAllStringSubmatch(page, -1) {
			if resp := fetch(t, "GET", server.URL+m[1]); resp.status != 200 {
				t.Errorf("%s refers to %s, which answers %d", path, m[1], resp.status)
			}
		}
	}
}

func TestDocsHeadersAndMethods(t *testing.T) {
	t.Parallel()
	server := docsServer(t)
	for _, c := range []struct {
		method, path string
		status       int
		mediaType    string
	}{
		{"GET", "/docs", 200, "text/html; charset=utf-8"},
		{"HEAD", "/docs", 200, "text/html; charset=utf-8"},
		{"GET", "/docs/docs.js", 200, "javascript"},
		{"GET", "/docs/swagger-ui.css", 200, "text/css"},
		{"GET", "/docs/swagger-ui-bundle.js", 200, "javascript"},
		{"GET", "/docs/oauth2-redirect.html", 404, ""},
		{"GET", "/docs/docs.go", 404, ""},
		{"POST", "/docs", 405, ""},
	} {
		resp := fetch(t, c.method, server.URL+c.path)
		if resp.status != c.status {
			t.Errorf("%s %s answered %d, want %d", c.method, c.path, resp.status, c.status)
		}
		if got := resp.header.Get("Content-Type"); !strings.Contains(got, c.mediaType) {
			t.Errorf("%s %s is %q, want %q in it", c.method, c.path, got, c.mediaType)
		}
		if c.method == "HEAD" && resp.body != "" {
			t.Errorf("HEAD %s has a body", c.path)
		}
		policy := resp.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'self';") {
			t.Errorf("%s %s: policy is %q", c.method, c.path, policy)
		}
		if resp.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s has no X-Content-Type-Options: nosniff", c.method, c.path)
		}
	}
}

func TestDocsEscapeTheSpecURL(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Docs(`/x"><script>`).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/docs", nil))
	if strings.Contains(w.Body.String(), `"><script>`) {
		t.Error("the URL of the document is not escaped")
	}
}

// browser starts a headless Chromium that can connect only to this machine.
func browser(t *testing.T) context.Context {
	t.Helper()
	const path = "/usr/bin/chromium"
	if _, err := exec.LookPath(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI needs Chromium: %v", err)
		}
		t.Skipf("SKIPPED: Chromium is not installed: %v", err)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 1600))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// The first call starts the browser and must not carry a deadline.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// wait fails the test unless the expression becomes true in the page.
func wait(ctx context.Context, t *testing.T, expression string) {
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

func TestDocsInABrowser(t *testing.T) {
	ctx := browser(t)
	server := docsServer(t)

	reading, stop := context.WithCancel(ctx)
	defer stop()
	var requests, messages []string
	done := make(chan struct{}, 2)
	sent, console := chromedp.Events(reading, network.RequestWillBeSent), chromedp.Console(reading)
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

	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+"/docs")); err != nil {
		t.Fatal(err)
	}
	for _, id := range operationIDs {
		wait(ctx, t, `document.querySelector('[id$="-`+id+`"] .opblock-summary-control') !== null`)
	}
	if title, err := chromedp.Run(ctx, chromedp.Title()); err != nil || title != "fiscalhub API" {
		t.Errorf("title is %q (%v)", title, err)
	}
	if shown, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector('#docs').innerText`)); err != nil {
		t.Error(err)
	} else if !strings.Contains(shown, "idempotency_mismatch") || strings.Contains(shown, "Errors at") {
		t.Errorf("the page does not show the document: %.400s", shown)
	}

	openByKeyboard(ctx, t)

	stop()
	<-done
	<-done
	own := 0
	for _, url := range requests {
		switch {
		case strings.HasPrefix(url, server.URL+"/"):
			own++
		case !strings.HasPrefix(url, "data:"):
			t.Errorf("the page requested %s", url)
		}
	}
	if own < 5 {
		t.Errorf("only %d requests were seen: %v", own, requests)
	}
	for _, c := range messages {
		t.Errorf("message on the console: %s", c)
	}
}

// openByKeyboard reaches the first operation with Tab and opens it with Enter.
func openByKeyboard(ctx context.Context, t *testing.T) {
	t.Helper()
	for range 60 {
		if err := chromedp.Do(ctx, chromedp.KeyEvent(kb.Tab)); err != nil {
			t.Fatal(err)
		}
		onOperation, err := chromedp.Run(ctx, chromedp.Evaluate[bool](
			`document.activeElement.matches('.opblock-summary-control')`))
		if err != nil {
			t.Fatal(err)
		}
		if !onOperation {
			continue
		}
		if err := chromedp.Do(ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
			t.Fatal(err)
		}
		wait(ctx, t, `document.activeElement.closest('.opblock.is-open') !== null`)
		wait(ctx, t, `document.activeElement.getAttribute('aria-expanded') === 'true'`)
		return
	}
	t.Error("Tab does not reach an operation")
}
