package docs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// httpClient has a transport of its own. A test server that ends closes the idle
// connections of the default transport, and then a request of another test may fail.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// block returns the one block of code in a language.
func block(t *testing.T, page, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("%d blocks in %s", len(found), language)
	}
	return found[0][1]
}

// The recipes take what we send and refuse what is forged, as they stand on the
// page: only what listens is added.
func TestWebhookRecipes(t *testing.T) {
	t.Parallel()
	page := read(t, "webhooks.md")
	for _, tt := range []struct {
		language, program, file, listen string
	}{
		{
			"go", "go", "receive.go", `
func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, http.HandlerFunc(receive)))
}
`,
		},
		{"js", "node", "receive.js", "\nserver.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));\n"},
		{"python", "python3", "receive.py", `
from http.server import HTTPServer
Receiver.log_message = lambda *_: None
server = HTTPServer(("127.0.0.1", 0), Receiver)
print(f"127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
`},
	} {
		t.Run(tt.language, func(t *testing.T) {
			t.Parallel()
			code := block(t, page, tt.language) + "\n" + tt.listen
			code = strings.Replace(code, "import (\n", "import (\n\t\"fmt\"\n\t\"net\"\n", 1) // of Go, for what listens
			needtest.Program(t, tt.program)
			secret := webhook.NewSecret()
			try(t, start(t, secret, tt.program, tt.file, code), secret)
		})
	}
}

// start runs a program that prints where it listens, until the test ends.
func start(t *testing.T, secret webhook.Secret, program, file, code string) (address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{path}
	if program == "go" { // built first: what "go run" starts outlives it
		program, arguments = strings.TrimSuffix(path, ".go"), nil
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, path).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret.Reveal())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was ended
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		_ = cmd.Wait() // only then is all of it there
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(line)
}

// try sends what is genuine and what is not.
func try(t *testing.T, address string, secret webhook.Secret) {
	t.Helper()
	other := webhook.NewSecret()
	body := []byte(`{"type":"fiscal_document.accepted","data":{"external_id":"ñandú"}}`)
	const id = "evt_0191d0c2b4f97a1c8e5d2f3a4b5c6d7e"
	post := func(at time.Time, secrets ...webhook.Secret) int {
		t.Helper()
		s, err := webhook.New(webhook.Options{Now: func() time.Time { return at }, Guard: netguard.Guard{Private: true}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Post(t.Context(), webhook.Message{URL: "http://" + address + "/", ID: id, Body: body, Secrets: secrets}).Status
	}
	raw := func(header http.Header, body []byte) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		req.Close = true
		res, err := httpClient.Transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	signed := func(change func(http.Header)) http.Header {
		now := time.Now()
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
		h.Set("webhook-signature", webhook.Sign(id, now, body, secret))
		change(h)
		return h
	}
	now := time.Now()
	for name, got := range map[string]int{
		"genuine":                post(now, secret),
		"genuine, two secrets":   post(now, other, secret),
		"genuine, 4 minutes old": post(now.Add(-4*time.Minute), secret),
		"genuine, sent by hand":  raw(signed(func(http.Header) {}), body),
	} {
		if got != http.StatusNoContent {
			t.Errorf("%s: %d", name, got)
		}
	}
	for name, got := range map[string]int{
		"another secret":    post(now, other),
		"6 minutes old":     post(now.Add(-6*time.Minute), secret),
		"6 minutes early":   post(now.Add(6*time.Minute), secret),
		"another body":      raw(signed(func(http.Header) {}), append(bytes.Clone(body), ' ')),
		"another id":        raw(signed(func(h http.Header) { h.Set("webhook-id", "evt_2") }), body),
		"another timestamp": raw(signed(func(h http.Header) { h.Set("webhook-timestamp", strconv.FormatInt(now.Unix()-60, 10)) }), body),
		"no headers":        raw(http.Header{}, body),
		"no id":             raw(signed(func(h http.Header) { h.Del("webhook-id") }), body),
		"no timestamp":      raw(signed(func(h http.Header) { h.Del("webhook-timestamp") }), body),
		"no signature":      raw(signed(func(h http.Header) { h.Del("webhook-signature") }), body),
		"a time in words":   raw(signed(func(h http.Header) { h.Set("webhook-timestamp", "now") }), body),
		"another version":   raw(signed(func(h http.Header) { h.Set("webhook-signature", "v2"+h.Get("webhook-signature")[2:]) }), body),
		"cut short":         raw(signed(func(h http.Header) { h.Set("webhook-signature", h.Get("webhook-signature")[:20]) }), body),
		"no base64 at all":  raw(signed(func(h http.Header) { h.Set("webhook-signature", "v1,ñ v1, ,") }), body),
	} {
		if got != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// The page names every kind that an endpoint may ask for, and no other; its
// example is one event as it is sent.
func TestWebhookPage(t *testing.T) {
	t.Parallel()
	page := read(t, "webhooks.md")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		listed = append(listed, m[1])
	}
	if diff := cmp.Diff(event.Kinds(), listed); diff != "" {
		t.Errorf("kinds (-code +page):\n%s", diff)
	}
	example := []byte(block(t, page, "json"))
	var event struct {
		ID, Type string
		Data     struct{ Links struct{ Self string } }
	}
	if err := json.Unmarshal(example, &event); err != nil {
		t.Fatal(err)
	}
	var minified bytes.Buffer
	if err := json.Compact(&minified, example); err != nil || minified.String() != string(example) {
		t.Errorf("the example is not minified: %v", err)
	}
	if !slices.Contains(listed, event.Type) || !strings.HasPrefix(event.ID, "evt_") {
		t.Errorf("the example is %+v", event)
	}
	if link := event.Data.Links.Self; !strings.HasPrefix(link, "https://") {
		t.Errorf("the example has the link %s; the service sends an absolute address", link)
	}
}
