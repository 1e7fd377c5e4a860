package systemtest

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A place is something that others than its owner may read.
type place struct {
	name    string
	content []byte
	shows   []string // secrets that it has to show, because it creates them
}

// A plantedEnv is an env whose secrets the test knows, and everything that the program has
// written.
type plantedEnv struct {
	*env
	t        *testing.T
	hook     *httptest.Server
	firstKey string // of an earlier credential

	mu          sync.Mutex
	search      *secretSearch
	places      []place
	hookSecrets []string
	requests    map[string]int // by path
}

const (
	plantedPassword = `cláve "del" <p12> & \ 7c1f/%41`
	wrongPassword   = `contraseña equivocada 93ab-55de`
	databasePass    = "plantedDatabasePassword-4f9a"
)

func newPlantedEnv(t *testing.T, engine string) *plantedEnv {
	t.Helper()
	e := &plantedEnv{t: t, search: newSecretSearch(), requests: map[string]int{}}
	address := storetest.Address(t, engine)
	if engine == "postgres" { // the server of the tests asks for no password
		address += "&password=" + databasePass
	}
	e.env = envOptions{address: address, profile: "happy", password: plantedPassword, wrap: e.listenTo}.start(t)
	e.args[slices.Index(e.args, "error")] = "debug"
	e.args[slices.Index(e.args, "--pace")+1] = "1000" // failures are repeated at once
	e.args = append(e.args, "--webhook-allow-private")
	e.client.HTTP.Transport = e
	e.hook = httptest.NewServer(http.HandlerFunc(e.serveHook))
	t.Cleanup(e.hook.Close)
	e.plant("API key", e.client.Key[16:])
	e.plant("certificate password", plantedPassword)
	e.plant("wrong certificate password", wrongPassword)
	e.plant("database password", databasePass)
	e.plantPrivateKey()
	return e
}

// plant adds a secret, which is a text.
func (e *plantedEnv) plant(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.search.add(e.t, name, []byte(value))
}

func (e *plantedEnv) plantPrivateKey() {
	e.t.Helper()
	id, err := xmlsig.OpenP12(readFile(e.t, filepath.Join(e.dir, "signer.p12")), plantedPassword)
	e.must(err)
	der, err := id.PKCS8()
	e.must(err)
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	e.must(err)
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		e.t.Fatalf("the key is a %T", parsed)
	}
	// PKCS#8 begins with the public key, which is no secret.
	private := bytes.Index(der, key.D.Bytes())
	e.plant("private key", string(der[private:]))
	for _, number := range append(slices.Clone(key.Primes), key.D, key.Precomputed.Dp, key.Precomputed.Dq, key.Precomputed.Qinv) {
		e.plant("private key", string(number.Bytes()))
		e.plant("private key in digits", number.String())
	}
}

// plantServiceKeys adds the master key and the keys that are encrypted with it.
func (e *plantedEnv) plantServiceKeys() {
	e.t.Helper()
	path := filepath.Join(e.dir, "data", "master.key")
	text := readFile(e.t, path)
	digits := strings.TrimSpace(string(text[bytes.IndexByte(text, '\n'):]))
	raw, err := hex.DecodeString(digits)
	e.must(err)
	e.plant("master key", string(raw))
	e.plant("master key file", digits)
	s := e.openStore(e.t)
	defer func() { _ = s.Close() }() // it was only read
	stored, err := s.AllSecrets(e.t.Context())
	e.must(err)
	keys, seen := seal.NewKeys(path), map[string]bool{}
	for _, secret := range stored {
		key, err := keys.Open(secret.Sealed, seal.AAD("", "", secret.Kind, "", fmt.Sprint(secret.Version)))
		e.must(err)
		e.plant(secret.Kind+" key", string(key[len(key)-32:]))
		seen[secret.Kind] = true
	}
	for _, kind := range []string{"pepper", "cursor", "receiver", "audit"} {
		if !seen[kind] {
			e.t.Errorf("the database has no key %s", kind)
		}
	}
}

func (e *plantedEnv) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// keep adds a place.
func (e *plantedEnv) keep(name string, content []byte, shows ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.places = append(e.places, place{name, content, shows})
}

// run runs a command, keeps what it prints, and returns its standard output. The exit code
// must be want. Shows names the secrets that the command has to print.
func (e *plantedEnv) run(want int, shows []string, args ...string) string {
	e.t.Helper()
	return e.runWith(nil, want, shows, append(args, e.shared...)...)
}

// runWith is run with more variables, and with no other flags than args.
func (e *plantedEnv) runWith(variables []string, want int, shows []string, args ...string) string {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), e.program, args...)
	cmd.Env = append(harness.Environment(), variables...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		e.t.Fatalf("%s: %v, want exit code %d\n%s%s", strings.Join(args[:min(2, len(args))], " "), err, want, &stdout, &stderr)
	}
	name := "fiscalhub " + strings.Join(args[:min(3, len(args))], " ")
	e.keep(name+" (standard output)", stdout.Bytes(), shows...)
	e.keep(name+" (standard error)", stderr.Bytes())
	return stdout.String()
}

