package systemtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// No secret may be in a log, an answer, the output of a command, the metrics, the audit
// log, the database or a backup, in whatever form: also when commands fail, and when the
// authority, a buyer's receiver or an integrator answers with our secrets. Only the command
// that creates a secret shows it, once.
func TestPlantedSecretsAreFoundNowhere(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e := newPlantedEnv(t, engine)
			server := e.issueDocuments()
			e.callWithWrongKeys(server.Base)
			e.createEndpoint(server.Base)
			e.receiveResponses(server.Base)
			e.operateAll(server.Base)
			e.failCommands()
			e.collect(server)
			e.plantServiceKeys() // those that the commands have added are among them
			e.checkPlaces()
			e.checkThatASecretWouldBeFound()
		})
	}
}

// issueDocuments creates secrets, starts a server and lets it issue documents to a buyer
// whose receiver demands a token.
func (e *plantedEnv) issueDocuments() *harness.Server {
	e.t.Helper()
	buyer := simulator.Baseline(buyerRNC, buyerSigner, "2027-12-31")
	buyer.Receiver = &simulator.Receiver{RequireToken: true}
	e.must(e.sim.AddTaxpayer(buyer))
	scope := []string{"--taxpayer", e.client.Taxpayer, "--environment", "certification"}
	e.create("webhook secret", "secret", append([]string{"webhook", "create", "--url", e.hook.URL, "--event", "*", "--webhook-allow-private"}, scope...)...)
	key := e.create("API key", "api_key", append([]string{"credential", "create", "--scope", "invoices.write,invoices.read,ecf.submit,ecf.read,webhooks.manage"}, scope...)...)
	e.firstKey, e.client.Key = e.client.Key, fmt.Sprint(key["api_key"])
	e.plantServiceKeys()
	server := e.serve(e.t)
	for n := range 2 {
		e.createInvoice(e.t, n)
	}
	e.settle(e.t)
	harness.Eventually(e.t, time.Minute, "the receiver and the integrator have misbehaved and accepted", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.requests["/peer/"+buyerRNC+"/fe/recepcion/api/ecf"] > 1 && e.requests["hook"] > 2
	})
	return server
}

// callWithWrongKeys sends requests whose keys are wrong in several ways, and puts keys where
// they do not belong.
func (e *plantedEnv) callWithWrongKeys(base string) {
	e.t.Helper()
	first := e.firstKey
	list := base + "/v1/taxpayers/" + e.client.Taxpayer + "/invoices"
	good := e.client.Key
	wrong := good[:16] + first[16:]
	other := "fh_c_" + strings.Repeat("planted0Secret", 4)
	e.plant("unknown API key", other[5:])
	for _, header := range []string{"Bearer " + wrong, "Bearer " + other, "Basic " + good, good, "Bearer " + good + " " + good, "bearer\t" + good + "x"} {
		e.request(list, header)
	}
	e.request(list+"?api_key="+good+"&cursor="+good+"&limit="+good, "Bearer "+good)
	e.request(list+"?api_key="+good, "")
	e.request(base+"/v1/taxpayers/"+good+"/invoices", "Bearer "+good)
	e.request(base+"/"+good, "")
	e.request(base+"/fe/recepcion/api/ecf", "Bearer "+other)
}

func (e *plantedEnv) request(url, authorization string) {
	e.t.Helper()
	var header []string
	if authorization != "" {
		header = []string{"Authorization", authorization}
	}
	_, err := (&harness.Client{HTTP: e.client.HTTP}).Send(e.t.Context(), http.MethodGet, url, "", header...)
	e.must(err)
}

// receiveResponses lets a buyer get a token of the service, and a source send an event,
// first with a secret that is not its own.
func (e *plantedEnv) receiveResponses(base string) {
	e.t.Helper()
	through := e.proxy(base)
	sent, err := e.sim.SendACECF(e.t.Context(), buyerRNC, simulator.Push{URL: through, Auth: through, Issuer: issuerRNC, ENCF: "E310000000001", Reject: true, Reason: "Precio"})
	e.must(err)
	if sent.Status != http.StatusOK {
		e.t.Errorf("the response of the buyer: %d %s", sent.Status, sent.Answer)
	}
	scope := []string{"--taxpayer", e.client.Taxpayer, "--environment", "certification", "--base-url", base}
	source := e.create("source secret", "secret", append([]string{"source", "create"}, scope...)...)
	other := e.create("source secret", "secret", append([]string{"source", "create"}, scope...)...)
	for _, secret := range []any{other["secret"], source["secret"]} {
		got := postSigned(e.t, fmt.Sprint(source["url"]), fmt.Sprint(secret), "msg_1", commercialResponse(sent.ENCF, sent.XML))
		e.keep("answer to a source", fmt.Appendf(nil, "%v %s", got.Header, got.Body))
		if want := map[bool]int{true: http.StatusAccepted, false: http.StatusUnauthorized}[secret == source["secret"]]; got.Status != want {
			e.t.Errorf("an event of a source: %d %s, want %d", got.Status, got.Body, want)
		}
	}
}

