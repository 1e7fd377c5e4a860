package simulation

import (
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	_ "modernc.org/sqlite" // the driver of SQLite

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/simulation/oracle"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	issuerRNC   = "199000013"
	buyerRNC    = "199000021"
	holder      = "00112345678"
	buyerSigner = "00199000019"
	origin      = "http://authority.test"
	publicURL   = "https://invoices.test"
	firstRange  = 40 // numbers of the first range of each type, unless the seed says less
)

// noon is the instant at which every run begins.
func noon() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }

// A template is what every run begins with. It is made once in a process, because a
// migration and a certificate take longer than a run.
type template struct {
	database, master, root []byte
	key                    string // of the clients
	source                 string // relays messages of buyers
	secret                 webhook.Secret
	id                     *xmlsig.Identity
	roots                  *x509.CertPool
	scope                  store.Scope
}

var (
	templateOnce sync.Once
	theTemplate  *template
	templateErr  error
)

func newTemplate(t *testing.T) *template {
	t.Helper()
	templateOnce.Do(func() {
		cryptotest.SetGlobalRandom(t, 0) // the same keys in every process
		theTemplate, templateErr = makeTemplate(t)
	})
	if templateErr != nil {
		t.Fatal(templateErr)
	}
	return theTemplate
}

func makeTemplate(t *testing.T) (*template, error) {
	t.Helper()
	ctx, dir, tp := t.Context(), t.TempDir(), &template{roots: x509.NewCertPool()}
	sim, err := simulator.New(simulator.Options{Now: noon, Seed: 1})
	if err != nil {
		return nil, err
	}
	defer sim.Close()
	tp.roots.AppendCertsFromPEM(sim.RootsPEM())
	if tp.root, err = sim.RootWithKey(); err != nil {
		return nil, err
	}
	if tp.id, err = sim.Identity(holder); err != nil {
		return nil, err
	}
	path, keyFile := filepath.Join(dir, "template.db"), filepath.Join(dir, "master.key")
	s, err := store.Open(ctx, "sqlite:"+path, store.Options{Now: noon, Log: discard()})
	if err != nil {
		return nil, err
	}
	keys := seal.NewKeys(keyFile)
	ring, err := access.LoadKeyring(ctx, s, keys)
	if err != nil {
		return nil, err
	}
	tp.scope = store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
	err = s.Update(ctx, func(tx *store.Tx) error {
		err := tx.CreateTaxpayer(ctx, store.Taxpayer{
			ID: tp.scope.TaxpayerID, RNC: issuerRNC, LegalName: "Prueba, SRL", Address: "Calle 1", Phones: []string{}, IncomeType: "01", CreatedAt: noon(), UpdatedAt: noon(),
		})
		if err != nil {
			return err
		}
		if err := tx.RecordTimeline(ctx, fiscal.Production, timelineOf(0)); err != nil { // as the migration of PostgreSQL does
			return err
		}
		_, err = tx.AddCertificate(ctx, store.Certificate{
			Scope: tp.scope, ID: store.NewID(), DER: tp.id.Certificate.Raw, Sealed: []byte("elsewhere"),
			NotBefore: tp.id.Certificate.NotBefore, NotAfter: tp.id.Certificate.NotAfter, CreatedAt: noon(),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	key, _, err := access.NewCredentials(s, ring, noon).Issue(ctx, access.Terms{TaxpayerID: tp.scope.TaxpayerID, Environment: fiscal.Production, Scopes: apikey.AllScopes()})
	if err != nil {
		return nil, err
	}
	tp.key = key.Reveal()
	sources, err := notify.NewSources(notify.SourcesOptions{Store: s, Secrets: access.NewSecrets(s, keys), Now: noon})
	if err != nil {
		return nil, err
	}
	made, secret, err := sources.Create(ctx, tp.scope)
	if err != nil {
		return nil, err
	}
	tp.source, tp.secret = made.ID, secret
	hooks, err := notify.NewEndpoints(notify.EndpointsOptions{
		Store: s, Secrets: access.NewSecrets(s, keys), Poster: &receiver{}, Guard: netguard.Guard{Private: true}, Now: noon,
	})
	if err != nil {
		return nil, err
	}
	if _, err := hooks.Create(ctx, notify.EndpointSpec{Scope: tp.scope, URL: "https://integrator.test/hook", Kinds: []string{event.All}}, notify.Intent{}); err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	var errMaster error
	tp.database, err = os.ReadFile(path)
	tp.master, errMaster = os.ReadFile(keyFile)
	return tp, errors.Join(err, errMaster)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A world is one run: everything that one seed decides.
type world struct {
	t     *testing.T
	tp    *template
	seed  uint64
	plan  plan
	began time.Time // the start of the bubble's clock
	dir   string

	sim                   *simulator.Simulator
	server                *http.Server
	links                 *links
	hook                  *receiver
	rows                  *sql.DB // reads the database as nobody of the service does
	queryJobs, queryHooks *sql.Stmt

	nodes     []*node
	timetable timetable
	calmPause time.Duration // between the rounds of housekeeping after the faults
	clients   []*client
	feed      *feedReader

	mu          sync.Mutex
	random      *rand.Rand
	trace       []string
	reached     int               // points so far
	labels      map[string]string // of goroutines
	jobs        map[string]string // names of documents
	calls       map[string]uint64 // messages so far, by what they say
	parked      []*parked
	held        []*parked     // that wait at a point for a while; only the scheduler uses it
	pauseNext   time.Duration // the next node that works on a document is paused for so long
	arrived     chan struct{}
	busy        int       // activities under way
	dirty       bool      // the database may have changed since due was read
	stalled     time.Time // the database does not answer before this instant
	quiet       bool      // the faults are over
	uncertified bool      // the taxpayer has no valid certificate
	epoch       int
	copied      []time.Time
	copyIn      int    // a standby falls behind after so many commits; 0 is never
	copyFile    string // an older copy of the database
	copiedAt    time.Time
	dueJobs     time.Time
	dueHooks    time.Time
	waiting     bool            // suspended jobs exist
	doubled     map[string]bool // the network delivered a message with this number or track id twice
	foreign     map[string]bool // digests of documents of another provider
	problems    []string        // errors of the simulation itself
	run         oracle.Run
}

// newWorld prepares a run inside of a bubble.
func newWorld(t *testing.T, tp *template, seed uint64, dir string) *world {
	t.Helper()
	w := &world{
		t: t, tp: tp, seed: seed, dir: dir, began: time.Now(), random: rand.New(rand.NewPCG(seed, 0x5eed)),
		arrived: make(chan struct{}, 1), calmPause: time.Minute, labels: map[string]string{}, jobs: map[string]string{}, calls: map[string]uint64{}, dirty: true, doubled: map[string]bool{}, foreign: map[string]bool{},
	}
	w.plan = newPlan(w.random)
	w.tracef("world", "%s", w.plan)
	config := simulator.Config{
		Latency: simulator.Fixed(0), ValidationDelay: simulator.Between(0, w.plan.validation), VisibilityLag: simulator.Between(0, w.plan.lag),
		DuplicateMode: w.plan.duplicates, MaxParallel: -1, JournalSize: 1, ClockSkew: simulator.Duration(w.plan.authoritySkew),
	}
	buyer := simulator.Baseline(buyerRNC, buyerSigner, "2027-12-31")
	if w.plan.buyerReceives {
		buyer.Receiver = &simulator.Receiver{RequireToken: w.plan.buyerToken}
	}
	var err error
	w.sim, err = simulator.New(simulator.Options{Now: w.now, Seed: seed, Root: tp.root, Client: &http.Client{Transport: w}, Fixture: &simulator.Fixture{
		Taxpayers: []simulator.Taxpayer{simulator.Baseline(issuerRNC, holder, "2027-12-31"), buyer}, Config: &config,
	}})
	w.must(err)
	w.must(w.sim.SetProfile(w.plan.profile))
	for _, r := range w.plan.rules {
		_, err := w.sim.AddRule(r)
		w.must(err)
	}
	w.must(os.WriteFile(w.file(), tp.database, 0o600))
	w.must(os.WriteFile(filepath.Join(dir, "master.key"), tp.master, 0o600))
	w.openRows()
	w.addRange("31", w.plan.numbers)
	w.addRange("32", w.plan.numbers)
	w.hook = &receiver{w: w}
	w.links = newLinks()
	w.server = &http.Server{Handler: http.HandlerFunc(w.carry), ConnContext: w.links.context, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Hour}
	go func() { _ = w.server.Serve(w.links) }() // it ends with the run
	for i := range w.plan.nodes {
		w.nodes = append(w.nodes, &node{w: w, index: i, name: fmt.Sprintf("n%d", i+1)})
	}
	for i := range w.plan.clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	w.feed = &feedReader{w: w}
	return w
}

// file is the file of the database.
func (w *world) file() string { return filepath.Join(w.dir, fmt.Sprintf("epoch-%d.db", w.epoch)) }

func (w *world) openRows() {
	var err error
	w.rows, err = sql.Open("sqlite", "file:"+w.file()+"?_pragma=busy_timeout(5000)")
	w.must(err)
	w.rows.SetMaxOpenConns(1)
	w.queryJobs, err = w.rows.PrepareContext(w.ctx(), `SELECT min(CASE WHEN run_at < ?1 THEN max(run_at, lease_until) END), coalesce(sum(run_at >= ?1), 0) FROM jobs`)
	w.must(err)
	w.queryHooks, err = w.rows.PrepareContext(w.ctx(), `SELECT min(max(d.run_at, d.lease_until, CASE WHEN e.failures >= 10 THEN e.rest_until ELSE 0 END))
		FROM webhook_deliveries d JOIN endpoints e ON e.id = d.endpoint_id WHERE d.state = 'pending' AND e.status = 'enabled'`)
	w.must(err)
}

// addRange adds a range of numbers after those that exist, as an operator would.
func (w *world) addRange(kind string, numbers int) {
	var last int64
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT coalesce(max(last_number), 0) FROM number_ranges WHERE ecf_type = ?`, kind).Scan(&last))
	expires := ""
	if kind == "31" {
		expires = "2027-12-31"
	}
	_, err := w.rows.ExecContext(w.ctx(), `INSERT INTO number_ranges (id, environment, taxpayer_id, ecf_type, first_number, last_number, next_number, expires, created_at)
		VALUES (?, 'production', ?, ?, ?, ?, ?, ?, ?)`, store.NewID(), w.tp.scope.TaxpayerID, kind, last+1, last+int64(numbers), last+1, expires, w.now().UnixMicro())
	w.must(err)
}

// now is the true time.
func (w *world) now() time.Time { return noon().Add(time.Since(w.began)) }

func (w *world) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("simulation: seed %d: %v", w.seed, err)) // the run cannot go on
	}
}

// draw returns a number from 0 to n-1.
func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) draw64(n int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Int64N(n)
}

// chance reports true in so many of 10,000 cases.
func (w *world) chance(of10000 int) bool { return of10000 > 0 && w.draw(10_000) < of10000 }

// between returns a time between two others.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.draw64(int64(most-least)+1))
}

// source returns the random source of a message, which does not depend on the order of
// other messages.
func (w *world) source(what string) *rand.Rand {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[what]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(what)) // a hash never fails
	return rand.New(rand.NewPCG(w.seed, h.Sum64()+w.calls[what]))
}

// nameOf returns a short name of a document: ids differ from run to run.
func (w *world) nameOf(documentID string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[documentID] == "" {
		w.jobs[documentID] = fmt.Sprintf("d%d", len(w.jobs)+1)
	}
	return w.jobs[documentID]
}

// tracef adds a line to the trace.
func (w *world) tracef(who, format string, args ...any) {
	line := fmt.Sprintf("%s %-6s %s", w.now().Format("02 15:04:05.000000"), who, fmt.Sprintf(format, args...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, line)
}

// close ends everything that runs in the bubble.
func (w *world) close() {
	_ = w.server.Close()        // connections that are open are of no use any more
	time.Sleep(3 * time.Minute) // longer than any answer takes that is still under way
	w.sim.Close()
	w.must(w.rows.Close())
}