// create runs a command that creates a secret and returns the field of its answer that has
// it. The secret is planted.
func (e *plantedEnv) create(secret, field string, args ...string) map[string]any {
	e.t.Helper()
	var made map[string]any
	decodeJSON(e.t, e.run(0, []string{secret}, append(args, "--json")...), &made)
	if text := fmt.Sprint(made[field]); strings.HasPrefix(text, "whsec_") {
		e.plantSecret(secret, text)
	} else {
		e.plant(secret, text[16:])
	}
	return made
}

// plantSecret adds the secret of a webhook or a source: as text and as bytes.
func (e *plantedEnv) plantSecret(name, text string) {
	e.t.Helper()
	key := strings.TrimPrefix(text, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(key)
	e.must(err)
	e.plant(name, key)
	e.plant(name, string(raw))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hookSecrets = append(e.hookSecrets, text)
}

// RoundTrip keeps every answer of the API.
func (e *plantedEnv) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := harness.HTTP.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // it was read
	res.Body = io.NopCloser(bytes.NewReader(body))
	var content bytes.Buffer
	_ = res.Header.Write(&content) // a buffer can always be written
	content.Write(body)
	e.keep("answer to "+r.Method+" "+r.URL.Path, content.Bytes())
	return res, err
}

// serveHook is the server of an integrator, which misbehaves twice: it answers with the
// headers of the request and with its own secret.
func (e *plantedEnv) serveHook(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.requests["hook"]++; e.requests["hook"] > 2 {
		return
	}
	w.WriteHeader(http.StatusInternalServerError)
	_ = r.Header.Write(w)
	for _, secret := range e.hookSecrets {
		_, _ = fmt.Fprintf(w, "the secret is %s, again %q\n", secret, strings.TrimPrefix(secret, "whsec_"))
	}
}

// listenTo returns a handler that learns every seed and token that the authority or a
// receiver gives, and that misbehaves at first: it answers a request with a token by an
// error with that token.
func (e *plantedEnv) listenTo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("Authorization"); token != "" && e.misbehave(w, r, token) {
			return
		}
		e.learnFrom(next).ServeHTTP(w, r)
	})
}

// learnFrom returns a handler that learns every seed and token that another one gives.
func (e *plantedEnv) learnFrom(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		e.learn(answer.Body.String())
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may have left
	})
}

// learn plants the token or the seed in an answer.
func (e *plantedEnv) learn(body string) {
	var answer struct {
		Token string `json:"token"`
	}
	if json.Unmarshal([]byte(body), &answer) == nil && answer.Token != "" {
		// A token of the authority ends in its signature; the rest is readable.
		e.plant("token", answer.Token[strings.LastIndexByte(answer.Token, '.')+1:])
	}
	if seed := harness.Submatch(body, `<valor>([^<]+)</valor>`); seed != "" {
		e.plant("seed", seed)
	}
}

// misbehave answers the first request of a path with its own header Authorization: a
// submission of a document with something that is not HTTP, any other request with an
// error. It returns false for later requests.
func (e *plantedEnv) misbehave(w http.ResponseWriter, r *http.Request, token string) bool {
	path := strings.ToLower(r.URL.Path)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.requests[path]++; e.requests[path] > 1 {
		return false
	}
	if strings.HasSuffix(path, "/facturaselectronicas") {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = conn.Write([]byte(token + "\r\n\r\n")) // the client quotes it in its error
			_ = conn.Close()
		}
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(map[string]string{"mensaje": "Authorization: " + token, "error": token})
	return true
}

// proxy returns the address of a proxy to the service that learns the tokens which the
// service gives to others.
func (e *plantedEnv) proxy(base string) string {
	e.t.Helper()
	to, err := url.Parse(base)
	e.must(err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(e.learnFrom(proxy))
	e.t.Cleanup(server.Close)
	return server.URL
}

// keepFiles keeps the files of a folder, except for the master keys.
func (e *plantedEnv) keepFiles(folder string) {
	e.t.Helper()
	entries, err := os.ReadDir(folder)
	e.must(err)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "master.key") {
			continue
		}
		e.keep("file "+entry.Name(), readFile(e.t, filepath.Join(folder, entry.Name())))
	}
}

// keepDatabase keeps all rows of all tables.
func (e *plantedEnv) keepDatabase() {
	e.t.Helper()
	for table, content := range dumpDatabase(e.t, e.address) {
		e.keep("table "+table, content)
	}
}

// dumpDatabase returns all values of all tables, as they are stored.
func dumpDatabase(t *testing.T, address string) map[string][]byte {
	t.Helper()
	db := storetest.OpenSQL(t, address)
	list := `SELECT name FROM sqlite_master WHERE type = 'table'`
	if strings.HasPrefix(address, "postgres") {
		list = `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
	}
	read := func(query string) (content []byte) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		values, into := make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			err = errors.Join(err, rows.Scan(into...))
			content = append(append(content, bytes.Join(values, []byte("\n"))...), '\n')
		}
		if err := errors.Join(err, rows.Err()); err != nil {
			t.Fatal(err)
		}
		return content
	}
	all := map[string][]byte{}
	for _, table := range strings.Fields(string(read(list))) {
		all[table] = read(`SELECT * FROM "` + table + `"`)
	}
	return all
}
