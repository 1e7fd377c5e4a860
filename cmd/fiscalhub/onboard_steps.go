package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// fromSimulator fills the answers from the folder of an enrolled taxpayer.
func (c *onboardCmd) fromSimulator() error {
	if c.Simulator == "" {
		return nil
	}
	if c.Environment == string(fiscal.Production) {
		return wrongUsage("--simulator: use --environment certification", "--simulator: use --environment certification con esta opción")
	}
	if c.RNC == "" {
		files, err := filepath.Glob(filepath.Join(c.Simulator, "*.p12"))
		if err != nil || len(files) == 0 {
			return lang.Errorf("--simulator %[1]s: the folder has no certificate; run fiscalhub simulator --enroll RNC --out %[1]s first",
				"--simulator %[1]s: la carpeta no tiene certificado; ejecute primero fiscalhub simulator --enroll RNC --out %[1]s", c.Simulator)
		}
		c.RNC = strings.TrimSuffix(filepath.Base(files[0]), ".p12")
	}
	own := enrolledView{c.RNC, filepath.Join(c.Simulator, c.RNC+".p12"), filepath.Join(c.Simulator, c.RNC+".password")}
	for _, f := range []struct {
		field  *string
		answer string
	}{
		{&c.LegalName, "Contribuyente " + c.RNC}, {&c.Address, "Calle Ficticia 1, Santo Domingo"},
		{&c.Certificate, own.Certificate}, {&c.PasswordFile, own.Password}, {&c.Trust, filepath.Join(c.Simulator, rootsFile)},
		{&c.Range31, "1-1000"}, {&c.Expires31, demoExpiry().String()}, {&c.Range32, "1-1000"}, {&c.Authority, "http://127.0.0.1:9090"},
	} {
		if *f.field == "" {
			*f.field = f.answer
		}
	}
	c.Send, c.Yes = true, true
	return nil
}

// findMunicipality returns the codes of a municipality and of its province, from a name
// or a code. The error names the municipalities that were meant.
func findMunicipality(text string) (municipality, province string, err error) {
	found := ecf.FindMunicipalities(text)
	switch {
	case len(found) == 1:
		return found[0].Code, found[0].Province, nil
	case len(found) == 0:
		return "", "", lang.Errorf("the authority's table has no municipality %q", "la tabla de la DGII no tiene el municipio %q", text)
	}
	names := make([]string, 0, len(found))
	for _, m := range found {
		names = append(names, m.Code+" "+m.Name+" ("+ecf.RegionName(m.Province)+")")
	}
	return "", "", lang.Errorf("several municipalities have this name; give the code: %s",
		"varios municipios tienen este nombre; indique el código: %s", strings.Join(names, ", "))
}

// openCertificate opens the certificate with the password of the file or of the person.
func (o *onboarding) openCertificate(file string) (*xmlsig.Identity, error) {
	if o.c.PasswordFile != "" {
		o.t.warnOfReaders(o.c.PasswordFile)
		return openP12(file, o.c.PasswordFile)
	}
	content, err := readBounded(file, maxP12)
	if err != nil {
		return nil, err
	}
	for {
		password, err := o.asker.password(lang.Messagef("Password of the certificate (not shown)", "Contraseña del certificado (no se muestra)"))
		if err != nil {
			return nil, err
		}
		id, err := xmlsig.OpenP12(content, password)
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, xmlsig.ErrPassword) {
			return nil, explainP12(err, file, "")
		}
		o.asker.say(lang.Messagef("    the password is wrong", "    la contraseña no es correcta"))
	}
}

// rangeQuestion asks for a range of numbers of one type.
type rangeQuestion struct {
	kind           fiscal.Type
	name           string
	given, expires string
}

// numberRange adds a range, unless the taxpayer has numbers of the type left.
func (o *onboarding) numberRange(q rangeQuestion) error {
	switch lacks, err := o.lacks(q.kind, "sequence."); {
	case err != nil:
		return err
	case lacks == "":
		o.asker.say(lang.Messagef("  type %s has numbers", "  el tipo %s tiene secuencias", q.name))
		return nil
	case lacks == "sequence.fenced":
		o.t.warn(lang.Messagef("the numbers of type %s are fenced: run fiscalhub reconcile --taxpayer %s --environment %s",
			"las secuencias del tipo %s están bloqueadas: ejecute fiscalhub reconcile --taxpayer %s --environment %s", q.name, o.scope.TaxpayerID, o.scope.Environment))
		return nil
	}
	var from, to int64
	text, err := o.asker.ask(question{
		flag: "range-" + q.name, text: lang.Messagef("Numbers of type %s, like 1-1000 (Enter: none)", "Secuencias del tipo %s, como 1-1000 (Enter: ninguna)", q.name), given: q.given, optional: true,
		check: func(s string) (err error) {
			from, to, err = parseRange(s)
			return err
		},
	})
	if err != nil || text == "" {
		return err
	}
	expires, err := o.asker.ask(question{
		flag: "expires-" + q.name, text: lang.Messagef("Last day of these numbers, like 2027-12-31", "Último día de estas secuencias, como 2027-12-31"), given: q.expires, optional: q.kind != fiscal.FiscalCredit,
		check: func(s string) error {
			day, err := fiscal.ParseDate(s)
			if err == nil && day.Before(fiscal.DateOf(o.store.Now())) {
				err = lang.Errorf("the day is in the past", "el día está en el pasado")
			}
			return err
		},
	})
	if err != nil || o.asker.missing != nil {
		return err
	}
	return o.addRange(q, from, to, expires)
}

