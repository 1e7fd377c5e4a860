package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/openapi"
	"github.com/fiscalhub/fiscalhub/openapi/reference"
)

// sampleRun runs the programs of the page /docs in one language against a service.
type sampleRun struct {
	e          *env
	dir        string
	inbox      *stubInbox
	endpoint   string
	operations []string
	variables  []string // of the environment of the programs
}

func newSampleRun(t *testing.T, e *env, inbox *stubInbox) *sampleRun {
	t.Helper()
	r := &sampleRun{e: e, dir: t.TempDir(), inbox: inbox, operations: sampleOperations(t)}
	made, _ := e.createSigned(1)
	a := e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "other", body: []byte(`{"url":"https://other.example/","events":["*"]}`)})
	var endpoint struct{ Data struct{ ID string } }
	e.must(json.Unmarshal(a.body, &endpoint))
	r.endpoint = endpoint.Data.ID
	source, secret, err := e.Sources.Create(t.Context(), e.scope())
	e.must(err)
	e.must(os.WriteFile(filepath.Join(r.dir, "response.xml"), []byte("<ACECF/>"), 0o600))
	r.variables = []string{
		"FISCALHUB_URL=" + e.base, "FISCALHUB_TAXPAYER=" + e.taxpayer, "FISCALHUB_KEY=" + e.key,
		"INVOICE_ID=" + made.ID, "DOCUMENT_ID=" + made.FiscalDocumentID, "ENDPOINT_ID=" + r.endpoint,
		"SOURCE_ID=" + source.ID, "SOURCE_SECRET=" + secret.Reveal(),
	}
	return r
}

// sampleOperations returns the operations of the document. The first one creates what
// others read, the last one deletes what others use.
func sampleOperations(t *testing.T) []string {
	t.Helper()
	text, err := openapi.JSON()
	must(t, err)
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	must(t, json.Unmarshal(text, &document))
	const first, last = "createInvoice", "deleteWebhookEndpoint"
	var list []string
	for _, item := range document.Paths {
		for method, raw := range item {
			var op struct{ OperationID string }
			if method == "parameters" {
				continue
			}
			must(t, json.Unmarshal(raw, &op))
			if op.OperationID != first && op.OperationID != last {
				list = append(list, op.OperationID)
			}
		}
	}
	slices.Sort(list)
	return slices.Concat([]string{first}, list, []string{last})
}

// sample returns a program of the page.
func (r *sampleRun) sample(operation, language string) string {
	r.e.t.Helper()
	text, err := reference.Sample(operation, language)
	r.e.must(err)
	return text
}

