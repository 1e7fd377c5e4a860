package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type doctorCmd struct {
	Environment string `help:"Environment that the server serves: sandbox, certification or production." enum:"sandbox,certification,production" default:"sandbox"`
	liveFlags
}

// Run checks what a server with the same flags depends on. It fails when a check fails.
// It does not create a database or keys.
func (c doctorCmd) Run(t *terminal) error {
	d := doctor{t: t, flags: c.liveFlags, env: fiscal.Environment(c.Environment)}
	if err := c.check(d.env); err != nil {
		return err
	}
	defer d.close()
	var view checkView
	failed := 0
	for _, check := range d.checks() {
		detail, err := check.run()
		if err != nil {
			failed++
			detail = oneLine(err)
		}
		view.Checks = append(view.Checks, checkResult{check.name, err == nil, detail})
	}
	err := t.answer(view, func(w io.Writer) {
		for _, r := range view.Checks {
			mark := "ok"
			if !r.OK {
				mark = "FAILED"
			}
			line(w, mark, r.Name, r.Detail)
		}
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d checks failed", failed, len(view.Checks))
	}
	return err
}

// doctor makes the checks. Some of them use what an earlier one has opened.
type doctor struct {
	t     *terminal
	flags liveFlags
	env   fiscal.Environment

	store     *store.Store    // nil: the database cannot be opened
	ring      *access.Keyring // nil: there are no keys, or they cannot be read
	authority *dgii.Client    // nil: it does not answer, or the environment needs none
}

// doctorCheck is one check. It returns what it has found, or an error that says what to do.
type doctorCheck struct {
	name string
	run  func() (string, error)
}

func (d *doctor) checks() []doctorCheck {
	return []doctorCheck{
		{"permissions", d.permissions},
		{"disk space", d.diskSpace},
		{"database", d.database},
		{"master key", d.masterKey},
		{"credentials", d.withRing(d.credentials)},
		{"audit log", d.withRing(d.auditLog)},
		{"trusted roots", d.trustedRoots},
		{"tax authority", d.reachability},
		{"clock", d.clock},
		{"certificates", d.withLive(d.certificates)},
		{"number ranges", d.withLive(d.numberRanges)},
	}
}

// withRing returns a check that needs the keys of the service.
func (d *doctor) withRing(check func() (string, error)) func() (string, error) {
	return func() (string, error) {
		switch {
		case d.store == nil:
			return "", errNoDatabase
		case d.ring == nil:
			return "not checked: there are no keys, or they cannot be read", nil
		}
		return check()
	}
}

// withLive returns a check of an environment that issues documents.
func (d *doctor) withLive(check func() (string, error)) func() (string, error) {
	return func() (string, error) {
		switch {
		case d.env == fiscal.Sandbox:
			return "the sandbox needs none", nil
		case d.store == nil:
			return "", errNoDatabase
		}
		return check()
	}
}

func (d *doctor) close() {
	if d.authority != nil {
		d.authority.Close()
	}
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.t.warn("the database was not closed: %s", oneLine(err))
		}
	}
}

// doctorTime is how long a check waits for the tax authority.
const doctorTime = 15 * time.Second

func (d *doctor) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.t.ctx, doctorTime)
}