func (o *onboarding) addRange(q rangeQuestion, from, to int64, expires string) error {
	spec := taxpayer.RangeSpec{Type: q.kind, From: from, To: to, Expires: expires}
	_, err := taxpayer.AddRange(o.t.ctx, o.store, o.scope, spec, o.store.Now())
	if errors.Is(err, store.ErrOverlap) {
		return explainOverlap(from, to, q.kind)
	}
	if err == nil {
		o.asker.say(lang.Messagef("  added %d to %d of type %s", "  agregadas de %d a %d del tipo %s", from, to, q.name))
	}
	return err
}

// parseRange reads two numbers like 1-1000.
func parseRange(s string) (from, to int64, err error) {
	first, last, _ := strings.Cut(s, "-")
	from, err = strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err == nil {
		to, err = strconv.ParseInt(strings.TrimSpace(last), 10, 64)
	}
	if err != nil || !taxpayer.CheckSpan(from, to) {
		return 0, 0, lang.Errorf("give the first and the last number, like 1-1000; each has at most ten digits",
			"indique la primera y la última secuencia, como 1-1000; cada una tiene un máximo de diez dígitos")
	}
	return from, to, nil
}

// firstInvoice is the invoice that was sent, in JSON.
type firstInvoice struct {
	ENCF   string        `json:"encf"`
	Status client.Status `json:"status"`
	XML    string        `json:"xml"`
	PDF    string        `json:"pdf"`
}

// sendFirst runs the service in this process, creates one invoice through its API, waits
// for the verdict and writes the XML and the PDF into the data folder.
func (o *onboarding) sendFirst(key string) (*firstInvoice, error) {
	ctx, stop := context.WithCancel(o.t.ctx)
	defer stop()
	ready := make(chan string, 1)
	command := serveCmd{
		Environment: string(o.scope.Environment), Listen: "127.0.0.1:0", LogLevel: logLevel{slog.LevelError},
		liveFlags: liveFlags{Authority: o.c.Authority, Trust: o.c.Trust, Pace: 1},
		ready:     func(baseURL string) { ready <- baseURL },
	}
	shared := *o.t.cli
	service := &terminal{ctx: ctx, cli: &shared, out: io.Discard, errOut: &lockedWriter{w: o.t.errOut}, language: o.t.language}
	served := make(chan error, 1)
	go func() { served <- command.Run(service) }()
	select {
	case baseURL := <-ready:
		first, err := o.create(ctx, baseURL, key)
		stop()
		return first, errors.Join(err, <-served)
	case err := <-served:
		return nil, err
	}
}

func (o *onboarding) create(ctx context.Context, baseURL, key string) (*firstInvoice, error) {
	api, err := client.New(baseURL, key, o.scope.TaxpayerID)
	if err != nil {
		return nil, err
	}
	id := "onboard-" + store.NewID()
	first := &sample{externalID: id, kind: fiscal.Consumer, net: 500, buyer: client.Buyer{LegalName: "Consumidor final"}}
	made, err := api.CreateInvoice(ctx, id, first.request())
	if err != nil {
		return nil, err
	}
	var document client.Document
	final := func() (bool, error) {
		got, err := api.Document(ctx, made.Data.FiscalDocumentID)
		document = got.Data
		return document.Status == client.Accepted || document.Status == client.AcceptedConditional || document.Status == client.Rejected, err
	}
	if err := await(ctx, final, func() lang.Message {
		return lang.Messagef("the invoice is %s; is the simulator at %s running? See fiscalhub work list --data %s",
			"la factura está en %s; ¿está en marcha el simulador en %s? Vea fiscalhub work list --data %s", document.Status, o.c.Authority, o.t.cli.Data)
	}); err != nil {
		return nil, err
	}
	result := &firstInvoice{ENCF: document.ENCF, Status: document.Status}
	for _, f := range []struct {
		path *string
		kind string
		get  func(context.Context, string) (client.Response[[]byte], error)
	}{{&result.XML, ".xml", api.DocumentXML}, {&result.PDF, ".pdf", api.DocumentPDF}} {
		content, err := f.get(ctx, made.Data.FiscalDocumentID)
		if err != nil {
			return nil, err
		}
		*f.path = filepath.Join(o.t.cli.Data, document.ENCF+f.kind)
		if err := os.WriteFile(*f.path, content.Data, 0o600); err != nil {
			return nil, err
		}
	}
	return result, nil
}
