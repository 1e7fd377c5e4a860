package main

import (
	"context"
	"io"

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

// suspend suspends a subject.
func (t *terminal) suspend(s *store.Store, subject store.Subject, f reasonFlag) error {
	ctx := f.context(t.ctx)
	return s.Update(ctx, func(tx *store.Tx) error {
		return tx.Suspend(ctx, store.Suspension{Subject: subject, Reason: f.Reason, At: s.Now()})
	})
}

// resume ends the suspension of a subject.
func (t *terminal) resume(s *store.Store, subject store.Subject, f reasonFlag) error {
	ctx := f.context(t.ctx)
	return s.Update(ctx, func(tx *store.Tx) error { return tx.Resume(ctx, subject) })
}

type taxpayerSuspendCmd struct {
	ID string `arg:"" help:"Id of the taxpayer."`
	reasonFlag
}

// Run suspends a taxpayer.
func (c taxpayerSuspendCmd) Run(t *terminal) error {
	return t.changeTaxpayer(c.ID, suspendedLine(), func(s *store.Store, subject store.Subject) error {
		return t.suspend(s, subject, c.reasonFlag)
	})
}

type taxpayerResumeCmd struct {
	ID string `arg:"" help:"Id of the taxpayer."`
	reasonFlag
}

// Run ends the suspension of a taxpayer.
func (c taxpayerResumeCmd) Run(t *terminal) error {
	return t.changeTaxpayer(c.ID, resumedLine(), func(s *store.Store, subject store.Subject) error {
		return t.resume(s, subject, c.reasonFlag)
	})
}

// changeTaxpayer makes a change, and answers the taxpayer.
func (t *terminal) changeTaxpayer(id string, done lang.Message, change func(*store.Store, store.Subject) error) error {
	return t.withStore(func(s *store.Store) error {
		if err := change(s, store.TaxpayerSubject(id)); err != nil {
			return missing(err, "taxpayer", id)
		}
		found, err := s.Taxpayer(t.ctx, id)
		if err != nil {
			return err
		}
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		return t.answer(newTaxpayerView(found).with(suspended), func(w io.Writer) { say(w, done) })
	})
}

type credentialSuspendCmd struct {
	ID string `arg:"" help:"Id of the credential."`
	reasonFlag
}

// Run suspends a credential.
func (c credentialSuspendCmd) Run(t *terminal) error {
	return t.changeCredential(c.ID, suspendedLine(), func(s *store.Store, subject store.Subject) error {
		return t.suspend(s, subject, c.reasonFlag)
	})
}

type credentialResumeCmd struct {
	ID string `arg:"" help:"Id of the credential."`
	reasonFlag
}

// Run ends the suspension of a credential.
func (c credentialResumeCmd) Run(t *terminal) error {
	return t.changeCredential(c.ID, resumedLine(), func(s *store.Store, subject store.Subject) error {
		return t.resume(s, subject, c.reasonFlag)
	})
}

// changeCredential makes a change, and answers the credential.
func (t *terminal) changeCredential(id string, done lang.Message, change func(*store.Store, store.Subject) error) error {
	return t.withStore(func(s *store.Store) error {
		if err := change(s, store.CredentialSubject(id)); err != nil {
			return missing(err, "credential", id)
		}
		found, err := s.Credential(t.ctx, id)
		if err != nil {
			return err
		}
		return t.answer(newCredentialView(found), func(w io.Writer) { say(w, done) })
	})
}

type environmentCmd struct {
	Suspend environmentSuspendCmd `cmd:"" help:"Refuse the requests of all credentials of an environment until it is resumed. Documents that were acknowledged go on."`
	Resume  environmentResumeCmd  `cmd:"" help:"End the suspension of an environment."`
	List    environmentListCmd    `cmd:"" help:"List the environments, and which are suspended."`
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

type environmentSuspendCmd struct {
	Name string `arg:"" help:"sandbox, certification or production." enum:"sandbox,certification,production"`
	reasonFlag
}

// Run suspends an environment.
func (c environmentSuspendCmd) Run(t *terminal) error {
	return t.changeEnvironment(c.Name, suspendedLine(), func(s *store.Store, subject store.Subject) error {
		return t.suspend(s, subject, c.reasonFlag)
	})
}

type environmentResumeCmd struct {
	Name string `arg:"" help:"sandbox, certification or production." enum:"sandbox,certification,production"`
	reasonFlag
}

// Run ends the suspension of an environment.
func (c environmentResumeCmd) Run(t *terminal) error {
	return t.changeEnvironment(c.Name, resumedLine(), func(s *store.Store, subject store.Subject) error {
		return t.resume(s, subject, c.reasonFlag)
	})
}

// changeEnvironment makes a change, and answers the environment.
func (t *terminal) changeEnvironment(name string, done lang.Message, change func(*store.Store, store.Subject) error) error {
	env := fiscal.Environment(name)
	return t.withStore(func(s *store.Store) error {
		if err := change(s, store.EnvironmentSubject(env)); err != nil {
			return err
		}
		suspended, err := suspensions(t, s)
		if err != nil {
			return err
		}
		return t.answer(newEnvironmentView(env, suspended), func(w io.Writer) { say(w, done) })
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
			state := "in use"
			if v.SuspendedAt != nil {
				state = "suspended since " + *v.SuspendedAt
			}
			b.add(string(v.Environment), state, v.Reason)
		}
		return t.list(views, b)
	})
}

func suspendedLine() lang.Message {
	return lang.Messagef("suspended; every server answers its requests with 403 within 5 seconds",
		"suspendido; todos los servidores responden 403 a sus solicitudes en 5 segundos")
}

func resumedLine() lang.Message {
	return lang.Messagef("resumed; every server serves it again within 5 seconds",
		"reanudado; todos los servidores lo atienden otra vez en 5 segundos")
}
