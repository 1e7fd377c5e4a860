package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

type rangeCmd struct {
	Add  rangeAddCmd  `cmd:"" help:"Add a range of numbers that the authority has authorized."`
	List rangeListCmd `cmd:"" help:"List the ranges, and the next number of each."`
}

// rangeView is a range of numbers in JSON.
type rangeView struct {
	ID          string             `json:"id"`
	TaxpayerID  string             `json:"taxpayer_id"`
	Environment fiscal.Environment `json:"environment"`
	Type        fiscal.Type        `json:"type"`
	From        int64              `json:"from"`
	To          int64              `json:"to"`
	Next        int64              `json:"next"`
	Left        int64              `json:"left"`
	Expires     *string            `json:"expires"`
	Fenced      bool               `json:"fenced"`
}

func newRangeView(s store.NumberRange) rangeView {
	v := rangeView{
		ID: s.ID, TaxpayerID: s.TaxpayerID, Environment: s.Environment, Type: s.Type,
		From: s.First, To: s.Last, Next: s.Next, Left: s.Left(), Fenced: !s.FencedAt.IsZero(),
	}
	if !s.Expires.IsZero() {
		day := s.Expires.String()
		v.Expires = &day
	}
	return v
}

type rangeAddCmd struct {
	Taxpayer    string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string `required:"" help:"certification or production; the sandbox uses no numbers." placeholder:"E"`
	Type        string `required:"" help:"Type of document, 31 or 32." enum:"31,32"`
	From        int64  `required:"" help:"First number of the range." placeholder:"N"`
	To          int64  `required:"" help:"Last number of the range." placeholder:"N"`
	Expires     string `help:"Last day on which the numbers may be used; required for type 31." placeholder:"DATE"`
}

// Run adds a range.
func (c rangeAddCmd) Run(t *terminal) error {
	env, err := liveEnvironment(c.Environment, lang.Messagef("the sandbox uses no numbers", "el sandbox no usa secuencias"))
	if err != nil {
		return err
	}
	spec := taxpayer.RangeSpec{Type: fiscal.Type(c.Type), From: c.From, To: c.To, Expires: c.Expires}
	return t.withStore(func(s *store.Store) error {
		made, err := taxpayer.AddRange(t.ctx, s, store.Scope{Environment: env, TaxpayerID: c.Taxpayer}, spec, s.Now())
		var problems fiscal.Problems
		switch {
		case errors.As(err, &problems):
			return rangeError(problems[0])
		case errors.Is(err, store.ErrOverlap):
			return explainOverlap(c.From, c.To, spec.Type)
		case err != nil:
			return missing(err, "taxpayer", c.Taxpayer)
		}
		return t.answer(newRangeView(made), func(w io.Writer) { line(w, made.ID) })
	})
}

// rangeError returns the error of a flag. A day in the past is a failure, the others are
// wrong usage.
func rangeError(p fiscal.Problem) error {
	switch {
	case p.Code == fiscal.CodeRequired:
		return wrongUsage("--%s %s", "--%s %s", p.Field, p.Message)
	case p.Field == "expires" && p.Code == fiscal.CodeOutOfRange:
		return lang.Errorf("--%s: %s", "--%s: %s", p.Field, p.Message)
	}
	return wrongUsage("--%s: %s", "--%s: %s", p.Field, p.Message)
}

// explainOverlap returns the error of a range that overlaps with another one.
func explainOverlap(from, to int64, t fiscal.Type) error {
	return lang.Errorf("some numbers from %d to %d of type %s are in another range of this RNC already: see fiscalhub range list",
		"algunas secuencias de %d a %d del tipo %s ya están en otro rango de este RNC: vea fiscalhub range list", from, to, t)
}

type rangeListCmd struct{}

// Run lists the ranges of all taxpayers.
func (rangeListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.NumberRanges(t.ctx)
		if err != nil {
			return err
		}
		views := mapEach(all, newRangeView)
		b := newTable("RANGE", "ENVIRONMENT", "TAXPAYER", "TYPE", "NUMBERS", "NEXT", "LEFT", "EXPIRES")
		for i, v := range views {
			left := lang.Literal(strconv.FormatInt(v.Left, 10))
			if v.Fenced {
				left = lang.Messagef("%s (fenced)", "%s (bloqueado)", left)
			}
			b.add(v.ID, string(v.Environment), v.TaxpayerID, string(v.Type),
				fmt.Sprintf("%d–%d", v.From, v.To), strconv.FormatInt(v.Next, 10), left.In(t.language), all[i].Expires.String())
		}
		return t.list(views, b)
	})
}
