package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type simulatorCmd struct {
	Listen          string         `help:"Address of the emulated hosts (default 127.0.0.1:9090)." default:"127.0.0.1:9090" placeholder:"ADDR"`
	Control         string         `help:"Address of the control API (default 127.0.0.1:9091)." default:"127.0.0.1:9091" placeholder:"ADDR"`
	ControlToken    string         `help:"Bearer token of the control API; required when it listens beyond this machine." placeholder:"TOKEN"`
	Seed            uint64         `help:"Seed of every random value (default 1)." default:"1" placeholder:"N"`
	Profile         string         `help:"happy, slow-day, flaky, dgii-down, certification-strict or chaos." enum:"happy,slow-day,flaky,dgii-down,certification-strict,chaos" default:"happy"`
	Fixture         string         `help:"JSON file with the taxpayers, rules and configuration to start with." placeholder:"FILE"`
	Latency         *time.Duration `help:"Latency of every answer. By default a random 5 to 30 ms." placeholder:"D"`
	ValidationDelay *time.Duration `help:"How long every document is in process. By default a random 150 ms to 5 min." placeholder:"D"`
	Enroll          []string       `help:"RNC of a taxpayer that may issue documents from the start; may be repeated. Needs --out." placeholder:"RNC"`
	Out             string         `help:"Folder for RNC.p12, RNC.password and roots.pem of the enrolled taxpayers. A later start with this folder continues with the same certificates." placeholder:"DIR"`
	Lean            bool           `help:"Keep neither the journal nor the content of documents. For benchmarks."`
	LogLevel        logLevel       `help:"debug, info, warn or error." default:"warn"`
}

// Run serves until the process is asked to stop.
func (c simulatorCmd) Run(t *terminal) error {
	if c.ControlToken == "" && !isLoopback(c.Control) {
		return wrongUsage("--control: %s can be reached from other machines: set --control-token, or listen on 127.0.0.1",
			"--control: %s es accesible desde otras máquinas: indique --control-token o escuche en 127.0.0.1", c.Control)
	}
	sim, err := c.simulator(t)
	if err != nil {
		return err
	}
	if err := c.enroll(sim); err != nil {
		return err
	}
	emulated, err := listenOn(t.ctx, c.Listen)
	if err != nil {
		return err
	}
	control, err := listenOn(t.ctx, c.Control)
	if err != nil {
		return errors.Join(err, emulated.Close())
	}
	if err := c.answer(t, emulated.Addr(), control.Addr()); err != nil {
		return errors.Join(err, emulated.Close(), control.Close())
	}
	log := slog.NewLogLogger(t.log(c.LogLevel.Level).Handler(), slog.LevelDebug)
	servers := []*http.Server{
		{Handler: sim.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log},
		{Handler: withToken(sim.Control(), c.ControlToken), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log},
	}
	served := make(chan error, len(servers))
	for i, listener := range []net.Listener{emulated, control} {
		go func() { served <- servers[i].Serve(listener) }()
	}
	select {
	case err = <-served:
	case <-t.ctx.Done():
	}
	sim.Close() // first: it ends the requests that the servers would wait for
	grace, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 5*time.Second)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(grace) != nil {
			_ = server.Close() // the simulator has ended its requests already
		}
	}
	return err
}

// simulator builds the simulator from the flags and the fixture. A flag wins over
// the fixture.
func (c simulatorCmd) simulator(t *terminal) (*simulator.Simulator, error) {
	o := simulator.Options{Now: time.Now, Seed: c.Seed, Log: t.log(c.LogLevel.Level), Schemas: os.Getenv("FISCALHUB_XSD"), Fixture: &simulator.Fixture{}}
	var err error
	if o.Root, err = c.root(); err != nil {
		return nil, err
	}
	if c.Fixture != "" {
		raw, err := os.ReadFile(c.Fixture)
		if err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(o.Fixture); err != nil {
			return nil, lang.Errorf("%s: %s", "%s: %s", c.Fixture, err)
		}
	}
	if o.Fixture.Config == nil {
		o.Fixture.Config = &simulator.Config{}
	}
	config := o.Fixture.Config
	if config.Profile == "" || c.Profile != "happy" { // the default of the flag does not win over the fixture
		config.Profile = c.Profile
	}
	config.Lean = config.Lean || c.Lean
	for _, f := range []struct {
		flag *time.Duration
		span **simulator.Span
	}{{c.Latency, &config.Latency}, {c.ValidationDelay, &config.ValidationDelay}} {
		if f.flag != nil {
			*f.span = simulator.Fixed(*f.flag)
		}
	}
	sim, err := simulator.New(o)
	if err != nil {
		return nil, usageError{lang.Literal(strings.TrimPrefix(err.Error(), "simulator: "))}
	}
	return sim, nil
}

// simulatorView is what the simulator prints with --json when it starts.
type simulatorView struct {
	Authority string         `json:"authority"`
	Control   string         `json:"control"`
	Roots     string         `json:"roots,omitempty"`
	Enrolled  []enrolledView `json:"enrolled,omitempty"`
}

