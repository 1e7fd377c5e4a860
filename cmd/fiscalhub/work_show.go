package main

import (
	"io"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type workShowCmd struct {
	ID string `arg:"" help:"Id of the fiscal document, or of its invoice."`
}

// Run shows one document.
func (c workShowCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		inv, err := findDocument(t, s, c.ID)
		if err != nil {
			return err
		}
		d, err := dossier.Read(t.ctx, s, inv.Scope, inv.DocumentID)
		if err != nil {
			return err
		}
		v := newWorkShow(d, s.Now(), t.outputLanguage())
		return t.answer(v, v.print)
	})
}

// print writes a document as a table.
func (v workShowView) print(w io.Writer) {
	in := func(m lang.Message) string { return m.In(languageOfWriter(w)) }
	v.Document.print(w)
	for _, n := range v.Replaced {
		line(w, "replaced", n.ReplacedAt, n.ENCF, in(lang.Messagef("security code %s: %s (by %s)", "código de seguridad %s: %s (por %s)", n.SecurityCode, n.Reason, n.By)))
	}
	for _, a := range v.Attempts {
		class := textOf(a.Class)
		if class == "" {
			class = in(lang.Messagef("open", "abierto"))
		}
		line(w, label("attempt", languageOfWriter(w))+" "+strconv.FormatInt(a.Number, 10), a.OpenedAt, a.Kind, class, a.Detail)
	}
	for _, e := range v.Evidence {
		line(w, "evidence", e.At, string(e.Kind), e.summary(languageOfWriter(w)))
	}
	for _, u := range v.Unconfirmed {
		line(w, "response", u.At, in(lang.Messagef("unconfirmed", "sin confirmar")), in(lang.Messagef(
			"%s (signed by %s, who is not known to act for the buyer)",
			"%s (firmada por %s, de quien no consta que actúe por el comprador)", strings.TrimSpace(u.Result+" "+u.Reason), u.Signer)))
	}
	for _, d := range v.Differences {
		words := d.cause.In(languageOfWriter(w))
		if d.EndedAt != nil {
			words = in(lang.Messagef("%s (until %s)", "%s (hasta %s)", words, *d.EndedAt))
		}
		line(w, "difference", d.FoundAt, words)
	}
	if v.Job == nil {
		line(w, "job", in(lang.Messagef("none", "ninguna")))
	} else {
		v.Job.print(w)
	}
	if o := v.Outcome; o != nil {
		words := in(lang.Messagef("the evidence says %s", "la evidencia dice %s", o.Status))
		if o.Alarm != nil {
			words += ": " + *o.Alarm
		}
		line(w, "outcome", words)
	}
}

// summary returns the verdict, the messages and the note of an item in one line.
func (e evidenceView) summary(l lang.Language) string {
	words := strings.Fields(strings.Join(append([]string{textOf(e.Verdict), textOf(e.TrackID)}, e.Messages...), " ") + " " + e.Note)
	add := func(m lang.Message) { words = append(words, m.In(l)) }
	if e.By != nil {
		add(lang.Messagef("(by %s)", "(por %s)", *e.By))
	}
	switch {
	case e.Foreign:
		add(lang.Messagef("(about another document under this number)", "(sobre otro documento con este número)"))
	case e.Attempt != nil:
		add(lang.Messagef("(attempt %d)", "(intento %d)", *e.Attempt))
	}
	switch {
	case e.Signer == nil:
	case e.Confirmed != nil && !*e.Confirmed:
		add(lang.Messagef("(signed by %s, who was not known to act for the buyer)",
			"(firmado por %s, de quien no constaba que actuara por el comprador)", *e.Signer))
	default:
		add(lang.Messagef("(signed by %s)", "(firmado por %s)", *e.Signer))
	}
	return strings.Join(words, " ")
}

func (j documentJob) print(w io.Writer) {
	l := languageOfWriter(w)
	next := lang.Messagef("next try when the authority answers", "próximo intento cuando la DGII responda")
	switch {
	case j.LeaseUntil != nil:
		next = lang.Messagef("under way", "en curso")
	case j.NextTry != nil:
		next = lang.Messagef("next try %s", "próximo intento %s", *j.NextTry)
	}
	line(w, "job", j.Stage, label("attempt", l)+" "+strconv.FormatInt(j.Attempt, 10), next.In(l), textOf(j.LastError))
}

func (v documentView) print(w io.Writer) {
	line(w, "document", v.ID)
	line(w, "invoice", v.InvoiceID)
	line(w, "external id", v.ExternalID)
	line(w, "taxpayer", v.TaxpayerID)
	line(w, "environment", string(v.Environment))
	line(w, "status", string(v.Status))
	for _, m := range rejection.Explained(v.Status, v.Messages, languageOfWriter(w)) {
		line(w, "message", m)
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"e-NCF", v.ENCF}, {"track id", v.TrackID}, {"security code", v.SecurityCode}, {"sha256", v.SHA256}} {
		if f.value != nil {
			line(w, f.name, *f.value)
		}
	}
}