// write writes a program into the folder and returns its path.
func (r *sampleRun) write(name string, lines ...string) string {
	r.e.t.Helper()
	path := filepath.Join(r.dir, name)
	r.e.must(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// run runs a program in the folder.
func (r *sampleRun) run(name string, arguments ...string) {
	r.e.t.Helper()
	c := exec.CommandContext(r.e.t.Context(), name, arguments...)
	c.Dir = r.dir
	c.Env = append(os.Environ(), r.variables...)
	if out, err := c.CombinedOutput(); err != nil {
		r.e.t.Fatalf("%v\n%s", err, out)
	}
}

// check looks at what the programs should have done.
func (r *sampleRun) check() {
	t, e := r.e.t, r.e
	t.Helper()
	if a := e.send(request{path: "invoices?external_id=FA-2026-0418"}); !bytes.Contains(a.body, []byte(`"FA-2026-0418"`)) {
		t.Errorf("the invoice does not exist: %s", a)
	}
	for name, want := range map[string]string{"signed.xml": "<?xml", "page.pdf": "%PDF-", "openapi.json": `{"openapi":"3.1.0"`} {
		if content, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || !bytes.HasPrefix(content, []byte(want)) {
			t.Errorf("%s: %v, %.40q", name, err, content)
		}
	}
	wantStatus(t, "the endpoint was not deleted", e.send(request{path: "webhook-endpoints/" + r.endpoint}), http.StatusNotFound)
	if a := e.send(request{path: "webhook-endpoints"}); !bytes.Contains(a.body, []byte("https://erp.example.com/fiscal")) {
		t.Errorf("the endpoint was not created: %s", a)
	}
	if n := len(r.inbox.received); n != 1 {
		t.Errorf("%d messages were forwarded, want 1", n)
	}
}

// testSamples runs the programs of one language in a new environment.
func testSamples(t *testing.T, program string, run func(r *sampleRun)) {
	t.Helper()
	needtest.Program(t, program)
	inbox := &stubInbox{}
	opt := liveOptions()
	opt.inbox, opt.now = inbox, time.Now
	oneEngine(t, opt, func(t *testing.T, e *env) {
		r := newSampleRun(t, e, inbox)
		run(r)
		r.check()
	})
}

func TestCurlSamples(t *testing.T) {
	testSamples(t, "curl", func(r *sampleRun) {
		setup := strings.NewReplacer("http://127.0.0.1:8080", r.e.base, "TAXPAYER_ID", r.e.taxpayer, "API_KEY", r.e.key).Replace(r.sample("setup", "curl"))
		script := []string{"set -euo pipefail", setup}
		for _, operation := range r.operations {
			script = append(script, r.sample(operation, "curl"), "echo")
		}
		r.run("bash", r.write("samples.sh", script...))
	})
}

func TestPythonSamples(t *testing.T) {
	testSamples(t, "python3", func(r *sampleRun) {
		program := []string{r.sample("setup", "python"), `cursor = ""`}
		for _, name := range []string{"invoice_id", "document_id", "endpoint_id", "source_id"} {
			program = append(program, name+` = os.environ["`+strings.ToUpper(name)+`"]`)
		}
		for _, operation := range r.operations {
			program = append(program, r.sample(operation, "python"))
		}
		r.run("python3", r.write("samples.py", program...))
	})
}

// The examples in TypeScript need no annotations of types, so they are JavaScript too.
func TestTypeScriptSamples(t *testing.T) {
	testSamples(t, "node", func(r *sampleRun) {
		var imports []string
		body := []string{r.sample("setup", "typescript"), `let cursor = "";`}
		for name, variable := range map[string]string{"invoiceId": "INVOICE_ID", "documentId": "DOCUMENT_ID", "endpointId": "ENDPOINT_ID", "sourceId": "SOURCE_ID"} {
			body = append(body, "const "+name+" = process.env."+variable+";")
		}
		for _, operation := range r.operations {
			body = append(body, "{")
			for line := range strings.SplitSeq(r.sample(operation, "typescript"), "\n") {
				if strings.HasPrefix(line, "import ") {
					if !slices.Contains(imports, line) {
						imports = append(imports, line)
					}
					continue
				}
				body = append(body, line)
			}
			body = append(body, "}")
		}
		r.run("node", r.write("samples.mjs", append(imports, body...)...))
	})
}

func TestGoSamples(t *testing.T) {
	testSamples(t, "go", func(r *sampleRun) {
		parts := []string{`var cursor string`}
		for name, variable := range map[string]string{"invoiceID": "INVOICE_ID", "documentID": "DOCUMENT_ID", "endpointID": "ENDPOINT_ID", "sourceID": "SOURCE_ID"} {
			parts = append(parts, name+` := os.Getenv("`+variable+`")`)
		}
		for _, operation := range r.operations {
			parts = append(parts, "{\n"+r.sample(operation, "go")+"\n}")
		}
		program := strings.Replace(r.sample("setup", "go"), "// Continue here.", strings.Join(parts, "\n"), 1)
		packages := []string{"bytes", "crypto/hmac", "crypto/sha256", "encoding/base64", "encoding/json", "io", "net/http", "strings", "time"}
		program = strings.Replace(program, "import (\n", "import (\n\t\""+strings.Join(packages, "\"\n\t\"")+"\"\n", 1)
		source, binary := r.write("main.go", program), filepath.Join(r.dir, "samples")
		build := exec.CommandContext(r.e.t.Context(), "go", "build", "-trimpath", "-o", binary, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // the flags of scripts/build: packages that are compiled already
		if out, err := build.CombinedOutput(); err != nil {
			r.e.t.Fatalf("%v\n%s", err, out)
		}
		r.run(binary)
	})
}
