package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type auditCmd struct {
	List       auditListCmd       `cmd:"" help:"List the entries of the audit log, oldest first."`
	Verify     auditVerifyCmd     `cmd:"" help:"Check that no entry was changed, removed or inserted."`
	Checkpoint auditCheckpointCmd `cmd:"" help:"Write a signed statement of the newest entry, to be kept on another machine. A running server stores one in the database every 5 minutes."`
}

// auditPage is how many entries are read at a time.
const auditPage = 1000

// commandCaller returns who runs a command: the named actor, or the user and host of
// the operating system. The origin has the user and the host in any case, because everybody
// with a shell can name any actor. A session over SSH also shows where it comes from.
func commandCaller(actor string) audit.Caller {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := "uid-" + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	c := audit.Caller{Actor: actor, From: name + "@" + host}
	if actor == "" {
		c.Actor = c.From
	}
	if client, _, ok := strings.Cut(os.Getenv("SSH_CLIENT"), " "); ok {
		c.From += " from " + client
	}
	return c
}

// auditView is an entry in JSON.
type auditView struct {
	Seq         int64           `json:"seq"`
	At          string          `json:"at"`
	Actor       string          `json:"actor"`
	From        string          `json:"from"`
	Action      string          `json:"action"`
	Object      string          `json:"object"`
	Detail      string          `json:"detail"`
	Reason      string          `json:"reason,omitempty"`
	RequestID   string          `json:"request_id,omitempty"`
	Environment string          `json:"environment,omitempty"`
	TaxpayerID  string          `json:"taxpayer_id,omitempty"`
	Before      json.RawMessage `json:"before"`
	After       json.RawMessage `json:"after"`
}

func newAuditView(e audit.Entry) auditView {
	return auditView{
		Seq: e.Seq, At: formatTime(e.At), Actor: e.Caller.Actor, From: e.Caller.From, Action: e.Action, Object: e.Object,
		Detail: auditDetail(e), Reason: e.Caller.Reason, RequestID: e.Caller.RequestID,
		Environment: e.Environment, TaxpayerID: e.TaxpayerID, Before: rawOrNull(e.Before), After: rawOrNull(e.After),
	}
}

func rawOrNull(text string) json.RawMessage {
	if text == "" || !json.Valid([]byte(text)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(text)
}

// auditDetail describes a change in one line: the reason, then each field that has a
// value, with its earlier value when it had one.
func auditDetail(e audit.Entry) string {
	var before, after map[string]any
	_ = json.Unmarshal([]byte(e.Before), &before) // an entry that was tampered with has no fields
	_ = json.Unmarshal([]byte(e.After), &after)
	names := make([]string, 0, len(after))
	for name := range after {
		names = append(names, name)
	}
	sort.Strings(names)
	var parts []string
	if e.Caller.Reason != "" {
		parts = append(parts, e.Caller.Reason)
	}
	for _, name := range names {
		was, is := auditValue(before[name]), auditValue(after[name])
		switch {
		case was != "":
			parts = append(parts, name+": "+was+" → "+is)
		case is != "" && is != "0":
			parts = append(parts, name+": "+is)
		}
	}
	return strings.Join(parts, "; ")
}

func auditValue(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

type auditListCmd struct {
	Since  string `help:"Only entries from this instant on." placeholder:"RFC3339"`
	Object string `help:"Only entries about this object: credential:ID, or an id alone." placeholder:"OBJECT"`
}

// Run lists the entries that the flags choose. The shared flag --actor chooses entries
// here, because this command changes nothing. Its variable does not: it names the person
// for the commands that change something.
func (c auditListCmd) Run(t *terminal, parsed *kong.Context) error {
	f := store.AuditFilter{Object: c.Object}
	if slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "actor" }) {
		f.Actor = t.cli.Actor
	}
	if c.Since != "" {
		at, err := time.Parse(time.RFC3339, c.Since)
		if err != nil {
			return wrongUsage("--since must be an instant like 2027-12-31T23:59:59Z", "--since debe ser un instante como 2027-12-31T23:59:59Z")
		}
		f.Since = at
	}
	return t.withStore(func(s *store.Store) error {
		views := []auditView{}
		err := eachEntry(t, s, f, func(e audit.Entry) error {
			views = append(views, newAuditView(e))
			return nil
		})
		if err != nil {
			return err
		}
		b := newTable("TIME", "ACTOR", "ACTION", "OBJECT", "DETAIL")
		for _, v := range views {
			b.add(v.At, v.Actor, v.Action, v.Object, v.Detail)
		}
		return t.list(views, b)
	})
}

