package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type taxpayerCmd struct {
	Create taxpayerCreateCmd `cmd:"" help:"Create a taxpayer."`
	Update taxpayerUpdateCmd `cmd:"" help:"Change what is given of a taxpayer."`
	List   taxpayerListCmd   `cmd:"" help:"List the taxpayers."`
	Show   taxpayerShowCmd   `cmd:"" help:"Show a taxpayer, and what it lacks to issue."`
}

// profile is what may be said of a taxpayer. What is nil is not said.
type profile struct {
	TradeName        *string  `help:"Commercial name." placeholder:"NAME"`
	Branch           *string  `help:"Branch (sucursal)." placeholder:"NAME"`
	Address          *string  `help:"Address as printed on the documents." placeholder:"TEXT"`
	Municipality     *string  `help:"Code of the municipality, six digits." placeholder:"CODE"`
	Province         *string  `help:"Code of the province, six digits." placeholder:"CODE"`
	Phone            []string `help:"Telephone, like 809-555-0100; may be repeated up to 3 times." placeholder:"NUMBER"`
	Email            *string  `help:"E-mail address." placeholder:"ADDRESS"`
	Website          *string  `help:"Web site." placeholder:"URL"`
	EconomicActivity *string  `help:"Economic activity." placeholder:"TEXT"`
	IncomeType       *string  `help:"Kind of income, 01 to 06 (by default 01, operating income)." placeholder:"CODE"`
	ElectronicSince  *string  `help:"Day from which the taxpayer issues electronically; older invoices are refused." placeholder:"DATE"`
	Logo             string   `help:"PNG or JPEG file, at most 1 MiB." placeholder:"FILE" type:"existingfile"`
}

type taxpayerCreateCmd struct {
	RNC       string `name:"rnc" required:"" help:"RNC (9 digits) or cédula (11 digits)."`
	LegalName string `required:"" help:"Legal name." placeholder:"NAME"`
	profile
}

// Run creates a taxpayer.
func (c taxpayerCreateCmd) Run(t *terminal) error {
	now := time.Now()
	made := store.Taxpayer{ID: store.NewID(), IncomeType: "01", Phones: []string{}, CreatedAt: now}
	if err := apply(&made, &c.RNC, &c.LegalName, c.profile, now); err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		err := s.Update(t.ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(t.ctx, made) })
		if err != nil {
			return err
		}
		return t.answer(newTaxpayerView(made), func(w io.Writer) { line(w, made.ID) })
	})
}

type taxpayerUpdateCmd struct {
	ID        string  `arg:"" help:"Id of the taxpayer."`
	RNC       *string `name:"rnc" help:"RNC (9 digits) or cédula (11 digits)."`
	LegalName *string `help:"Legal name." placeholder:"NAME"`
	profile
}

// Run changes a taxpayer.
func (c taxpayerUpdateCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		var changed store.Taxpayer
		err := s.Update(t.ctx, func(tx *store.Tx) (err error) {
			if changed, err = tx.Taxpayer(t.ctx, c.ID); err != nil {
				return err
			}
			if err := apply(&changed, c.RNC, c.LegalName, c.profile, time.Now()); err != nil {
				return err
			}
			return tx.UpdateTaxpayer(t.ctx, changed)
		})
		if err != nil {
			return missing(err, "taxpayer", c.ID)
		}
		return t.answer(newTaxpayerView(changed), func(w io.Writer) { line(w, changed.ID) })
	})
}

// missing says which thing was not found.
func missing(err error, what, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s %s: see fiscalhub %s list", what, id, what)
	}
	return err
}

