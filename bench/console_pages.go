package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	pageGoal     = "≤ 50 ms"
	openBrowsers = 10
	browserPause = 2 * time.Second // between the updates of a page, as in console.js
)

// A consoleBrowser is a person who is signed in to the console of a service.
type consoleBrowser struct {
	http.Client
	base string
}

// signIn creates an operator and returns the browser of the person.
func (b *bench) signIn(ctx context.Context, s *service, name string) (*consoleBrowser, error) {
	link, err := b.field(ctx, s.database, "link", "user", "create", "--name", name, "--email", name+"@example.com", "--role", "operator")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &consoleBrowser{http.Client{Jar: jar}, "http://" + s.address}
	form := url.Values{"password": {"una frase larga y propia"}, "password_again": {"una frase larga y propia"}}
	return browser, browser.do(ctx, http.MethodPost, u.Path, form)
}

func (c *consoleBrowser) get(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodGet, path, nil)
}

// do sends a request, and reads the whole page that it leads to.
func (c *consoleBrowser) do(ctx context.Context, method, path string, form url.Values) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if answer.StatusCode != http.StatusOK || strings.HasSuffix(answer.Request.URL.Path, "/sign-in") {
		return errors.Join(err, fmt.Errorf("%s %s: answer %d of %s", method, path, answer.StatusCode, answer.Request.URL.Path))
	}
	return err
}

// consolePages times the pages of a service on the database of consoleReads, from the
// request to the last byte.
func (b *bench) consolePages(ctx context.Context, engine string, e *consoleEnv) (err error) {
	s, err := b.startIn(ctx, "sandbox", e.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	browser, err := b.signIn(ctx, s, "bench")
	if err != nil {
		return err
	}
	newest, err := e.AllDocuments(ctx, store.IDSpan{Before: "g", Limit: consoleRuns})
	if err != nil {
		return err
	}
	type page struct {
		name string
		path func(i int) string
	}
	pages := []page{
		{"first page", func(int) string { return "/console/" }},
		{"update of the first page", func(int) string { return "/console/overview/live" }},
		{"documents", func(int) string { return "/console/documents" }},
		{"documents by name", func(i int) string {
			return fmt.Sprintf("/console/documents?q=numero+%d", 1000+i*97%(consoleBuyers-1000))
		}},
		{"documents by amount", func(i int) string { return fmt.Sprintf("/console/documents?q=%d.00", i*997%consoleAmounts+1) }},
		{"rejected documents", func(int) string { return "/console/documents?status=rejected" }},
		{"one document", func(i int) string { return "/console/documents/" + newest[i%len(newest)].DocumentID }},
	}
	for _, name := range []string{"documents/new", "work", "exports", "requests", "webhooks", "keys", "taxpayers", "authority", "users", "audit", "account"} {
		pages = append(pages, page{name, func(int) string { return "/console/" + name }})
	}
	for _, page := range pages {
		if err := e.timeWithin(b, "page: "+page.name+", "+engine, pageGoal, func(i int) error { return browser.get(ctx, page.path(i)) }); err != nil {
			return err
		}
	}
	return nil
}

// consoleBrowsers compares creations while ten browsers show the console with creations
// while none does.
func (b *bench) consoleBrowsers(ctx context.Context, engine string) (err error) {
	b.say("creations on %s with and without %d browsers", engine, openBrowsers)
	s, err := b.startService(ctx, engine, "console_browsers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	browsers := make([]*consoleBrowser, openBrowsers)
	for n := range browsers {
		if browsers[n], err = b.signIn(ctx, s, fmt.Sprintf("bench%d", n)); err != nil {
			return err
		}
	}
	turn := s.creationTurns(ctx)
	with, without, ratio, err := inTurns(func() (float64, error) {
		watching, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for n, browser := range browsers {
			all.Go(func() { browser.watch(watching, n) })
		}
		rate, err := turn()
		stop()
		all.Wait()
		return rate, err
	}, turn)
	if err != nil {
		return err
	}
	b.row("creations/s with the console open in ten browsers, "+engine, rateText(with), rateText(without), ratio, "≥ 0.95",
		"the same without browsers, in turns")
	return nil
}

// watch updates the first page as its script does, and looks at the list now and then. The
// browsers do not begin at the same moment.
func (c *consoleBrowser) watch(ctx context.Context, browser int) {
	select {
	case <-time.After(browserPause * time.Duration(browser) / openBrowsers):
	case <-ctx.Done():
	}
	tick := time.NewTicker(browserPause)
	defer tick.Stop()
	for n := browser; ctx.Err() == nil; n++ {
		path := "/console/overview/live"
		if n%5 == 0 {
			path = "/console/documents"
		}
		_ = c.get(ctx, path) // a failure shows in the next measurement
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