// createEndpoint creates a webhook endpoint through the API, twice with the same key. Both
// answers show the secret.
func (e *plantedEnv) createEndpoint(base string) {
	e.t.Helper()
	plain := &harness.Client{Key: e.client.Key, HTTP: harness.HTTP}
	for range 2 {
		got, err := plain.Send(e.t.Context(), http.MethodPost, e.client.URL(base, "webhook-endpoints"), `{"url": "`+e.hook.URL+`/api", "events": ["*"]}`, "Idempotency-Key", "endpoint-1")
		e.must(err)
		secret := harness.Submatch(got.Body, `"whsec_([^"]+)"`)
		if got.Status != http.StatusCreated || secret == "" {
			e.t.Fatalf("%d %s", got.Status, got.Body)
		}
		e.plantSecret("webhook secret", "whsec_"+secret)
		e.keep("answer to the creation of an endpoint", []byte(got.Body), "webhook secret")
	}
}

// operateAll runs the commands that show or change something about secrets.
func (e *plantedEnv) operateAll(base string) {
	e.t.Helper()
	checkpoint, copied := filepath.Join(e.dir, "checkpoint.json"), filepath.Join(e.dir, "copy.db")
	var hooks, credentials, sources []struct{ ID string }
	decodeJSON(e.t, e.run(0, nil, "webhook", "list", "--json"), &hooks)
	decodeJSON(e.t, e.run(0, nil, "credential", "list", "--json"), &credentials)
	decodeJSON(e.t, e.run(0, nil, "source", "list", "--json"), &sources)
	e.create("webhook secret", "secret", "webhook", "rotate", hooks[0].ID)
	e.create("source secret", "secret", "source", "rotate", sources[0].ID)
	e.create("API key", "api_key", "credential", "rotate", credentials[0].ID)
	for _, args := range [][]string{
		{"credential", "list"}, {"certificate", "list"}, {"webhook", "list"}, {"webhook", "deliveries", hooks[0].ID}, {"webhook", "deliveries", hooks[0].ID, "--json"},
		{"source", "list"}, {"keys", "list"}, {"keys", "rotate", "receiver"}, {"keys", "rotate", "pepper"}, {"taxpayer", "show", e.client.Taxpayer},
		{"history", "--external-id", "ext-0", "--taxpayer", e.client.Taxpayer, "--environment", "certification", "--json"},
		{"work", "list"}, {"master-key", "rotate"},
		{"audit", "list"}, {"audit", "list", "--json"}, {"audit", "checkpoint", "--out", checkpoint}, {"audit", "verify", "--checkpoint", checkpoint},
	} {
		e.run(0, nil, args...)
	}
	e.run(0, nil, append([]string{"doctor", "--json"}, e.liveArgs()...)...)
	e.keep("checkpoint of the audit log", readFile(e.t, checkpoint))
	if strings.HasPrefix(e.address, "sqlite:") {
		e.run(0, nil, "backup", copied)
		e.keep("backup", readFile(e.t, copied))
	}
	e.request(base+"/metrics", "")
	e.request(base+"/readyz", "")
}

// liveArgs returns the flags of the service about the authority.
func (e *plantedEnv) liveArgs() []string {
	from := slices.Index(e.args, "--environment")
	return e.args[from : slices.Index(e.args, "--trust")+2]
}

// failCommands runs commands that fail because of a secret, or beside one.
func (e *plantedEnv) failCommands() {
	e.t.Helper()
	file := func(name, content string) string {
		path := filepath.Join(e.dir, name)
		writeFile(e.t, path, []byte(content))
		return path
	}
	p12, folder := filepath.Join(e.dir, "signer.p12"), filepath.Join(e.dir, "elsewhere")
	master := readFile(e.t, filepath.Join(e.dir, "data", "master.key"))
	wrongFile, passwordFile := file("wrong.password", wrongPassword), filepath.Join(e.dir, "password")
	damaged := file("damaged.key", strings.Replace(string(master), "master-key v1 ", "master-key v1 0", 1))
	cut := file("cut.key", string(master[:len(master)-10]))
	scope := []string{"--taxpayer", e.client.Taxpayer, "--environment", "certification"}
	e.run(1, nil, append([]string{"certificate", "import", "--password-file", wrongFile, p12}, scope...)...)
	e.run(1, nil, append([]string{"certificate", "import", "--password-file", passwordFile, passwordFile}, scope...)...)
	e.run(1, nil, append([]string{"certificate", "import", "--password-file", p12, p12}, scope...)...)
	e.run(1, nil, "keys", "rotate", "cursor", "--master-key", damaged)
	e.run(1, nil, "keys", "rotate", "cursor", "--master-key", cut)
	e.run(1, nil, "doctor", "--tls-cert", damaged, "--tls-key", cut)
	e.run(2, nil, "doctor", "--environment", "certification", "--authority", "http://u:"+databasePass+"@127.0.0.1:1")
	e.run(1, nil, append([]string{"webhook", "create", "--url", "https://u:" + databasePass + "@hooks.example.com/", "--event", "*"}, scope...)...)
	for _, address := range []string{
		"postgres://fiscalhub:" + databasePass + "@127.0.0.1:1/fiscalhub", "postgres://fiscalhub@127.0.0.1:1/fiscalhub?password=" + databasePass,
		"postgres://fiscalhub:" + databasePass + "@127.0.0.1:port/fiscalhub", "mysql://fiscalhub:" + databasePass + "@127.0.0.1/fiscalhub",
	} {
		e.runWith(nil, 1, nil, "doctor", "--data", folder, "--database", address)
		e.runWith([]string{"FISCALHUB_DATABASE=" + address}, 1, nil, "serve", "--data", folder, "--listen", "127.0.0.1:0")
	}
	variables := []string{"FISCALHUB_KEY=" + e.client.Key, "FISCALHUB_DATABASE=postgres://u:" + databasePass + "@127.0.0.1:1/x"}
	e.runWith(variables, 1, nil, "backup", filepath.Join(folder, "x"), "--data", folder)
	e.runWith(variables, 2, nil, "check", "--base-url", "http://127.0.0.1:1", "--taxpayer", e.client.Taxpayer)
	e.runWith(variables, 2, nil, "check", "--base-url", "http://127.0.0.1:1")
	e.runWith(variables, 0, nil, "check", "--help")
	e.runWith(variables, 0, nil, "serve", "--help")
	e.runWith(variables, 2, nil, "serve", "--no-such-flag")
}

