package main

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/witness"
)

type reconcileCmd struct {
	Taxpayer    string   `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string   `required:"" help:"certification or production; the sandbox uses no numbers." placeholder:"E"`
	SentUpTo    []string `help:"Highest number of a range that anybody may have seen: printed, answered by the API, or sent. Needed when the witness was lost; like E310000000120, or E310000000000 for none; repeat it for each type and range." placeholder:"ENCF"`
	liveFlags
}

// releasedView is a released range in JSON. The numbers From to To are not used
// again.
type releasedView struct {
	RangeID string      `json:"sequence_id"`
	Type    fiscal.Type `json:"type"`
	From    int64       `json:"from"`
	To      int64       `json:"to"`
	Found   int64       `json:"found"`
	Absent  int64       `json:"absent"`
	Unknown int64       `json:"unknown"`
	Next    int64       `json:"next"`
}

// Run asks the authority about the doubtful numbers of the taxpayer's fenced
// ranges, skips those numbers and releases the ranges.
func (c reconcileCmd) Run(t *terminal) error {
	env, err := liveEnvironment(c.Environment, lang.Messagef("the sandbox uses no numbers", "el sandbox no usa secuencias"))
	if err != nil {
		return err
	}
	if err := c.check(env); err != nil {
		return err
	}
	var stated []fence.Stated
	for _, text := range c.SentUpTo {
		one, ok := fence.ParseStated(text)
		if !ok {
			return wrongUsage("--sent-up-to must be a number like E310000000120", "--sent-up-to debe ser una secuencia como E310000000120")
		}
		stated = append(stated, one)
	}
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) (err error) {
		if _, err := s.Taxpayer(t.ctx, c.Taxpayer); err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		progress := t.startProgress(lang.Messagef("reconcile", "conciliación"), lang.Messagef("numbers", "secuencias"))
		defer progress.end(t)
		log := t.log(slog.LevelWarn)
		options, err := c.client(env, s.Now, log)
		if err != nil {
			return err
		}
		if options.Roots, err = c.roots(); err != nil {
			return err
		}
		client, err := dgii.New(options)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := c.findWitness(t, env, s); err != nil {
			return err
		}
		path, err := c.makeWitness(t, env, log)
		var opened *fence.Fence // nil: it fences nothing
		if err == nil && path != "" {
			opened, err = fence.Open(t.ctx, fence.Options{Store: s, Env: env, Path: path, Now: s.Now, Log: log, Pace: wake.Pace(c.Pace)})
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		releaser := fence.Releaser{
			Store: s, Authority: client, Identities: access.NewCertificates(s, keys, s.Now), Fence: opened, Now: s.Now, Stated: stated,
			Progress: func(r store.NumberRange, answered, total int64) {
				progress.about(lang.Messagef("reconcile type %s", "conciliación del tipo %s", r.Type), answered, total)
			},
		}
		released, err := releaser.Release(t.ctx, store.Scope{Environment: env, TaxpayerID: c.Taxpayer})
		progress.end(t)
		if err != nil {
			for _, r := range released {
				t.progress(lang.Messagef("type %s: released; %s", "tipo %s: liberado; %s", r.Range.Type, summary(r)))
			}
			return t.interrupted(err, lang.Messagef("%d ranges are released, and the answers about other numbers are stored; run the command again to continue with them",
				"%d rangos están liberados, y las respuestas sobre otras secuencias están guardadas; ejecute el comando otra vez para continuar", len(released)))
		}
		return t.answerReleased(released)
	})
}

// findWitness fails when a database that has issued numbers has not its witness in the
// folder, and the operator states no number: the folder may be the wrong one. A new witness
// would fence every range, and the witness of another database would be taken away from it. Nodes
// of a server have witnesses of their own, and a new one may have none.
func (c reconcileCmd) findWitness(t *terminal, env fiscal.Environment, s *store.Store) error {
	if c.NoWitness || len(c.SentUpTo) > 0 {
		return nil
	}
	issued, err := s.HasIssued(t.ctx, env)
	if err != nil || !issued {
		return err
	}
	database, err := s.DatabaseID(t.ctx)
	if err != nil {
		return err
	}
	path := c.witnessFile(t, env)
	file, err := witness.Open(path, string(env), database)
	switch {
	case err == nil:
		return file.Close()
	case errors.Is(err, witness.ErrOtherDatabase):
		return lang.Errorf("the witness %s belongs to another database; name the folder of the right one with --witness, or, if it was lost: %s",
			"el testigo %s es de otra base de datos; indique la carpeta del correcto con --witness o, si se perdió: %s", path, fence.ErrNotStated)
	case errors.Is(err, fs.ErrNotExist) && !s.Shared():
		return lang.Errorf("there is no witness %s; name its folder with --witness, or, if it was lost: %s",
			"no existe el testigo %s; indique su carpeta con --witness o, si se perdió: %s", path, fence.ErrNotStated)
	}
	return nil // a damaged one is reported where it is opened
}

// answerReleased prints the released ranges.
func (t *terminal) answerReleased(released []fence.Released) error {
	answer := struct {
		Ranges []releasedView `json:"ranges"`
	}{make([]releasedView, len(released))}
	for i, r := range released {
		answer.Ranges[i] = releasedView{r.Range.ID, r.Range.Type, r.From, r.To, r.Found, r.Absent, r.Unknown, r.To + 1}
	}
	return t.answer(answer, func(w io.Writer) {
		for _, r := range released {
			line(w, r.Range.ID, label("type", t.language)+" "+string(r.Range.Type), summary(r).In(t.language))
		}
		if len(released) == 0 {
			say(w, lang.Messagef("No range of this taxpayer is fenced.", "Ningún rango de este contribuyente está bloqueado."))
		}
	})
}

// summary describes a released range in one sentence.
func summary(r fence.Released) lang.Message {
	if r.To < r.From {
		return lang.Messagef("no number is skipped; the next number is %d", "no se salta ninguna secuencia; la siguiente es %d", r.To+1)
	}
	return lang.Messagef(
		"%d–%d are skipped: the authority has %d of them, does not have %d, and did not say for %d; the next number is %d",
		"se saltan %d–%d: la DGII tiene %d, no tiene %d y no respondió sobre %d; la siguiente es %d", r.From, r.To, r.Found, r.Absent, r.Unknown, r.To+1)
}
