package main

import (
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type buyerCmd struct {
	Confirm buyerConfirmCmd `cmd:"" help:"Confirm that a person signs for a buyer. Commercial responses of that person then count as the buyer's, also those that were kept."`
	List    buyerListCmd    `cmd:"" help:"List the persons who sign for buyers, and those whose responses are kept until they are confirmed."`
	Remove  buyerRemoveCmd  `cmd:"" help:"Remove a person who no longer signs for a buyer."`
}

// signerFlags name a person who signs for a buyer of a taxpayer.
type signerFlags struct {
	Taxpayer    string `required:"" help:"Id of the taxpayer who issues to the buyer." placeholder:"ID"`
	Environment string `required:"" help:"certification or production." enum:"sandbox,certification,production" placeholder:"E"`
	RNC         string `name:"rnc" required:"" help:"RNC or cédula of the buyer." placeholder:"RNC"`
	Signer      string `required:"" help:"Identifier of the person, as the event and the list show it." placeholder:"ID"`
	Reason      string `help:"Why, for the audit log." placeholder:"TEXT"`
}

// parse checks the flags.
func (f signerFlags) parse() (store.BuyerSigner, error) {
	env, err := liveEnvironment(f.Environment, lang.Messagef("the sandbox has no buyers", "el sandbox no tiene compradores"))
	if err != nil {
		return store.BuyerSigner{}, err
	}
	if !fiscal.IsRNC(f.RNC) {
		return store.BuyerSigner{}, wrongUsage("--rnc must have 9 or 11 digits", "--rnc debe tener 9 u 11 dígitos")
	}
	signer := strings.TrimSpace(f.Signer)
	if digits := strings.ReplaceAll(signer, "-", ""); strings.Trim(digits, "0123456789") == "" {
		signer = digits // a cédula as people write it
	}
	if signer == "" || len(signer) > 64 {
		return store.BuyerSigner{}, wrongUsage("--signer must have 1 to 64 characters", "--signer debe tener de 1 a 64 caracteres")
	}
	return store.BuyerSigner{Scope: store.Scope{Environment: env, TaxpayerID: f.Taxpayer}, BuyerRNC: f.RNC, Signer: signer}, nil
}

// signerView is a person who signs for a buyer, in JSON.
type signerView struct {
	TaxpayerID  string             `json:"taxpayer_id"`
	Environment fiscal.Environment `json:"environment"`
	RNC         string             `json:"rnc"`
	Signer      string             `json:"signer"`
	State       string             `json:"state"` // confirmed, unconfirmed or removed
	Basis       *string            `json:"basis"` // of a confirmed one: acknowledgement or operator
	Since       *string            `json:"since"`
	Responses   int64              `json:"responses"` // that are kept, or that count now
}

func newSignerView(s store.BuyerSigner) signerView {
	return signerView{
		TaxpayerID: s.TaxpayerID, Environment: s.Environment, RNC: s.BuyerRNC, Signer: s.Signer,
		State: "confirmed", Basis: optional(string(s.Basis)), Since: optionalTime(s.CreatedAt),
	}
}

func newUnknownSignerView(s store.UnknownSigner) signerView {
	return signerView{
		TaxpayerID: s.TaxpayerID, Environment: s.Environment, RNC: s.BuyerRNC, Signer: s.Signer,
		State: "unconfirmed", Since: optionalTime(s.Since), Responses: s.Responses,
	}
}

type buyerConfirmCmd struct{ signerFlags }

// Run confirms a signer, and applies the responses of the signer that were kept.
func (c buyerConfirmCmd) Run(t *terminal) error {
	signer, err := c.parse()
	if err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		ctx := audit.WithReason(t.ctx, c.Reason)
		signer.Basis, signer.CreatedAt = store.ByOperator, s.Now()
		err := s.Update(ctx, func(tx *store.Tx) error { return tx.ConfirmBuyerSigner(ctx, signer) })
		if err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		in, err := inbox.New(inbox.Options{Store: s, Env: signer.Environment, Now: s.Now, Log: t.log(slog.LevelError)})
		if err != nil {
			return err
		}
		applied, err := in.ApplyConfirmed(ctx)
		if err != nil {
			return lang.Errorf("the signer is confirmed; a running server applies the kept responses within a minute: %s",
				"el firmante está confirmado; un servidor en marcha aplica las respuestas guardadas en un minuto: %s", err)
		}
		v := newSignerView(signer)
		v.Responses = int64(applied)
		return t.answer(v, func(w io.Writer) {
			say(w, lang.Messagef("confirmed; responses of %s count as those of buyer %s",
				"confirmado; las respuestas de %s cuentan como las del comprador %s", v.Signer, v.RNC))
			say(w, lang.Messagef("kept responses that count now: %d", "respuestas guardadas que cuentan ahora: %d", applied))
		})
	})
}

type buyerListCmd struct{}

// Run lists the signers of the buyers of all taxpayers.
func (c buyerListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		known, err := s.BuyerSigners(t.ctx)
		if err != nil {
			return err
		}
		unknown, err := s.UnknownSigners(t.ctx)
		if err != nil {
			return err
		}
		views := append(mapEach(known, newSignerView), mapEach(unknown, newUnknownSignerView)...)
		b := newTable("SIGNER", "BUYER", "STATE", "BY", "SINCE", "KEPT RESPONSES", "ENVIRONMENT", "TAXPAYER")
		for _, v := range views {
			b.add(v.Signer, v.RNC, v.State, textOf(v.Basis), textOf(v.Since), strconv.FormatInt(v.Responses, 10), string(v.Environment), v.TaxpayerID)
		}
		return t.list(views, b)
	})
}

type buyerRemoveCmd struct{ signerFlags }

// Run removes a signer.
func (c buyerRemoveCmd) Run(t *terminal) error {
	signer, err := c.parse()
	if err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		ctx := audit.WithReason(t.ctx, c.Reason)
		err := s.Update(ctx, func(tx *store.Tx) error { return tx.RemoveBuyerSigner(ctx, signer) })
		if errors.Is(err, store.ErrNotFound) {
			return lang.Errorf("%s is no known signer of buyer %s: see fiscalhub buyer list",
				"%s no es un firmante conocido del comprador %s: vea fiscalhub buyer list", signer.Signer, signer.BuyerRNC)
		}
		if err != nil {
			return err
		}
		v := newSignerView(signer)
		v.State = "removed"
		return t.confirm(v, lang.Messagef("removed; new responses of %s are kept apart. An acknowledgement of this person from the buyer's address makes the person known again.",
			"eliminado; las nuevas respuestas de %s se guardan aparte. Un acuse de recibo de esta persona desde la dirección del comprador la vuelve conocida.", v.Signer))
	})
}