// collect keeps what the server and the database have: while the server runs, and after it
// has stopped.
func (e *plantedEnv) collect(server *harness.Server) {
	e.t.Helper()
	e.keepFiles(filepath.Join(e.dir, "data"))
	e.keepDatabaseFiles()
	server.Stop(e.t)
	e.keep("standard output of the server", []byte(server.Greeting))
	e.keep("log of the server", []byte(server.Log.String()))
	e.keepDatabase()
	e.keepDatabaseFiles()
}

// keepDatabaseFiles keeps the files of a SQLite database.
func (e *plantedEnv) keepDatabaseFiles() {
	if path, ok := strings.CutPrefix(e.address, "sqlite:"); ok {
		e.keepFiles(filepath.Dir(path))
	}
}

// checkPlaces reports every secret that a place has and must not have. A place that has to
// show a secret must show it: otherwise the test would not notice that nothing was planted.
func (e *plantedEnv) checkPlaces() {
	e.t.Helper()
	for _, p := range e.places {
		found := e.search.find(p.content)
		for name, where := range found {
			if !slices.Contains(p.shows, name) {
				e.t.Errorf("%s has the %s %s", p.name, name, where)
			}
		}
		for _, name := range p.shows {
			if found[name] == "" {
				e.t.Errorf("%s does not show the %s", p.name, name)
			}
		}
	}
	for _, name := range []string{"token", "seed", "webhook secret", "source secret", "API key", "private key"} {
		if len(e.search.values[name]) == 0 {
			e.t.Errorf("no %s was planted", name)
		}
	}
	if len(e.search.values["token"]) < 3 {
		e.t.Errorf("%d tokens were planted, want those of the authority, of the buyer and of the service", len(e.search.values["token"]))
	}
}

// checkThatASecretWouldBeFound writes every secret in every form into the database, and
// checks that the search finds each of them there.
func (e *plantedEnv) checkThatASecretWouldBeFound() {
	e.t.Helper()
	db := storetest.OpenSQL(e.t, e.address)
	column := map[bool]string{true: "BYTEA", false: "BLOB"}[strings.HasPrefix(e.address, "postgres")]
	_, err := db.ExecContext(e.t.Context(), `CREATE TABLE planted (id INTEGER, content `+column+`)`)
	e.must(err)
	tx, err := db.BeginTx(e.t.Context(), nil)
	e.must(err)
	for name, values := range e.search.values {
		for form, text := range writings(values[0]) {
			if e.search.find(text)[name] == "" {
				e.t.Errorf("the %s is not found as %s", name, form)
			}
		}
		_, err := tx.ExecContext(e.t.Context(), `INSERT INTO planted (id, content) VALUES (1, $1)`, slices.Concat([]byte("before "), values[0], []byte(" after")))
		e.must(err)
	}
	e.must(tx.Commit())
	places := [][]byte{dumpDatabase(e.t, e.address)["planted"]}
	if path, ok := strings.CutPrefix(e.address, "sqlite:"); ok {
		for _, file := range []string{path, path + "-wal"} {
			content, err := os.ReadFile(file)
			if err == nil && len(content) > 0 {
				places = append(places, content)
			}
		}
		places = append(places[:1], slices.Concat(places[1:]...)) // the rows are in one of the files
	}
	for _, content := range places {
		found := e.search.find(content)
		for name := range e.search.values {
			if found[name] == "" {
				e.t.Errorf("the %s is not found in the database", name)
			}
		}
	}
}
