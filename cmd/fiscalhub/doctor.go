package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

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
	group, name lang.Message // at most 15 letters, the width of their column
	run         func(context.Context) []checkOutcome
}

// checks returns the checks in their order. The files are first, before the database is
// opened.
func (d *doctor) checks() []doctorCheck {
	files := lang.Messagef("Files", "Archivos")
	database := lang.Messagef("Database", "Base de datos")
	keys := lang.Messagef("Keys", "Claves")
	authority := lang.Messagef("Tax authority", "DGII")
	clock := lang.Messagef("Clock", "Reloj")
	taxpayers := lang.Messagef("Taxpayers", "Contribuyentes")
	return []doctorCheck{
		{files, lang.Messagef("folders", "carpetas"), d.folders},
		{files, lang.Messagef("permissions", "permisos"), d.permissions},
		{files, lang.Messagef("disk space", "disco"), d.diskSpace},
		{files, lang.Literal("witness"), d.withLive(d.witness)},
		{files, lang.Messagef("TLS certificate", "certificado TLS"), d.tlsCertificate},
		{database, lang.Messagef("connection", "conexión"), d.connect},
		{database, lang.Messagef("settings", "ajustes"), d.withStore(d.settings)},
		{database, lang.Messagef("role", "rol"), d.withStore(d.role)},
		{keys, lang.Messagef("master key", "clave maestra"), d.withStore(d.masterKey)},
		{keys, lang.Messagef("credentials", "credenciales"), d.withRing(d.credentials)},
		{keys, lang.Messagef("audit log", "auditoría"), d.withRing(d.auditLog)},
		{authority, lang.Messagef("trusted roots", "raíces"), d.withLive(d.trustedRoots)},
		{authority, lang.Messagef("reachability", "acceso"), d.withLive(d.reachability)},
		{clock, lang.Messagef("time zone", "zona horaria"), d.zone},
		{clock, lang.Messagef("database", "base de datos"), d.withStore(d.databaseClock)},
		{clock, lang.Messagef("tax authority", "DGII"), d.withLive(d.authorityClock)},
		{taxpayers, lang.Messagef("certificates", "certificados"), d.withLive(d.withRing(d.certificates))},
		{taxpayers, lang.Messagef("number ranges", "rangos"), d.withLive(d.withStore(d.numberRanges))},
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
			return passed(lang.Messagef("The sandbox does not need this.", "El sandbox no lo necesita."))
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
			d.t.warn(lang.Messagef("the database was not closed: %s", "la base de datos no se cerró: %s", err))
		}
	}
}

// denied returns the outcome of a check that the database role may not make.
func denied(err error) []checkOutcome {
	return failed(lang.Messagef("The role may not read what this check needs: %s.", "El rol no puede leer lo que esta revisión necesita: %s.", err),
		lang.Messagef("Run this command with the database role of the service (fiscalhub_service).",
			"Ejecute este comando con el rol de base de datos del servicio (fiscalhub_service)."))
}

// checkState says how a check ended.
type checkState string

const (
	statePassed  checkState = "ok"
	stateWarning checkState = "warning" // the service works, but an operator must act
	stateFailed  checkState = "failed"  // the service does not work, or is not safe
)

// checkOutcome is what a check has found.
type checkOutcome struct {
	state  checkState
	found  lang.Message // a sentence
	action lang.Message // what to do; empty when there is nothing to do
}

func passed(found lang.Message) []checkOutcome {
	return []checkOutcome{{statePassed, found, lang.Message{}}}
}

func warned(found, action lang.Message) []checkOutcome {
	return []checkOutcome{{stateWarning, found, action}}
}

func failed(found, action lang.Message) []checkOutcome {
	return []checkOutcome{{stateFailed, found, action}}
}

// unread is the outcome of a check that cannot read the database.
func unread(found lang.Message) []checkOutcome {
	return failed(found, lang.Messagef("Check the database.", "Revise la base de datos."))
}

func orPassed(o []checkOutcome, found lang.Message) []checkOutcome {
	if len(o) == 0 {
		return passed(found)
	}
	return o
}

// finding is an outcome with the name of its check.
type finding struct {
	group, name lang.Message
	checkOutcome
}

// findingView is a finding in JSON. Detail is complete: it also has the action.
type findingView struct {
	Group  string     `json:"group"`
	Name   string     `json:"name"`
	State  checkState `json:"state"`
	OK     bool       `json:"ok"` // false only for failed
	Detail string     `json:"detail"`
	Action string     `json:"action"`
}

// printFindings prints the findings, and fails when one of them is a failure.
func (t *terminal) printFindings(found []finding) error {
	view := struct {
		Checks []findingView `json:"checks"`
	}{Checks: make([]findingView, len(found))}
	count := map[checkState]int{}
	for i, f := range found {
		count[f.state]++
		view.Checks[i] = findingView{f.group.String(), f.name.String(), f.state, f.state != stateFailed, strings.TrimSpace(f.found.String() + " " + f.action.String()), f.action.String()}
	}
	summary := lang.Messagef("%d ok, %d with a warning, %d failed", "%d bien, %d con aviso, %d con falla",
		count[statePassed], count[stateWarning], count[stateFailed]).In(t.language)
	err := t.answer(view, func(w io.Writer) {
		group := ""
		for _, f := range found {
			if name := f.group.In(t.language); name != group {
				if group != "" {
					_, _ = fmt.Fprintln(w)
				}
				group = name
				_, _ = fmt.Fprintln(w, group)
			}
			f.print(w)
		}
		_, _ = fmt.Fprintf(w, "\n%s\n", summary)
	})
	if err == nil && count[stateFailed] > 0 {
		err = lang.Errorf("%d of %d checks failed: do what the lines marked FAILED say",
			"%d de %d revisiones fallaron: haga lo que dicen las líneas marcadas FALLÓ", count[stateFailed], len(found))
	}
	return err
}

// plural returns a number with its noun.
func plural(n int, one, many lang.Message) lang.Message {
	if n == 1 {
		many = one
	}
	return lang.Messagef("%d %s", "%d %s", n, many)
}

// terminalWidth is how wide the findings are printed. findingIndent is where their text
// begins.
const (
	terminalWidth = 80
	findingIndent = 28
)

// mark returns the state as the findings show it.
func (s checkState) mark() lang.Message {
	switch s {
	case stateFailed:
		return lang.Messagef("FAILED", "FALLÓ")
	case stateWarning:
		return lang.Messagef("warning", "aviso")
	default:
		return lang.Messagef("ok", "bien")
	}
}

// print writes a finding in columns: the state, the name, and the text.
func (f finding) print(w io.Writer) {
	head := fmt.Sprintf("  %-7s  %-15s  ", f.state.mark().In(languageOfWriter(w)), f.name.In(languageOfWriter(w)))
	for _, text := range []string{f.found.In(languageOfWriter(w)), f.action.In(languageOfWriter(w))} {
		if text == "" {
			continue
		}
		for _, part := range wrapText(printable(text), terminalWidth-findingIndent) {
			_, _ = fmt.Fprintf(w, "%-*s%s\n", findingIndent, head, part)
			head = ""
		}
		head = ""
	}
}

// wrapText splits a text into lines of at most width characters, between words. A longer
// word has a line of its own.
func wrapText(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
