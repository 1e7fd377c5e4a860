package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type onboardCmd struct {
	Environment  string `help:"certification or production." enum:"certification,production" default:"certification"`
	RNC          string `name:"rnc" help:"RNC (9 digits) or cédula (11 digits) of the taxpayer." placeholder:"RNC"`
	LegalName    string `help:"Legal name." placeholder:"NAME"`
	Address      string `help:"Address, as printed on the documents." placeholder:"TEXT"`
	Municipality string `help:"Municipality or municipal district: its name, or its code of six digits." placeholder:"NAME"`
	Certificate  string `help:"PKCS#12 file (.p12 or .pfx) with the certificate of the person who signs." placeholder:"FILE"`
	PasswordFile string `help:"File whose first line is the password of the certificate file." placeholder:"FILE"`
	Range31      string `name:"range-31" help:"Authorized numbers of type 31, like 1-1000." placeholder:"FROM-TO"`
	Expires31    string `name:"expires-31" help:"Last day on which the numbers of type 31 may be used." placeholder:"DATE"`
	Range32      string `name:"range-32" help:"Authorized numbers of type 32, like 1-1000." placeholder:"FROM-TO"`
	Expires32    string `name:"expires-32" help:"Last day on which the numbers of type 32 may be used, if there is one." placeholder:"DATE"`
	Authority    string `help:"Base address of a simulator that replaces the hosts of the tax authority." placeholder:"URL"`
	Trust        string `help:"PEM file of the roots that other parties' signatures must chain to." placeholder:"FILE"`
	Simulator    string `help:"Folder that fiscalhub simulator --enroll RNC --out DIR has written. It answers every question." placeholder:"DIR"`
	Send         bool   `help:"Start the service for a moment, send one consumer invoice of RD$590.00 and wait for the verdict. Not in production. --simulator does this too."`
	Yes          bool   `help:"Ask nothing; fail when an answer is missing."`
}

// onboarding is one run of the command: from an empty database to a taxpayer that can
// issue. Every step looks at the database first, so that the command can be interrupted and
// run again.
type onboarding struct {
	c     onboardCmd
	t     *terminal
	asker *asker
	store *store.Store
	keys  *seal.Keys
	scope store.Scope
}

// onboardView is the result in JSON.
type onboardView struct {
	TaxpayerID  string             `json:"taxpayer_id"`
	Environment fiscal.Environment `json:"environment"`
	APIKey      string             `json:"api_key"`
	Missing     []missingView      `json:"missing"`
	Invoice     *firstInvoice      `json:"invoice,omitempty"`
}

// Run prepares a taxpayer for its first live invoice.
func (c onboardCmd) Run(t *terminal) error {
	if err := c.fromSimulator(); err != nil {
		return err
	}
	if c.Send && c.Environment == string(fiscal.Production) {
		return wrongUsage("--send would issue a real fiscal document: send your first invoice of production with the API",
			"--send emitiría un comprobante fiscal real: envíe su primera factura de production con la API")
	}
	o := &onboarding{c: c, t: t, asker: newAsker(os.Stdin, t.errOut, c.Yes || t.cli.JSON, t.language)}
	o.scope.Environment = fiscal.Environment(c.Environment)
	view := onboardView{Environment: o.scope.Environment}
	t.mayCreate = true
	err := t.withKeys(func(s *store.Store, keys *seal.Keys, ring *access.Keyring) (err error) {
		o.store, o.keys = s, keys
		for _, step := range []func() error{o.taxpayer, o.certificate, o.ranges, o.asker.complete, o.trust} {
			if err := step(); err != nil {
				return err
			}
		}
		view.TaxpayerID = o.scope.TaxpayerID
		if view.Missing, err = o.missing(); err != nil {
			return err
		}
		key, _, err := access.NewCredentials(s, ring, s.Now).Issue(t.ctx, access.Terms{
			TaxpayerID: o.scope.TaxpayerID, Environment: o.scope.Environment, Scopes: apikey.AllScopes(),
		})
		view.APIKey = key.Reveal()
		return err
	})
	if err != nil {
		return err
	}
	if c.Send && len(view.Missing) == 0 {
		view.Invoice, err = o.sendFirst(view.APIKey)
	}
	// The key is printed even when the invoice failed, because it is shown only once.
	return errors.Join(t.answer(view, func(w io.Writer) { o.print(w, view) }), err)
}

