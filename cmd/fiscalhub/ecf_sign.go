package main

import (
	"errors"
	"os"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type ecfSignCmd struct {
	P12             string `name:"p12" env:"FISCALHUB_P12" required:"" help:"PKCS#12 file with the certificate and its private key." placeholder:"FILE"`
	PasswordFile    string `required:"" help:"File whose first line is the password of the PKCS#12 file." placeholder:"FILE"`
	Issuer          string `required:"" help:"JSON file of the issuer; rnc, legal_name and address are required." placeholder:"issuer.json"`
	ENCF            string `name:"encf" required:"" help:"Fiscal number, like E310000000001." placeholder:"E310000000001"`
	SequenceExpires string `help:"Day on which the range of the number expires; for type 31 only." placeholder:"DATE"`
	SignedAt        string `help:"Instant of the signature. By default now." placeholder:"RFC3339"`
	RFCE            string `name:"rfce" help:"File to write the summary (RFCE) of a consumer invoice below 250000.00 to." placeholder:"FILE"`
	File            string `arg:"" help:"Creation request, as in the API." placeholder:"request.json"`
}

// Run signs a document. The certificate must be valid now, also with --signed-at.
func (c ecfSignCmd) Run(t *terminal) error {
	now := time.Now()
	number, signedAt, err := c.flags(now)
	if err != nil {
		return err
	}
	issuer, err := readIssuer(c.Issuer)
	if err != nil {
		return err
	}
	inv, err := t.readRequest(c.File)
	if err != nil {
		return err
	}
	if inv.Type != number.ENCF.Type() {
		return wrongUsage("--encf: %s is not a number of type %s, the type of %s",
			"--encf: %s no es una secuencia del tipo %s, el tipo de %s", number.ENCF, inv.Type, c.File)
	}
	document, err := ecf.New(issuer, number, inv, signedAt)
	if err != nil {
		return err
	}
	if err := document.Check(); err != nil {
		return t.problems(c.File, err)
	}
	if inv.IssueDate.After(fiscal.DateOf(signedAt)) {
		t.warn(lang.Messagef("issue_date %s is after the day of the signature", "issue_date %s es posterior al día de la firma", inv.IssueDate))
	}
	id, err := openP12(c.P12, c.PasswordFile)
	if err != nil {
		return err
	}
	if err := id.Check(now); err != nil {
		return lang.Errorf("%s: %s", "%s: %s", c.P12, err)
	}
	xml, code, err := document.Sign(id)
	if err != nil {
		return err
	}
	if c.RFCE != "" {
		if err := c.writeSummary(t, document, id, code); err != nil {
			return err
		}
	}
	_, err = t.out.Write(xml)
	return err
}

// writeSummary writes the summary of a document to the file of --rfce. It only
// warns when the document has no summary.
func (c ecfSignCmd) writeSummary(t *terminal, document *ecf.Draft, id *xmlsig.Identity, code ecf.SecurityCode) error {
	if !document.HasSummary() {
		t.warn(lang.Messagef("%s was not written: only a consumer invoice below 250000.00 has a summary",
			"%s no se escribió: solo una factura de consumo menor de 250000.00 tiene resumen", c.RFCE))
		return nil
	}
	summary, err := document.SignSummary(id, code)
	if err != nil {
		return err
	}
	return os.WriteFile(c.RFCE, summary, 0o644) //nolint:gosec // a signed document is no secret
}

// flags reads the number and the time of the signature from the flags.
func (c ecfSignCmd) flags(now time.Time) (number ecf.Number, signedAt time.Time, err error) {
	if number.ENCF, err = fiscal.ParseENCF(c.ENCF); err != nil {
		return number, now, wrongUsage("--encf must be the letter E, the type 31 or 32 and ten digits, as in E310000000001",
			"--encf debe ser la letra E, el tipo 31 o 32 y diez dígitos, como en E310000000001")
	}
	signedAt = now
	if c.SignedAt != "" {
		if signedAt, err = time.Parse(time.RFC3339, c.SignedAt); err != nil {
			return number, now, wrongUsage("--signed-at must be an instant like 2026-03-05T10:40:31-04:00",
				"--signed-at debe ser un instante como 2026-03-05T10:40:31-04:00")
		}
	}
	if c.SequenceExpires != "" {
		if number.Expires, err = fiscal.ParseDate(c.SequenceExpires); err != nil {
			return number, now, usageOf("sequence-expires", err)
		}
	}
	switch {
	case number.ENCF.Type() == fiscal.Consumer && c.SequenceExpires != "":
		return number, now, wrongUsage("--sequence-expires: a document of type 32 does not state the day",
			"--sequence-expires: un documento del tipo 32 no declara el día")
	case number.ENCF.Type() == fiscal.FiscalCredit && c.SequenceExpires == "":
		return number, now, wrongUsage("--sequence-expires is required: a document of type 31 states the day on which the range of its number expires",
			"--sequence-expires es obligatorio: un documento del tipo 31 declara el día en que vence el rango de su secuencia")
	case !number.Expires.IsZero() && number.Expires.Before(fiscal.DateOf(signedAt)):
		return number, now, lang.Errorf("--sequence-expires: the range expired on %s, before the signature",
			"--sequence-expires: el rango venció el %s, antes de la firma", number.Expires)
	}
	return number, signedAt, nil
}

// readIssuer reads the JSON file of an issuer. It fails when the file has unknown
// members or the issuer violates the authority's format.
func readIssuer(path string) (ecf.Issuer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ecf.Issuer{}, err
	}
	file := issuerView{}
	if err := json.Unmarshal(raw, &file, json.RejectUnknownMembers(true)); err != nil {
		return ecf.Issuer{}, lang.Errorf("%s: %s", "%s: %s", path, err)
	}
	if file.IncomeType == "" {
		file.IncomeType = "01"
	}
	issuer := ecf.Issuer(file)
	var problems fiscal.Problems
	if err := issuer.Check(); errors.As(err, &problems) {
		texts := mapEach(problems, func(p fiscal.Problem) lang.Message { return lang.Messagef("%s %s", "%s %s", p.Field, p.Message) })
		return ecf.Issuer{}, lang.Errorf("%s: %s", "%s: %s", path, lang.Join(texts, "; "))
	}
	return issuer, nil
}

// readRequest reads a creation request and returns its invoice. It prints the
// warnings of the invoice.
func (t *terminal) readRequest(path string) (*fiscal.Invoice, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := strictjson.Parse(raw)
	if err != nil {
		return nil, lang.Errorf("%s: %s", "%s: %s", path, err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		return nil, t.problems(path, err)
	}
	for _, warning := range inv.Warnings {
		t.warn(warning)
	}
	return inv, nil
}

// problems prints the problems of a request, one line each, and returns an error
// with their count. It returns other errors as they are.
func (t *terminal) problems(path string, err error) error {
	var all fiscal.Problems
	if !errors.As(err, &all) {
		return err
	}
	for _, p := range all {
		t.progress(lang.Messagef("%s: %s (%s)", "%s: %s (%s)", p.Field, p.Message, p.Code)) // the error below has the count
	}
	if len(all) == 1 {
		return lang.Errorf("%s is not a valid invoice: %s: %s", "%s no es una factura válida: %s: %s", path, all[0].Field, all[0].Message)
	}
	return lang.Errorf("%s is not a valid invoice: %d problems, listed above",
		"%s no es una factura válida: %d problemas, listados arriba", path, len(all))
}
