package main

import (
	"context"

	"github.com/alecthomas/kong"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// reasonFlag is the reason of a change, for the audit log.
type reasonFlag struct {
	Reason string `help:"Why, for the audit log." placeholder:"TEXT"`
}

// context returns a context whose changes have the reason.
func (f reasonFlag) context(ctx context.Context) context.Context {
	return audit.WithReason(ctx, f.Reason)
}

// suspensions reads what is suspended.
func suspensions(t *terminal, s *store.Store) (map[store.Subject]store.Suspension, error) {
	all, err := s.Suspensions(t.ctx)
	bySubject := make(map[store.Subject]store.Suspension, len(all))
	for _, one := range all {
		bySubject[one.Subject] = one
	}
	return bySubject, err
}

// suspensionChange is a change of a suspension, and the line that says that it is done.
type suspensionChange struct {
	change func(context.Context, *store.Tx, store.Suspension) error
	done   lang.Message
}

// suspensionOf returns the change that the command line asks for: suspend or resume.
func suspensionOf(parsed *kong.Context) suspensionChange {
	if parsed.Selected().Name == "suspend" {
		return suspensionChange{
			func(ctx context.Context, tx *store.Tx, s store.Suspension) error { return tx.Suspend(ctx, s) },
			lang.Messagef("suspended; every server answers its requests with 403 within 5 seconds",
				"suspendido; todos los servidores responden 403 a sus solicitudes en 5 segundos"),
		}
	}
	return suspensionChange{
		func(ctx context.Context, tx *store.Tx, s store.Suspension) error { return tx.Resume(ctx, s.Subject) },
		lang.Messagef("resumed; every server serves it again within 5 seconds", "reanudado; todos los servidores lo atienden otra vez en 5 segundos"),
	}
}

// apply makes the change for a subject.
func (c suspensionChange) apply(t *terminal, s *store.Store, f reasonFlag, subject store.Subject) error {
	ctx := f.context(t.ctx)
	return s.Update(ctx, func(tx *store.Tx) error {
		return c.change(ctx, tx, store.Suspension{Subject: subject, Reason: f.Reason, At: s.Now()})
	})
}

type taxpayerSuspensionCmd struct {
	ID string `arg:"" help:"Id of the taxpayer."`
	reasonFlag
}

// Run suspends or resumes a taxpayer, and answers the taxpayer.
func (c taxpayerSuspensionCmd) Run(t *terminal, parsed *kong.Context) error {
	change := suspensionOf(parsed)
	return t.withStore(func(s *store.Store) error {
		if err := change.apply(t, s, c.reasonFlag, store.TaxpayerSubject(c.ID)); err != nil {
			return missing(err, "taxpayer", c.ID)
		}
		found, err := s.Taxpayer(t.ctx, c.ID)
		if err != nil {
			return err
		}
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		return t.confirm(newTaxpayerView(found).with(suspended), change.done)
	})
}

type credentialSuspensionCmd struct {
	ID string `arg:"" help:"Id of the credential."`
	reasonFlag
}

// Run suspends or resumes a credential, and answers the credential.
func (c credentialSuspensionCmd) Run(t *terminal, parsed *kong.Context) error {
	change := suspensionOf(parsed)
	return t.withStore(func(s *store.Store) error {
		found, err := s.Credential(t.ctx, c.ID)
		if err != nil {
			return missing(err, "credential", c.ID)
		}
		if !found.RevokedAt.IsZero() {
			return lang.Errorf("the credential is revoked; it never works again. Create another one with fiscalhub credential create",
				"la credencial está revocada; no funcionará más. Cree otra con fiscalhub credential create")
		}
		if err := change.apply(t, s, c.reasonFlag, store.CredentialSubject(c.ID)); err != nil {
			return err
		}
		if found, err = s.Credential(t.ctx, c.ID); err != nil {
			return err
		}
		return t.confirm(newCredentialView(found), change.done)
	})
}

type environmentCmd struct {
	Suspend environmentSuspensionCmd `cmd:"" help:"Refuse the requests of all credentials of an environment until it is resumed. Documents that were acknowledged go on."`
	Resume  environmentSuspensionCmd `cmd:"" help:"End the suspension of an environment."`
	List    environmentListCmd       `cmd:"" help:"List the environments, and which are suspended."`
}

// environmentView is an environment in JSON.
type environmentView struct {
	Environment fiscal.Environment `json:"environment"`
	SuspendedAt *string            `json:"suspended_at"`
	Reason      string             `json:"reason"`
}

func newEnvironmentView(env fiscal.Environment, suspended map[store.Subject]store.Suspension) environmentView {
	one := suspended[store.EnvironmentSubject(env)]
	return environmentView{env, optionalTime(one.At), one.Reason}
}

type environmentSuspensionCmd struct {
	Name string `arg:"" help:"sandbox, certification or production." enum:"sandbox,certification,production"`
	reasonFlag
}

// Run suspends or resumes an environment, and answers the environment.
func (c environmentSuspensionCmd) Run(t *terminal, parsed *kong.Context) error {
	change := suspensionOf(parsed)
	env := fiscal.Environment(c.Name)
	return t.withStore(func(s *store.Store) error {
		if err := change.apply(t, s, c.reasonFlag, store.EnvironmentSubject(env)); err != nil {
			return err
		}
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		return t.confirm(newEnvironmentView(env, suspended), change.done)
	})
}

type environmentListCmd struct{}

// Run lists the environments.
func (environmentListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		views := mapEach([]fiscal.Environment{fiscal.Sandbox, fiscal.Certification, fiscal.Production},
			func(env fiscal.Environment) environmentView { return newEnvironmentView(env, suspended) })
		b := newTable("ENVIRONMENT", "STATE", "REASON")
		for _, v := range views {
			state := lang.Messagef("in use", "en uso")
			if v.SuspendedAt != nil {
				state = lang.Messagef("suspended since %s", "suspendido desde %s", *v.SuspendedAt)
			}
			b.add(string(v.Environment), state.In(t.language), v.Reason)
		}
		return t.list(views, b)
	})
}