// step prints the heading of a step.
func (o *onboarding) step(n int, text lang.Message) {
	o.asker.say(lang.Messagef("%d/4 %s", "%d/4 %s", n, text))
}

// taxpayer finds the taxpayer by its RNC, or creates it.
func (o *onboarding) taxpayer() error {
	o.step(1, lang.Messagef("Taxpayer", "Contribuyente"))
	rnc, err := o.asker.ask(question{flag: "rnc", text: lang.Messagef("RNC (9 digits) or cédula (11 digits)", "RNC (9 dígitos) o cédula (11 dígitos)"), given: o.c.RNC, check: func(s string) error {
		if !fiscal.IsRNC(s) {
			return lang.Errorf("an RNC has 9 digits and a cédula 11, without dashes", "un RNC tiene 9 dígitos y una cédula 11, sin guiones")
		}
		return nil
	}})
	if err != nil {
		return err
	}
	all, err := o.store.Taxpayers(o.t.ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(one store.Taxpayer) bool { return one.RNC == rnc }); i >= 0 {
		o.scope.TaxpayerID = all[i].ID
		o.asker.say(lang.Messagef("  %s is in the database: %s", "  %s está en la base de datos: %s", rnc, printable(all[i].LegalName)))
		return o.completeAddress(all[i])
	}
	if rnc != "" && !fiscal.CheckDigitHolds(rnc) {
		o.t.warn(lang.Messagef("the check digit of %s is wrong; this is rare, so compare the number with the registration",
			"el dígito verificador de %s no es correcto; es poco común, así que compare el número con el registro", rnc))
	}
	return o.createTaxpayer(rnc)
}

// completeAddress asks for the address of a taxpayer that was created without one.
func (o *onboarding) completeAddress(taxpayer store.Taxpayer) error {
	if taxpayer.Address != "" {
		return nil
	}
	address, err := o.asker.ask(question{flag: "address", text: lang.Messagef("Address", "Dirección"), given: o.c.Address})
	if err != nil || address == "" {
		return err
	}
	if err := apply(&taxpayer, nil, nil, profile{Address: &address}, o.store.Now()); err != nil {
		return err
	}
	return o.store.Update(o.t.ctx, func(tx *store.Tx) error { return tx.UpdateTaxpayer(o.t.ctx, taxpayer) })
}

// lacks returns the code of what the taxpayer is missing to issue documents of a type,
// among the codes with a prefix, and "" when nothing is missing.
func (o *onboarding) lacks(kind fiscal.Type, prefix string) (string, error) {
	if o.scope.TaxpayerID == "" {
		return prefix, nil
	}
	facts, err := pipeline.ReadFacts(o.t.ctx, o.store, o.scope)
	if err != nil {
		return "", err
	}
	for _, p := range facts.Missing(kind, o.store.Now()) {
		if strings.HasPrefix(p.Code, prefix) {
			return p.Code, nil
		}
	}
	return "", nil
}

func (o *onboarding) createTaxpayer(rnc string) error {
	name, err := o.asker.ask(question{flag: "legal-name", text: lang.Messagef("Legal name", "Razón social"), given: o.c.LegalName})
	if err != nil {
		return err
	}
	address, err := o.asker.ask(question{flag: "address", text: lang.Messagef("Address", "Dirección"), given: o.c.Address})
	if err != nil {
		return err
	}
	var municipality, province string
	_, err = o.asker.ask(question{
		flag: "municipality", text: lang.Messagef("Municipality, name or code (Enter: none)", "Municipio, nombre o código (Enter: ninguno)"), given: o.c.Municipality, optional: true,
		check: func(s string) (err error) {
			municipality, province, err = findMunicipality(s)
			return err
		},
	})
	if err != nil || o.asker.missing != nil {
		return err
	}
	now := o.store.Now()
	made := store.Taxpayer{ID: store.NewID(), IncomeType: "01", Phones: []string{}, CreatedAt: now}
	if err := apply(&made, &rnc, &name, profile{Address: &address, Municipality: &municipality, Province: &province}, now); err != nil {
		return err
	}
	if err := o.store.Update(o.t.ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(o.t.ctx, made) }); err != nil {
		return err
	}
	o.scope.TaxpayerID = made.ID
	o.asker.say(lang.Messagef("  created %s", "  creado %s", made.ID))
	return nil
}