// apply puts what was said into a taxpayer, and checks it all.
func apply(to *store.Taxpayer, rnc, legalName *string, p profile, now time.Time) error {
	for _, f := range []struct {
		said  *string
		field *string
	}{
		{rnc, &to.RNC}, {legalName, &to.LegalName}, {p.TradeName, &to.TradeName}, {p.Branch, &to.Branch},
		{p.Address, &to.Address}, {p.Municipality, &to.Municipality}, {p.Province, &to.Province}, {p.Email, &to.Email},
		{p.Website, &to.Website}, {p.EconomicActivity, &to.EconomicActivity}, {p.IncomeType, &to.IncomeType},
		{p.ElectronicSince, &to.ElectronicSince},
	} {
		if f.said != nil {
			*f.field = strings.TrimSpace(*f.said)
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

const maxLogo = 1 << 20

func readLogo(path string) ([]byte, error) {
	logo, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	err = printed.CheckLogo(logo)
	if len(logo) == 0 || len(logo) > maxLogo || err != nil {
		return nil, fmt.Errorf("--logo %s: want a PNG or JPEG file of at most 1 MiB and 8 million pixels", path)
	}
	return logo, nil
}

// checkTaxpayer tells everything that is wrong, with the limits of the
// authority's format. The address may come later; without it nothing is issued.
func checkTaxpayer(t store.Taxpayer) error {
	var wrong []string
	var problems fiscal.Problems
	if err := live.IssuerOf(t).Check(); err != nil && !errors.As(err, &problems) {
		return err
	}
	for _, p := range problems {
		if p.Field == "address" && t.Address == "" {
			continue
		}
		name, _, _ := strings.Cut(p.Field, ".")
		wrong = append(wrong, "--"+strings.ReplaceAll(strings.TrimSuffix(name, "s"), "_", "-")+": "+p.Message)
	}
	if t.ElectronicSince != "" {
		if _, err := fiscal.ParseDate(t.ElectronicSince); err != nil {
			wrong = append(wrong, "--electronic-since: "+err.Error())
		}
	}
	if len(wrong) > 0 {
		return usageError(strings.Join(wrong, "; "))
	}
	return nil
}

// taxpayerView is a taxpayer in JSON.
type taxpayerView struct {
	ID               string        `json:"id"`
	RNC              string        `json:"rnc"`
	LegalName        string        `json:"legal_name"`
	TradeName        string        `json:"trade_name"`
	Branch           string        `json:"branch"`
	Address          string        `json:"address"`
	Municipality     string        `json:"municipality"`
	Province         string        `json:"province"`
	Phones           []string      `json:"phones"`
	Email            string        `json:"email"`
	Website          string        `json:"website"`
	EconomicActivity string        `json:"economic_activity"`
	IncomeType       string        `json:"income_type"`
	ElectronicSince  *string       `json:"electronic_since"`
	Logo             bool          `json:"logo"`
	CreatedAt        string        `json:"created_at"`
	UpdatedAt        string        `json:"updated_at"`
	Missing          []missingView `json:"missing,omitzero"`
}

type missingView struct {
	Environment fiscal.Environment `json:"environment"`
	Type        fiscal.Type        `json:"type"`
	Code        string             `json:"code"`
}

func newTaxpayerView(t store.Taxpayer) taxpayerView {
	v := taxpayerView{
		ID: t.ID, RNC: t.RNC, LegalName: t.LegalName, TradeName: t.TradeName, Branch: t.Branch, Address: t.Address,
		Municipality: t.Municipality, Province: t.Province, Phones: t.Phones, Email: t.Email, Website: t.Website,
		EconomicActivity: t.EconomicActivity, IncomeType: t.IncomeType, Logo: len(t.Logo) > 0,
		CreatedAt: moment(t.CreatedAt), UpdatedAt: moment(t.UpdatedAt),
	}
	if t.ElectronicSince != "" {
		v.ElectronicSince = &t.ElectronicSince
	}
	return v
}

type taxpayerListCmd struct{}

// Run lists taxpayers.
func (taxpayerListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Taxpayers(t.ctx)
		if err != nil {
			return err
		}
		views := make([]taxpayerView, len(all))
		for i, one := range all {
			views[i] = newTaxpayerView(one)
		}
		return t.answer(views, func(w io.Writer) {
			for _, v := range views {
				line(w, v.ID, v.RNC, v.LegalName)
			}
		})
	})
}

type taxpayerShowCmd struct {
	ID string `arg:"" help:"Id of the taxpayer."`
}

// Run shows a taxpayer and what it lacks.
func (c taxpayerShowCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		found, err := s.Taxpayer(t.ctx, c.ID)
		if err != nil {
			return missing(err, "taxpayer", c.ID)
		}
		v := newTaxpayerView(found)
		v.Missing = []missingView{}
		for _, env := range []fiscal.Environment{fiscal.Sandbox, fiscal.Certification, fiscal.Production} {
			facts, err := pipeline.ReadFacts(t.ctx, s, store.Scope{Environment: env, TaxpayerID: found.ID})
			if err != nil {
				return err
			}
			for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
				for _, p := range facts.Missing(kind, time.Now()) {
					v.Missing = append(v.Missing, missingView{env, kind, p.Code})
				}
			}
		}
		return t.answer(v, func(w io.Writer) {
			line(w, "id", v.ID)
			line(w, "rnc", v.RNC)
			line(w, "legal name", v.LegalName)
			line(w, "address", v.Address)
			line(w, "created", v.CreatedAt)
			for _, m := range v.Missing {
				line(w, "missing", string(m.Environment), string(m.Type), m.Code)
			}
		})
	})
}
