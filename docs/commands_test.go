package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// programDir is the folder of the program. TestMain sets it.
var programDir string

// built builds the program once for all tests of this package.
var built = sync.OnceValue(func() error {
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", programDir, "../cmd/fiscalhub").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fiscalhub-docs-")
	if err != nil {
		panic(err)
	}
	programDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // a folder of this process alone
	os.Exit(code)
}

// newShell returns an empty folder with the program as bin/fiscalhub, and on the path.
func newShell(t *testing.T) shell {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	w := shell{t, t.TempDir(), programDir}
	if err := os.Symlink(programDir, filepath.Join(w.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return w
}

// codeBlock is a block of code of a page.
type codeBlock struct{ page, language, code string }

// codeBlocks returns the blocks of code of a page.
func codeBlocks(t *testing.T, page string) []codeBlock {
	t.Helper()
	var list []codeBlock
	for _, m := range regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1) {
		list = append(list, codeBlock{page, m[1], strings.TrimSuffix(m[2], "\n")})
	}
	return list
}

// commands splits a block into commands. A command goes on after a backslash at the end of
// a line, and within quotes.
func (b codeBlock) commands() []string {
	var list []string
	open := ""
	for line := range strings.SplitSeq(b.code, "\n") {
		open += line
		if strings.HasSuffix(line, `\`) || strings.Count(open, "'")%2 == 1 {
			open += "\n"
			continue
		}
		list = append(list, open)
		open = ""
	}
	return list
}

// notRun lists the commands of the pages that a test cannot run, with the reason. The
// parser of the program reads them: see TestCommandsOfTheDocumentationParse in
// cmd/fiscalhub.
func notRun() map[string]string {
	const (
		takesLong  = "runs for a long time; the test asks make whether the target exists"
		server     = "needs a PostgreSQL server of the reader; the tests of internal/store run roles.sql"
		authority  = "would call the tax authority"
		waiting    = "needs a document that waits for an operator; the tests of cmd/fiscalhub have one"
		publicHost = "needs a public server of the reader"
		network    = "downloads from the internet"
		allRotated = "is refused while credentials need the pepper, as the page says"
	)
	return map[string]string{
		"make run": takesLong, "make test": takesLong, "make build": takesLong, "make failover": takesLong, "make restores": takesLong, "make contingency-failover": takesLong, "make upgrade-proof": takesLong, "make check-release": takesLong, "make dashboards-check": takesLong, "make simulate": takesLong, "make planted": takesLong, "make histories": takesLong, "make kills": takesLong, "make power": takesLong, "make partitions": takesLong, "make generated-clients": network, "make bench-peers": network, "go get ": network,
		`psql "$ADMIN_URL"`: server, `fiscalhub migrate --database "$MIGRATOR_URL"`: server,
		`fiscalhub serve --no-migrate --database "$SERVICE_URL"`: server, `fiscalhub serve --database 'postgres://`: server,
		"fiscalhub serve --environment production": authority, "fiscalhub reconcile ": authority, "fiscalhub doctor ": authority,
		"fiscalhub work show ID": waiting, "fiscalhub work resolve ID": waiting, "fiscalhub work resend ID": waiting, "fiscalhub work requeue ID": waiting,
		"fiscalhub webhook test ID": publicHost, "fiscalhub keys drop pepper 1": allRotated,
	}
}

// Every block of a page names its language, so that no block of commands is forgotten.
func TestEveryBlockOfCodeNamesItsLanguage(t *testing.T) {
	t.Parallel()
	commands := map[string]int{}
	for _, page := range pages(t) {
		page = "../" + page
		for _, b := range codeBlocks(t, page) {
			if !slices.Contains([]string{"sh", "text", "json", "go", "js", "ts", "python"}, b.language) {
				t.Errorf("%s has a block in the language %q: %.60s", page, b.language, b.code)
			}
			if b.language == "sh" {
				commands[page] += len(b.commands())
			} else if strings.HasPrefix(b.code, "fiscalhub ") && b.code != "fiscalhub onboard" { // which asks questions
				t.Errorf("%s has commands in a block that is not sh: %.60s", page, b.code)
			}
		}
	}
	for page := range commands {
		spanish := strings.HasPrefix(page, "../docs/es/") || page == "../README.es.md"
		incident := strings.HasPrefix(page, "../docs/runbooks/") // its commands are for a service in trouble
		if !spanish && !incident && !slices.Contains(commandPages(), page) && page != "../docs/first-live-invoice.md" {
			t.Errorf("no test runs the commands of %s", page)
		}
	}
}

// commandPages are the pages whose commands TestCommandsOfTheDocumentationRun runs. The
// Spanish pages have the same blocks, which another test compares.
func commandPages() []string {
	list := []string{"../README.md", "../docs/integration.md", "../docs/operations.md"}
	for _, name := range []string{"start", "proxy", "databases", "credentials", "issuing", "webhooks", "buyers", "keys", "restore", "documents", "people", "waiting", "monitor"} {
		list = append(list, "../docs/operations/"+name+".md")
	}
	return append(list, "../docs/printed.md", "../docs/proof.md")
}

// reader is a person who runs the commands of the pages one after the other, and replaces
// the placeholders by what earlier commands have printed.
type reader struct {
	shell
	service   string            // address of the sandbox
	variables []string          // $TAXPAYER and $KEY
	ids       map[string]string // the last id of each kind of resource
	rotated   string            // the credential that replaces the last one
	ran       int
}

// TestCommandsOfTheDocumentationRun runs every command of the pages as it stands there.
// Only addresses and folders are others, so that the test meets no service and no file of
// this machine.
func TestCommandsOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	skipped := map[string]bool{}
	for _, page := range commandPages() {
		for _, b := range codeBlocks(t, page) {
			if b.language != "sh" {
				continue
			}
			for _, command := range b.commands() {
				if prefix := notRunPrefix(command); prefix != "" {
					skipped[prefix] = true
					continue
				}
				r.follow(command)
			}
		}
	}
	for prefix, reason := range notRun() {
		if !skipped[prefix] && prefix != "make build" {
			t.Errorf("no page has the command %s, which is not run because it %s", prefix, reason)
		}
	}
	if r.ran < 40 {
		t.Errorf("only %d commands ran", r.ran)
	}
	for _, m := range regexp.MustCompile(`(?m)^make (\S+)`).FindAllStringSubmatch(read(t, "../README.md")+read(t, "proof.md"), -1) {
		if !strings.Contains(read(t, "../Makefile"), "\n"+m[1]+":") {
			t.Errorf("the Makefile has no target %s", m[1])
		}
	}
}

func notRunPrefix(command string) string {
	for prefix := range notRun() {
		if strings.HasPrefix(command, prefix) {
			return prefix
		}
	}
	return ""
}

// newReader starts a sandbox, as make run does, and has the files that the pages expect.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{shell: newShell(t), ids: map[string]string{}}
	lines := r.startLines("fiscalhub serve", `^ +-H 'Content-Type`, "FISCALHUB_LISTEN=127.0.0.1:0")
	r.service = regexp.MustCompile(`API +(\S+)/v1`).FindStringSubmatch(lines)[1]
	r.variables = []string{
		"TAXPAYER=" + regexp.MustCompile(`/v1/taxpayers/([^/]+)/invoices`).FindStringSubmatch(lines)[1],
		"KEY=" + regexp.MustCompile(`fh_\w+`).FindString(lines),
	}
	request := regexp.MustCompile(`(?s)-d '(\{.*?\n\})'`).FindStringSubmatch(read(t, "../README.md"))
	r.file("request.json", request[1]) // the README says so
	r.file("invoices.ndjson", strings.NewReplacer("\n", " ", "SALE-0001", "SALE-0002").Replace(request[1]))
	for _, b := range codeBlocks(t, "integration.md") {
		switch {
		case strings.HasPrefix(b.code, "Factura;"):
			r.file("invoices.csv", b.code)
		case strings.HasPrefix(b.code, "{\n  \"columns\""):
			r.file("map.json", b.code)
		}
	}
	r.enroll()
	return r
}