// eachEntry calls fn with every entry that the filter chooses, the oldest first.
func eachEntry(t *terminal, s *store.Store, f store.AuditFilter, fn func(audit.Entry) error) error {
	for after := int64(store.BeforeAudit); ; {
		page, err := s.AuditEntries(t.ctx, f, after, auditPage)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := fn(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(page) < auditPage {
			return nil
		}
	}
}

type auditVerifyCmd struct {
	Checkpoint string `help:"File of audit checkpoint. The log must contain everything that it states." placeholder:"FILE"`
}

// verifiedView is the result of a verification in JSON.
type verifiedView struct {
	Valid       bool   `json:"valid"`
	Entries     int64  `json:"entries"`
	Checkpoints int    `json:"checkpoints"`
	Entry       *int64 `json:"entry,omitempty"` // the first wrong one, which may have the number 0
	Problem     string `json:"problem,omitempty"`
}

// Run verifies the whole log. It exits with 1 and names the first wrong entry.
func (c auditVerifyCmd) Run(t *terminal) error {
	return t.withKeys(func(_ *store.Store, _ *seal.Keys, ring *access.Keyring) error {
		var kept []audit.Checkpoint
		if c.Checkpoint != "" {
			mark, err := readCheckpoint(c.Checkpoint)
			if err != nil {
				return err
			}
			kept = append(kept, mark)
		}
		return verifyLog(t, ring, kept)
	})
}

// verifyLog verifies all entries and prints the result. kept are the checkpoints from
// outside of the database.
func verifyLog(t *terminal, ring *access.Keyring, kept []audit.Checkpoint) error {
	last, checkpoints, err := ring.VerifyAudit(t.ctx, kept...)
	var broken *audit.BrokenError
	if err != nil && !errors.As(err, &broken) {
		return err
	}
	v := verifiedView{Valid: err == nil, Entries: last.Seq, Checkpoints: checkpoints}
	if broken != nil {
		v.Entry, v.Problem = &broken.Seq, broken.Problem.String()
	}
	if t.cli.JSON || broken == nil {
		printErr := t.confirm(v, lang.Messagef("The audit log is complete and unchanged: %d entries, %d checkpoints.",
			"El registro de auditoría está completo y sin cambios: %d entradas, %d puntos de control.", v.Entries, v.Checkpoints))
		return errors.Join(err, printErr)
	}
	return err
}

func readCheckpoint(path string) (p audit.Checkpoint, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), &p); err != nil {
		return p, lang.Errorf("%s is not a file of fiscalhub audit checkpoint: %s",
			"%s no es un archivo de fiscalhub audit checkpoint: %s", path, err)
	}
	return p, nil
}

type auditCheckpointCmd struct {
	Out string `required:"" help:"File to write." placeholder:"FILE"`
}

// Run signs the newest entry, stores the checkpoint in the database and writes it to a
// file.
func (c auditCheckpointCmd) Run(t *terminal) error {
	return t.withKeys(func(s *store.Store, _ *seal.Keys, ring *access.Keyring) error {
		head, _, err := ring.VerifyAudit(t.ctx)
		if err != nil {
			return lang.Errorf("no checkpoint is written: %s", "no se escribió ningún punto de control: %s", err)
		}
		mark := audit.NewCheckpoint(ring.Audit(), head, s.Now())
		if err := s.Update(t.ctx, func(tx *store.Tx) error { return tx.AddAuditCheckpoint(t.ctx, mark) }); err != nil {
			return err
		}
		text, err := json.MarshalIndent(mark, "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.Replace(c.Out, string(text)+"\n"); err != nil {
			return err
		}
		return t.confirm(mark, lang.Messagef("%s states %d entries. Keep it on another machine, and give it to audit verify --checkpoint.",
			"%s declara %d entradas. Guárdelo en otra máquina y entréguelo a audit verify --checkpoint.", c.Out, mark.Seq))
	})
}
