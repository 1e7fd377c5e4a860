// Package browsertest starts the browser of tests of web pages: a Chromium without a window
// that can connect only to this machine.
package browsertest

import (
	"context"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// programs are the browsers that the tests can use, the fastest first. The first is Chromium
// without the parts that draw windows. It needs half of the time of the others.
func programs() []string {
	return []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}
}

// Program returns the path of the browser. Without a browser it skips the test; with the
// environment variable CI it fails.
func Program(t testing.TB) string {
	t.Helper()
	for _, name := range programs() {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	needtest.Missing(t, "chromium", "there is no browser")
	return ""
}

// Start starts a browser with its files in a folder. Pages see that their reader prefers the
// languages, as in the header Accept-Language. The browser ends when ctx ends or after stop.
func Start(ctx context.Context, program, folder, languages string) (browser context.Context, stop func(), err error) {
	ctx, cancel := chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(program), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		// Tests use several tabs at the same time, and none of them is in the background.
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("accept-lang", languages), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.UserDataDir(folder), chromedp.WindowSize(1280, 900))
	browser, closeBrowser := chromedp.NewContext(ctx)
	stop = func() {
		_ = chromedp.Cancel(browser) // waits until it has ended
		closeBrowser()
		cancel()
	}
	// The first call starts the browser and must not carry a deadline.
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		stop()
		return nil, nil, err
	}
	return browser, stop, nil
}