// enroll gets a certificate from the simulator, and gives the files of the pages the
// names that they have there.
func (r *reader) enroll() {
	r.t.Helper()
	r.startLines("fiscalhub simulator --enroll 199000013 --out sim", `--authority`, "FISCALHUB_LISTEN=127.0.0.1:0", "FISCALHUB_CONTROL=127.0.0.1:0")
	for from, to := range map[string]string{"199000013.p12": "certificate.p12", "199000013.password": "certificate.password", "roots.pem": "roots.pem"} {
		r.file(to, read(r.t, filepath.Join(r.dir, "sim", from)))
	}
	r.run("openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=ERP -keyout erp.key -out erp.pem")
}

func (r *reader) file(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// follow runs a command of a page.
func (r *reader) follow(command string) {
	r.t.Helper()
	r.ran++
	command = strings.NewReplacer(
		"http://127.0.0.1:8080", r.service, "127.0.0.1:8080", "127.0.0.1:0", "/var/lib/fiscalhub", "var", "/mnt/backups/", "./",
		"--password-file password.txt certificate.p12", "--password-file certificate.password certificate.p12",
		"--taxpayer 0198c1b2-…", "--taxpayer "+r.ids["taxpayer"], "0198c1b4-…", r.ids["user"],
	).Replace(command)
	words := strings.Fields(command)
	kind := ""
	if len(words) > 2 && words[0] == "fiscalhub" {
		kind = words[1]
	}
	command = regexp.MustCompile(`--taxpayer ID|TAXPAYER_ID`).ReplaceAllStringFunc(command, func(found string) string {
		return strings.Replace(strings.Replace(found, "TAXPAYER_ID", r.ids["taxpayer"], 1), " ID", " "+r.ids["taxpayer"], 1)
	})
	command = regexp.MustCompile(` ID\b`).ReplaceAllString(command, " "+r.ids[kind])
	if strings.HasPrefix(command, "fiscalhub history --taxpayer") { // of the invoice of the README
		command = strings.Replace(command, r.ids["taxpayer"], "$TAXPAYER", 1)
	}
	if regexp.MustCompile(`^([A-Z_]+=\S+ )*fiscalhub serve`).MatchString(command) {
		r.startLines(command, `API +\S+/v1`, "FISCALHUB_LISTEN=127.0.0.1:0")
		return
	}
	r.learn(kind, words, r.run(command, r.variables...))
}

// learn remembers the id of a resource that a command has created.
func (r *reader) learn(kind string, words []string, printed string) {
	id := regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`).FindString(printed)
	if kind == "credential" && words[2] == "revoke" {
		r.ids[kind] = r.rotated // the rest of the page uses a credential that is valid
	}
	if kind == "" || id == "" {
		return
	}
	switch words[2] {
	case "create", "import":
		r.ids[kind] = id
	case "rotate":
		if kind == "credential" {
			r.rotated = id
		}
	}
}

// All pages say the same about the life of an idempotency key.
func TestPagesAgreeOnTheLifeOfIdempotencyKeys(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(read(t, "../openapi/openapi.yaml"), "\n    ## Idempotency\n")
	section, _, _ = strings.Cut(section, "\n    ## ")
	if !strings.Contains(strings.Join(strings.Fields(section), " "), "is kept for as long as the invoice.") || strings.Contains(section, " days") {
		t.Errorf("the OpenAPI document says\n%s", section)
	}
	for _, page := range []string{"../README.md", "integration.md"} {
		if !strings.Contains(read(t, page), "for as long as the service keeps the invoice") {
			t.Errorf("%s does not say how long a key works", page)
		}
	}
	if !strings.Contains(read(t, "retention.md"), "| `idempotency` | as long as the invoice") {
		t.Error("retention.md says something else about the keys")
	}
}
