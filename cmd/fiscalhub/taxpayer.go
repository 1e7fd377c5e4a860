package main

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type taxpayerCmd struct {
	Create taxpayerCreateCmd `cmd:"" help:"Create a taxpayer."`
	Update taxpayerUpdateCmd `cmd:"" help:"Change the given fields of a taxpayer."`
	List   taxpayerListCmd   `cmd:"" help:"List the taxpayers."`
	Show   taxpayerShowCmd   `cmd:"" help:"Show a taxpayer, and what is missing before it can issue."`

	Suspend taxpayerSuspensionCmd `cmd:"" help:"Refuse the requests of a taxpayer until it is resumed. Documents that were acknowledged go on."`
	Resume  taxpayerSuspensionCmd `cmd:"" help:"End the suspension of a taxpayer."`
}

type taxpayerCreateCmd struct {
	RNC       string `name:"rnc" required:"" help:"RNC (9 digits) or cédula (11 digits)."`
	LegalName string `required:"" help:"Legal name." placeholder:"NAME"`
	profile
}

// Run creates a taxpayer.
func (c taxpayerCreateCmd) Run(t *terminal) error {
	made := store.Taxpayer{ID: store.NewID(), IncomeType: "01", Phones: []string{}}
	// A mistake in a flag must not create a database.
	if err := apply(&made, &c.RNC, &c.LegalName, c.profile, time.Time{}); err != nil {
		return err
	}
	t.mayCreate = true
	return t.withStore(func(s *store.Store) error {
		made.CreatedAt = s.Now()
		made.UpdatedAt = made.CreatedAt
		if err := warnOfRNC(t, s, made); err != nil {
			return err
		}
		err := s.Update(t.ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(t.ctx, made) })
		if err != nil {
			return err
		}
		return t.answer(newTaxpayerView(made), func(w io.Writer) { line(w, made.ID) })
	})
}

// warnOfRNC warns when the check digit of an RNC is wrong, and when another taxpayer has
// the same RNC. Both can be right, but are rare.
func warnOfRNC(t *terminal, s *store.Store, one store.Taxpayer) error {
	if !fiscal.CheckDigitHolds(one.RNC) {
		t.warn(lang.Messagef("the check digit of the RNC %s is wrong; compare it with the registration",
			"el dígito verificador del RNC %s no es correcto; compárelo con el registro", one.RNC))
	}
	all, err := s.Taxpayers(t.ctx)
	for _, other := range all {
		if other.RNC == one.RNC && other.ID != one.ID {
			t.warn(lang.Messagef("the taxpayer %s has the RNC %s too; both share the numbers of that RNC",
				"el contribuyente %s también tiene el RNC %s; ambos comparten las secuencias de ese RNC", other.ID, one.RNC))
		}
	}
	return err
}

type taxpayerUpdateCmd struct {
	ID        string  `arg:"" help:"Id of the taxpayer."`
	RNC       *string `name:"rnc" help:"RNC (9 digits) or cédula (11 digits)."`
	LegalName *string `help:"Legal name." placeholder:"NAME"`
	profile
}

// Run changes the fields of a taxpayer whose flags are given.
func (c taxpayerUpdateCmd) Run(t *terminal) error {
	if c.RNC == nil && c.LegalName == nil && reflect.DeepEqual(c.profile, profile{}) {
		return wrongUsage("name the fields to change, for example --address TEXT; see fiscalhub taxpayer update --help",
			"indique los campos que cambian, por ejemplo --address TEXTO; vea fiscalhub taxpayer update --help")
	}
	return t.withStore(func(s *store.Store) error {
		var changed store.Taxpayer
		err := s.Update(t.ctx, func(tx *store.Tx) (err error) {
			if changed, err = tx.LockedTaxpayer(t.ctx, c.ID); err != nil {
				return err
			}
			if err := apply(&changed, c.RNC, c.LegalName, c.profile, s.Now()); err != nil {
				return err
			}
			return tx.UpdateTaxpayer(t.ctx, changed)
		})
		if errors.Is(err, store.ErrRNCHasRanges) {
			return lang.Errorf("--rnc: the taxpayer has number ranges of its RNC; create another taxpayer for the RNC %s",
				"--rnc: el contribuyente tiene rangos de su RNC; cree otro contribuyente para el RNC %s", changed.RNC)
		}
		if err != nil {
			return missing(err, "taxpayer", c.ID)
		}
		if c.RNC != nil {
			if err := warnOfRNC(t, s, changed); err != nil {
				return err
			}
		}
		return t.answer(newTaxpayerView(changed), func(w io.Writer) { line(w, changed.ID) })
	})
}

