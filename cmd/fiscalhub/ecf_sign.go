package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

type ecfSignCmd struct {
	P12             string `name:"p12" required:"" help:"Certificate and key, a PKCS#12 file." placeholder:"FILE"`
	PasswordFile    string `required:"" help:"File whose first line is the password of the PKCS#12 file." placeholder:"FILE"`
	Issuer          string `required:"" help:"Who issues, as JSON; rnc, legal_name and address are required." placeholder:"issuer.json"`
	ENCF            string `name:"encf" required:"" help:"Fiscal number, like E310000000001." placeholder:"E310000000001"`
	SequenceExpires string `help:"Day on which the range of the number expires; for type 31 alone." placeholder:"DATE"`
	SignedAt        string `help:"Moment of the signature; now unless told." placeholder:"RFC3339"`
	RFCE            string `name:"rfce" help:"Where to write the summary that the authority gets of a consumer invoice below 250000.00." placeholder:"FILE"`
	File            string `arg:"" help:"Creation request, as the API takes it." placeholder:"request.json"`
}

// Run signs a document.
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
		return usageError(fmt.Sprintf("--encf: %s is not a number of type %s, which %s asks for", number.ENCF, inv.Type, c.File))
	}
	document, err := ecf.New(issuer, number, inv, signedAt)
	if err != nil {
		return err
	}
	if err := document.Check(); err != nil {
		return t.problems(c.File, err)
	}
	if inv.IssueDate.After(fiscal.DateOf(signedAt)) {
		_, _ = fmt.Fprintf(t.errOut, "warning: issue_date %s is after the day of the signature\n", inv.IssueDate) // a note
	}
	id, err := openP12(c.P12, c.PasswordFile)
	if err != nil {
		return err
	}
	if err := id.Check(now); err != nil {
		return fmt.Errorf("%s: %w", c.P12, err)
	}
	xml, code, err := document.Sign(id)
	if err != nil {
		return err
	}
	if c.RFCE != "" && document.HasSummary() {
		summary, err := document.SignSummary(id, code)
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.RFCE, summary, 0o644); err != nil { //nolint:gosec // a signed document is no secret
			return err
		}
	} else if c.RFCE != "" {
		_, _ = fmt.Fprintf(t.errOut, "note: %s has no summary, which only a consumer invoice below 250000.00 has; %s was not written\n", number.ENCF, c.RFCE) // a note
	}
	_, err = t.out.Write(xml)
	return err
}

// flags reads what the flags say of number and time.
func (c ecfSignCmd) flags(now time.Time) (number ecf.Number, signedAt time.Time, err error) {
	if number.ENCF, err = fiscal.ParseENCF(c.ENCF); err != nil {
		return number, now, usageError("--encf: " + err.Error())
	}
	signedAt = now
	if c.SignedAt != "" {
		if signedAt, err = time.Parse(time.RFC3339, c.SignedAt); err != nil {
			return number, now, usageError("--signed-at: want a moment like 2026-03-05T10:40:31-04:00")
		}
	}
	if c.SequenceExpires != "" {
		if number.Expires, err = fiscal.ParseDate(c.SequenceExpires); err != nil {
			return number, now, usageError("--sequence-expires: " + err.Error())
		}
	}
	switch {
	case number.ENCF.Type() == fiscal.Consumer && c.SequenceExpires != "":
		return number, now, usageError("--sequence-expires: a document of type 32 does not state it")
	case number.ENCF.Type() == fiscal.FiscalCredit && c.SequenceExpires == "":
		return number, now, usageError("--sequence-expires: a document of type 31 states when the range of its number expires")
	case !number.Expires.IsZero() && number.Expires.Before(fiscal.DateOf(signedAt)):
		return number, now, fmt.Errorf("--sequence-expires: the range expired on %s, before the signature", number.Expires)
	}
	return number, signedAt, nil
}

// issuerFile is who issues, in JSON.
type issuerFile struct {
	RNC              string   `json:"rnc"`
	LegalName        string   `json:"legal_name"`
	TradeName        string   `json:"trade_name"`
	Branch           string   `json:"branch"`
	Address          string   `json:"address"`
	Municipality     string   `json:"municipality"`
	Province         string   `json:"province"`
	Phones           []string `json:"phones"`
	Email            string   `json:"email"`
	Website          string   `json:"website"`
	EconomicActivity string   `json:"economic_activity"`
	IncomeType       string   `json:"income_type"`
}

func readIssuer(path string) (ecf.Issuer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ecf.Issuer{}, err
	}
	file := issuerFile{}
	if err := json.Unmarshal(raw, &file, json.RejectUnknownMembers(true)); err != nil {
		return ecf.Issuer{}, fmt.Errorf("%s: %w", path, err)
	}
	if file.IncomeType == "" {
		file.IncomeType = "01"
	}
	issuer := ecf.Issuer(file)
	var problems fiscal.Problems
	if err := issuer.Check(); errors.As(err, &problems) {
		wrong := make([]string, len(problems))
		for i, p := range problems {
			wrong[i] = p.Field + " " + p.Message
		}
		return ecf.Issuer{}, fmt.Errorf("%s: %s", path, strings.Join(wrong, "; "))
	}
	return issuer, nil
}

// readRequest reads a creation request and makes its invoice.
func (t *terminal) readRequest(path string) (*fiscal.Invoice, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := strictjson.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		return nil, t.problems(path, err)
	}
	for _, warning := range inv.Warnings {
		_, _ = fmt.Fprintln(t.errOut, "warning:", warning) // a note
	}
	return inv, nil
}

// problems lists everything that is wrong with a request, a line each, and
// returns how much that is.
func (t *terminal) problems(path string, err error) error {
	var all fiscal.Problems
	if !errors.As(err, &all) {
		return err
	}
	for _, p := range all {
		_, _ = fmt.Fprintf(t.errOut, "%s: %s (%s)\n", p.Field, p.Message, p.Code) // the error below tells
	}
	if len(all) == 1 {
		return fmt.Errorf("%s is not a valid invoice: %s: %s", path, all[0].Field, all[0].Message)
	}
	return fmt.Errorf("%s is not a valid invoice: %d problems, listed above", path, len(all))
}
