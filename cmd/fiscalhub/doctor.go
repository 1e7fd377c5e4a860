package main

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type doctorCmd struct {
	Environment string `help:"Environment that the server serves: sandbox, certification or production." enum:"sandbox,certification,production" default:"sandbox"`
	MinFree     string `help:"Free space on the disk below which the check fails (default 512MiB)." default:"512MiB" placeholder:"SIZE"`
	tlsFlags
	liveFlags
}

// Run checks what a server with the same flags depends on, and prints a finding for each
// check. It fails when a check fails; a warning is no failure. It changes nothing: no file,
// no row, no mode of a file.
func (c doctorCmd) Run(t *terminal) error {
	free, err := capacity.ParseSize(c.MinFree)
	if err != nil {
		return usageOf("min-free", err)
	}
	env := fiscal.Environment(c.Environment)
	if err := c.check(env); err != nil {
		return err
	}
	d := &doctor{t: t, flags: c.liveFlags, tls: c.tlsFlags, env: env, minFree: free, keys: t.masterKeys(), now: time.Now}
	defer d.close()
	var found []finding
	for _, check := range d.checks() {
		ctx, cancel := context.WithTimeout(t.ctx, checkTime)
		for _, o := range check.run(ctx) {
			found = append(found, finding{check.group, check.name, o})
		}
		cancel()
	}
	return t.printFindings(found)
}

// checkTime limits each check. A check waits for the database or for the tax authority.
const checkTime = 15 * time.Second

// doctor makes the checks. Some of them use what an earlier one has opened.
type doctor struct {
	t       *terminal
	flags   liveFlags
	tls     tlsFlags
	env     fiscal.Environment
	minFree int64 // bytes
	keys    *seal.Keys
	now     func() time.Time

	store     *store.Store    // nil: the database cannot be opened
	ring      *access.Keyring // nil: there are no keys, or they cannot be read
	authority *dgii.Client    // nil: it does not answer, or the environment needs none
}

// doctorCheck is one check. It returns one outcome or more.
type doctorCheck struct {
	group, name string
	run         func(context.Context) []checkOutcome
}

// checks returns the checks in their order. The files are first, before the database is
// opened.
func (d *doctor) checks() []doctorCheck {
	return []doctorCheck{
		{"Files", "folders", d.folders},
		{"Files", "permissions", d.permissions},
		{"Files", "disk space", d.diskSpace},
		{"Files", "witness", d.withLive(d.witness)},
		{"Files", "TLS certificate", d.tlsCertificate},
		{"Database", "connection", d.connect},
		{"Database", "settings", d.withStore(d.settings)},
		{"Database", "role", d.withStore(d.role)},
		{"Keys", "master key", d.withStore(d.masterKey)},
		{"Keys", "credentials", d.withRing(d.credentials)},
		{"Keys", "audit log", d.withRing(d.auditLog)},
		{"Tax authority", "trusted roots", d.withLive(d.trustedRoots)},
		{"Tax authority", "reachability", d.withLive(d.reachability)},
		{"Clock", "time zone", d.zone},
		{"Clock", "database", d.withStore(d.databaseClock)},
		{"Clock", "tax authority", d.withLive(d.authorityClock)},
		{"Taxpayers", "certificates", d.withLive(d.withRing(d.certificates))},
		{"Taxpayers", "number ranges", d.withLive(d.withStore(d.numberRanges))},
	}
}

// withStore returns a check that needs the database.
func (d *doctor) withStore(check func(context.Context) []checkOutcome) func(context.Context) []checkOutcome {
	return func(ctx context.Context) []checkOutcome {
		if d.store == nil {
			return warned(lang.Messagef("Not checked, because the database cannot be opened.",
				"No se revisó, porque la base de datos no se puede abrir."), lang.Messagef("First do what the check of the connection says.",
				"Haga primero lo que dice la revisión de la conexión."))
		}
		return check(ctx)
	}
}

// withRing returns a check that needs the keys of the service.
func (d *doctor) withRing(check func(context.Context) []checkOutcome) func(context.Context) []checkOutcome {
	return d.withStore(func(ctx context.Context) []checkOutcome {
		if d.ring == nil {
			return warned(lang.Messagef("Not checked, because the keys of the service cannot be read.",
				"No se revisó, porque las claves del servicio no se pueden leer."), lang.Messagef("First do what the check of the master key says.",
				"Haga primero lo que dice la revisión de la clave maestra."))
		}
		return check(ctx)
	})
}

// withLive returns a check of an environment that calls the tax authority.
func (d *doctor) withLive(check func(context.Context) []checkOutcome) func(context.Context) []checkOutcome {
	return func(ctx context.Context) []checkOutcome {
		if d.env == fiscal.Sandbox {
			return passed(lang.Messagef("The sandbox does not need this.",
				"El sandbox no lo necesita."))
		}
		return check(ctx)
	}
}

func (d *doctor) close() {
	if d.authority != nil {
		d.authority.Close()
	}
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.t.warn(lang.Messagef("the database was not closed: %s",
				"la base de datos no se cerró: %s", err))
		}
	}
}

// denied returns the outcome of a check that the database role may not make.
func denied(err error) []checkOutcome {
	return failed(lang.Messagef("The role may not read what this check needs: %s.",
		"El rol no puede leer lo que esta revisión necesita: %s.", err),
		lang.Messagef("Run this command with the database role of the service (fiscalhub_service).",
			"Ejecute este comando con el rol de base de datos del servicio (fiscalhub_service)."))
}