type taxpayerListCmd struct{}

// Run lists the taxpayers.
func (taxpayerListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Taxpayers(t.ctx)
		if err != nil {
			return err
		}
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		views := mapEach(all, func(one store.Taxpayer) taxpayerView { return newTaxpayerView(one).with(suspended) })
		b := newTable("TAXPAYER", "RNC", "LEGAL NAME", "STATE")
		for _, v := range views {
			b.add(v.ID, v.RNC, v.LegalName, v.state().In(t.language))
		}
		return t.list(views, b)
	})
}

type taxpayerShowCmd struct {
	ID string `arg:"" help:"Id of the taxpayer."`
}

// Run shows a taxpayer and what is missing before it can issue.
func (c taxpayerShowCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		found, err := s.Taxpayer(t.ctx, c.ID)
		if err != nil {
			return missing(err, "taxpayer", c.ID)
		}
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		v := newTaxpayerView(found).with(suspended)
		if v.Missing, err = missingToIssue(t, s, found.ID, suspended); err != nil {
			return err
		}
		return t.answer(v, func(w io.Writer) {
			line(w, "id", v.ID)
			line(w, "rnc", v.RNC)
			line(w, "legal name", v.LegalName)
			v.printProfile(w)
			line(w, "created", v.CreatedAt)
			if v.SuspendedAt != "" {
				line(w, "suspended", v.SuspendedAt, v.SuspensionReason)
			}
			for _, m := range v.Missing {
				line(w, "missing", string(m.Environment), string(m.Type), m.Code)
			}
			for _, command := range nextCommands(v, suspended) {
				line(w, "next", command+t.databaseFlags())
			}
		})
	})
}

// missingToIssue returns what a taxpayer needs before it can issue, for each
// environment and type. In a suspended environment that includes environment.disabled.
func missingToIssue(t *terminal, s *store.Store, taxpayerID string, suspended map[store.Subject]store.Suspension) ([]missingView, error) {
	views := []missingView{}
	for _, env := range []fiscal.Environment{fiscal.Sandbox, fiscal.Certification, fiscal.Production} {
		facts, err := pipeline.ReadFacts(t.ctx, s, store.Scope{Environment: env, TaxpayerID: taxpayerID})
		if err != nil {
			return nil, err
		}
		_, taxpayerIs := suspended[store.TaxpayerSubject(taxpayerID)]
		_, environmentIs := suspended[store.EnvironmentSubject(env)]
		for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
			if taxpayerIs || environmentIs {
				views = append(views, missingView{env, kind, "environment.disabled"})
			}
			for _, p := range facts.Missing(kind, s.Now()) {
				views = append(views, missingView{env, kind, p.Code})
			}
		}
	}
	return views, nil
}

// nextCommands returns the commands that give a taxpayer what it is missing, one for each
// environment.
func nextCommands(v taxpayerView, suspended map[store.Subject]store.Suspension) []string {
	var list []string
	for _, m := range v.Missing {
		command := "fiscalhub onboard --environment " + string(m.Environment) + " --rnc " + v.RNC
		switch m.Code {
		case "environment.disabled":
			command = "fiscalhub environment resume " + string(m.Environment)
			if _, ok := suspended[store.EnvironmentSubject(m.Environment)]; !ok {
				command = "fiscalhub taxpayer resume " + v.ID
			}
		case "sequence.fenced":
			command = "fiscalhub reconcile --taxpayer " + v.ID + " --environment " + string(m.Environment)
		case "taxpayer.profile_incomplete":
			command = "fiscalhub taxpayer update " + v.ID + " --address TEXT"
		}
		if !slices.Contains(list, command) {
			list = append(list, command)
		}
	}
	return list
}