// answer prints the addresses of the simulator and the next commands.
func (c simulatorCmd) answer(t *terminal, emulated, control net.Addr) error {
	view := simulatorView{Authority: "http://" + emulated.String(), Control: "http://" + control.String() + "/_sim/v1"}
	if len(c.Enroll) > 0 {
		view.Roots, view.Enrolled = filepath.Join(c.Out, rootsFile), c.enrolled()
	}
	t.progress(lang.Messagef("simulator of the tax authority: run fiscalhub serve --authority %s",
		"simulador de la DGII: ejecute fiscalhub serve --authority %s", view.Authority))
	t.progress(lang.Messagef("control API: %s", "API de control: %s", view.Control))
	for _, e := range view.Enrolled {
		t.progress(lang.Messagef("taxpayer %s may issue documents: certificate %s, password %s",
			"el contribuyente %s puede emitir documentos: certificado %s, contraseña %s", e.RNC, e.Certificate, e.Password))
	}
	if len(c.Enroll) > 0 {
		t.progress(lang.Messagef("next, in another terminal: fiscalhub onboard --simulator %s --authority %s",
			"siguiente, en otra terminal: fiscalhub onboard --simulator %s --authority %s", c.Out, view.Authority))
	}
	if !t.cli.JSON {
		return nil
	}
	return t.answer(view, nil)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withToken refuses requests without the bearer token. An empty token refuses
// nothing.
func withToken(h http.Handler, token string) http.Handler {
	if token == "" {
		return h
	}
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the control API requires its token", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Files in the folder of enrolled taxpayers, in addition to RNC.p12 and RNC.password.
const (
	rootsFile   = "roots.pem"
	rootKeyFile = "simulator-root.pem" // the root with its key, for a later start
)

// enrolledPerson signs for every enrolled taxpayer. The person does not exist.
const enrolledPerson = "00112345678"

// renewBefore is how long a certificate of an earlier start must still be valid to be
// used again.
const renewBefore = 30 * 24 * time.Hour

// enrolledView is an enrolled taxpayer in JSON.
type enrolledView struct {
	RNC         string `json:"rnc"`
	Certificate string `json:"certificate"`
	Password    string `json:"password_file"`
}

func (c simulatorCmd) enrolled() []enrolledView {
	var list []enrolledView
	for _, rnc := range c.Enroll {
		list = append(list, enrolledView{rnc, filepath.Join(c.Out, rnc+".p12"), filepath.Join(c.Out, rnc+".password")})
	}
	return list
}

// root reads the root of an earlier start, if there is one.
func (c simulatorCmd) root() ([]byte, error) {
	if (len(c.Enroll) == 0) != (c.Out == "") {
		return nil, wrongUsage("--enroll and --out belong together: --enroll RNC --out DIR", "--enroll y --out van juntos: --enroll RNC --out DIR")
	}
	for _, rnc := range c.Enroll {
		if !fiscal.IsRNC(rnc) {
			return nil, wrongUsage("--enroll: %q must be an RNC: 9 or 11 digits", "--enroll: %q debe ser un RNC: 9 u 11 dígitos", rnc)
		}
	}
	if c.Out == "" {
		return nil, nil
	}
	root, err := os.ReadFile(filepath.Join(c.Out, rootKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

// enroll adds the taxpayers of --enroll to the simulator and writes their files. It
// keeps certificates of an earlier start that are still valid.
func (c simulatorCmd) enroll(sim *simulator.Simulator) error {
	if len(c.Enroll) == 0 {
		return nil
	}
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return err
	}
	root, err := sim.RootWithKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{rootKeyFile: root, rootsFile: sim.RootsPEM()} {
		if err := os.WriteFile(filepath.Join(c.Out, name), content, 0o600); err != nil {
			return err
		}
	}
	known := map[string]bool{}
	for _, taxpayer := range sim.Taxpayers() {
		known[taxpayer.RNC] = true // of the fixture
	}
	for _, e := range c.enrolled() {
		if !known[e.RNC] {
			if err := sim.AddTaxpayer(simulator.Baseline(e.RNC, enrolledPerson, demoExpiry().String())); err != nil {
				return err
			}
		}
		if err := e.writeCertificate(sim); err != nil {
			return err
		}
	}
	return nil
}

// writeCertificate writes the certificate and its password, unless the files have a
// certificate that is still valid.
func (e enrolledView) writeCertificate(sim *simulator.Simulator) error {
	if id, err := openP12(e.Certificate, e.Password); err == nil && e.usable(sim, id) {
		return nil
	}
	c, err := sim.IssueCertificate(simulator.CertificateRequest{Holder: enrolledPerson, Name: "Firmante de " + e.RNC})
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.Password, []byte(c.Password+"\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(e.Certificate, c.P12, 0o600)
}

func (enrolledView) usable(sim *simulator.Simulator, id *xmlsig.Identity) bool {
	roots := x509.NewCertPool()
	roots.AddCert(sim.CA())
	_, err := id.Certificate.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: time.Now().Add(renewBefore), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}