// certificate imports the certificate, unless the taxpayer has one that is valid.
func (o *onboarding) certificate() error {
	o.step(2, lang.Messagef("Certificate", "Certificado"))
	lacks, err := o.lacks(fiscal.Consumer, "certificate.")
	if err != nil {
		return err
	}
	if lacks == "" {
		o.asker.say(lang.Messagef("  a valid certificate is imported", "  ya hay un certificado vigente importado"))
		return nil
	}
	file, err := o.asker.ask(question{flag: "certificate", text: lang.Messagef("PKCS#12 file (.p12 or .pfx)", "Archivo PKCS#12 (.p12 o .pfx)"), given: o.c.Certificate, check: func(s string) error {
		_, err := os.Stat(s)
		return err
	}})
	if err != nil {
		return err
	}
	if o.c.PasswordFile == "" && o.asker.terminal == nil {
		o.asker.missing = append(o.asker.missing, "--password-file")
	}
	if o.asker.missing != nil {
		return nil
	}
	id, err := o.openCertificate(file)
	if err != nil {
		return err
	}
	kept, err := access.NewCertificates(o.store, o.keys, o.store.Now).Import(o.t.ctx, o.scope, id)
	if err != nil {
		return certificateImportCmd{File: file}.explain(err)
	}
	o.asker.say(lang.Messagef("  imported %s, valid until %s", "  importado %s, vigente hasta %s", printable(kept.Subject), formatTime(kept.NotAfter)))
	return nil
}

// ranges adds the ranges of numbers of both types, unless the taxpayer has some left.
func (o *onboarding) ranges() error {
	o.step(3, lang.Messagef("Numbers (e-NCF) that the authority has authorized", "Secuencias (e-NCF) que autorizó la DGII"))
	for _, r := range []rangeQuestion{
		{fiscal.FiscalCredit, "31", o.c.Range31, o.c.Expires31}, {fiscal.Consumer, "32", o.c.Range32, o.c.Expires32},
	} {
		if err := o.numberRange(r); err != nil {
			return err
		}
	}
	return nil
}

// trust checks the file of roots.
func (o *onboarding) trust() error {
	o.step(4, lang.Messagef("Trust", "Confianza"))
	if o.c.Trust == "" {
		o.asker.say(lang.Messagef("  no --trust FILE: the service will not trust signatures of buyers. You can name the file later.",
			"  sin --trust FILE: el servicio no confiará en las firmas de los compradores. Puede indicar el archivo después."))
		return nil
	}
	roots, err := liveFlags{Trust: o.c.Trust}.roots()
	if err != nil {
		return err
	}
	if roots != nil {
		o.asker.say(lang.Messagef("  %s is readable", "  %s se puede leer", o.c.Trust))
	}
	return nil
}

// missing returns what the taxpayer still needs in the environment.
func (o *onboarding) missing() ([]missingView, error) {
	suspended, err := suspensions(o.t, o.store)
	if err != nil {
		return nil, err
	}
	all, err := missingToIssue(o.t, o.store, o.scope.TaxpayerID, suspended)
	return slices.DeleteFunc(all, func(m missingView) bool { return m.Environment != o.scope.Environment }), err
}

// print prints the result and the next commands.
func (o *onboarding) print(w io.Writer, view onboardView) {
	line(w, "taxpayer", view.TaxpayerID)
	line(w, "api key", view.APIKey)
	line(w, "", storeNow().In(o.t.language))
	for _, m := range view.Missing {
		line(w, "missing", string(m.Type), m.Code)
	}
	if i := view.Invoice; i != nil {
		line(w, "invoice", i.ENCF, string(i.Status))
		line(w, "", i.XML+", "+i.PDF)
	}
	command := "fiscalhub serve --environment " + string(view.Environment) + " --data " + o.t.cli.Data
	for _, f := range []struct{ flag, value string }{{"--database", o.t.cli.Database}, {"--authority", o.c.Authority}, {"--trust", o.c.Trust}} {
		if f.value != "" {
			command += " " + f.flag + " " + f.value
		}
	}
	_, _ = io.WriteString(w, lang.Messagef("\nStart the service:\n\n  %s\n\nCreate an invoice:\n\n%s\n",
		"\nInicie el servicio:\n\n  %s\n\nCree una factura:\n\n%s\n", command, strings.TrimSpace(curl("http://127.0.0.1:8080", view.TaxpayerID, view.APIKey, "first-1"))).In(o.t.language))
}
