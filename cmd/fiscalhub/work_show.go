package main

import (
	"io"
	"strconv"
	"strings"

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
		v, err := newWorkShow(t, s, inv)
		if err != nil {
			return err
		}
		return t.answer(v, v.print)
	})
}

// print writes a document as a table.
func (v workShowView) print(w io.Writer) {
	v.Document.print(w)
	for _, a := range v.Attempts {
		class := textOf(a.Class)
		if class == "" {
			class = "open"
		}
		line(w, "attempt "+strconv.FormatInt(a.Number, 10), a.OpenedAt, a.Kind, class, a.Detail)
	}
	for _, e := range v.Evidence {
		line(w, "evidence", e.At, string(e.Kind), e.summary())
	}
	for _, u := range v.Unconfirmed {
		line(w, "response", u.At, "unconfirmed", strings.TrimSpace(u.Result+" "+u.Reason)+" (signed by "+u.Signer+", who is not known to act for the buyer)")
	}
	for _, d := range v.Differences {
		words := d.text
		if d.EndedAt != nil {
			words += " (until " + *d.EndedAt + ")"
		}
		line(w, "difference", d.FoundAt, words)
	}
	if v.Job == nil {
		line(w, "job", "none")
	} else {
		v.Job.print(w)
	}
	if o := v.Outcome; o != nil {
		words := "the evidence says " + string(o.Status)
		if o.Alarm != nil {
			words += ": " + *o.Alarm
		}
		line(w, "outcome", words)
	}
}

// summary returns the verdict, the messages and the note of an item in one line.
func (e evidenceView) summary() string {
	words := strings.Fields(strings.Join(append([]string{textOf(e.Verdict), textOf(e.TrackID)}, e.Messages...), " ") + " " + e.Note)
	if e.By != nil {
		words = append(words, "(by "+*e.By+")")
	}
	switch {
	case e.Foreign:
		words = append(words, "(about another document under this number)")
	case e.Attempt != nil:
		words = append(words, "(attempt "+strconv.FormatInt(*e.Attempt, 10)+")")
	}
	if e.Signer != nil {
		by := "(signed by " + *e.Signer
		if e.Confirmed != nil && !*e.Confirmed {
			by += ", who was not known to act for the buyer"
		}
		words = append(words, by+")")
	}
	return strings.Join(words, " ")
}

func (j documentJob) print(w io.Writer) {
	next := "next try when the authority answers"
	switch {
	case j.LeaseUntil != nil:
		next = "under way"
	case j.NextTry != nil:
		next = "next try " + *j.NextTry
	}
	line(w, "job", j.Stage, "attempt "+strconv.FormatInt(j.Attempt, 10), next, textOf(j.LastError))
}

func (v documentView) print(w io.Writer) {
	line(w, "document", v.ID)
	line(w, "invoice", v.InvoiceID)
	line(w, "external id", v.ExternalID)
	line(w, "taxpayer", v.TaxpayerID)
	line(w, "environment", string(v.Environment))
	line(w, "status", string(v.Status))
	for _, m := range v.Messages {
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
