package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

// profile are the optional flags of a taxpayer. A nil field was not given.
type profile struct {
	TradeName        *string  `help:"Trade name." placeholder:"NAME"`
	Branch           *string  `help:"Branch (sucursal)." placeholder:"NAME"`
	Address          *string  `help:"Address, as printed on the documents." placeholder:"TEXT"`
	Municipality     *string  `help:"Code of the municipality, six digits." placeholder:"CODE"`
	Province         *string  `help:"Code of the province, six digits." placeholder:"CODE"`
	Phone            []string `help:"Telephone, like 809-555-0100; may be repeated up to 3 times." placeholder:"NUMBER"`
	Email            *string  `help:"E-mail address." placeholder:"ADDRESS"`
	Website          *string  `help:"Web site." placeholder:"URL"`
	EconomicActivity *string  `help:"Economic activity." placeholder:"TEXT"`
	IncomeType       *string  `help:"Type of income, 01 to 06. By default 01, operating income." placeholder:"CODE"`
	ElectronicSince  *string  `help:"Day since which the taxpayer issues electronically. The service refuses older invoices." placeholder:"DATE"`
	PageFormat       *string  `help:"Format of printed pages when a request names none: letter, receipt (a roll of 80 mm) or receipt58 (58 mm). By default letter." placeholder:"FORMAT"`
	Logo             string   `help:"PNG or JPEG file, at most 1 MiB." placeholder:"FILE" type:"existingfile"`
}

// apply sets the given fields of a taxpayer and checks all of its fields. It
// returns a usageError with every problem.
func apply(to *store.Taxpayer, rnc, legalName *string, p profile, now time.Time) error {
	for _, f := range []struct {
		given *string
		field *string
	}{
		{rnc, &to.RNC}, {legalName, &to.LegalName}, {p.TradeName, &to.TradeName}, {p.Branch, &to.Branch},
		{p.Address, &to.Address}, {p.Municipality, &to.Municipality}, {p.Province, &to.Province}, {p.Email, &to.Email},
		{p.Website, &to.Website}, {p.EconomicActivity, &to.EconomicActivity}, {p.IncomeType, &to.IncomeType},
		{p.ElectronicSince, &to.ElectronicSince}, {p.PageFormat, &to.PageFormat},
	} {
		if f.given != nil {
			*f.field = strings.TrimSpace(*f.given)
		}
	}
	if p.Phone != nil {
		to.Phones = p.Phone
	}
	if p.Logo != "" {
		logo, err := readLogo(p.Logo)
		if err != nil {
			return err
		}
		to.Logo = logo
	}
	to.UpdatedAt = now
	return checkTaxpayer(*to)
}

// readLogo reads a picture file. It fails when the file is not a PNG or JPEG of
// the allowed size.
func readLogo(path string) ([]byte, error) {
	logo, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := taxpayer.CheckLogo(logo); err != nil {
		return nil, lang.Errorf("--logo %s: %s", "--logo %s: %s", path, err)
	}
	return logo, nil
}

// checkTaxpayer returns a usageError with every violation of the authority's
// format.
func checkTaxpayer(t store.Taxpayer) error {
	err := taxpayer.Check(t)
	var problems fiscal.Problems
	if !errors.As(err, &problems) {
		return err
	}
	var wrong []lang.Message
	for _, p := range problems {
		name, _, _ := strings.Cut(p.Field, ".")
		if name == "phones" {
			name = "phone"
		}
		wrong = append(wrong, lang.Messagef("--%s: %s", "--%s: %s", strings.ReplaceAll(name, "_", "-"), p.Message))
	}
	return usageError{lang.Join(wrong, "; ")}
}

// issuerView is an issuer in JSON. It has the fields of ecf.Issuer in the same
// order, so that one converts to the other.
type issuerView struct {
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

// taxpayerView is a taxpayer in JSON. Missing is set by taxpayer show only.
type taxpayerView struct {
	ID string `json:"id"`
	issuerView
	ElectronicSince *string       `json:"electronic_since"`
	PageFormat      string        `json:"page_format"`
	Logo            bool          `json:"logo"`
	CreatedAt       string        `json:"created_at"`
	UpdatedAt       string        `json:"updated_at"`
	Missing         []missingView `json:"missing,omitzero"`

	SuspendedAt      string `json:"suspended_at,omitempty"`
	SuspensionReason string `json:"suspension_reason,omitempty"`
}

// printProfile writes the fields of the profile that are set.
func (v taxpayerView) printProfile(w io.Writer) {
	named := func(code string) string { return strings.TrimSpace(code + " " + ecf.RegionName(code)) }
	line(w, "address", v.Address)
	for _, f := range []struct{ name, value string }{
		{"trade name", v.TradeName}, {"branch", v.Branch}, {"municipality", named(v.Municipality)}, {"province", named(v.Province)},
		{"telephone", strings.Join(v.Phones, ", ")}, {"e-mail", v.Email}, {"web site", v.Website}, {"economic activity", v.EconomicActivity},
		{"type of income", v.IncomeType}, {"electronic since", textOf(v.ElectronicSince)}, {"page format", v.PageFormat},
	} {
		if f.value != "" {
			line(w, f.name, f.value)
		}
	}
}

// with adds whether the taxpayer is suspended.
func (v taxpayerView) with(suspended map[store.Subject]store.Suspension) taxpayerView {
	one := suspended[store.TaxpayerSubject(v.ID)]
	v.SuspendedAt, v.SuspensionReason = formatTime(one.At), one.Reason
	return v
}

// state returns suspended, or an empty text.
func (v taxpayerView) state() lang.Message {
	if v.SuspendedAt == "" {
		return lang.Message{}
	}
	return lang.Messagef("suspended", "suspendido")
}

// missingView is something that a taxpayer needs before it can issue documents of
// a type in an environment.
type missingView struct {
	Environment fiscal.Environment `json:"environment"`
	Type        fiscal.Type        `json:"type"`
	Code        string             `json:"code"`
}

func newTaxpayerView(t store.Taxpayer) taxpayerView {
	return taxpayerView{
		ID: t.ID, issuerView: issuerView(taxpayer.IssuerOf(t)), ElectronicSince: optional(t.ElectronicSince), PageFormat: cmp.Or(t.PageFormat, store.LetterFormat), Logo: len(t.Logo) > 0,
		CreatedAt: formatTime(t.CreatedAt), UpdatedAt: formatTime(t.UpdatedAt),
	}
}
