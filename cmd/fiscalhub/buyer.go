package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/buyer"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
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
	env, err := liveEnvironment(f.Environment, "the sandbox has no buyers")
	if err != nil {
		return store.BuyerSigner{}, err
	}
	if !fiscal.IsRNC(f.RNC) {
		return store.BuyerSigner{}, usageError("--rnc must have 9 or 11 digits")
	}
	signer := strings.TrimSpace(f.Signer)
	if digits := strings.ReplaceAll(signer, "-", ""); strings.Trim(digits, "0123456789") == "" {
		signer = digits // a cédula as people write it
	}
	if signer == "" || len(signer) > 64 {
		return store.BuyerSigner{}, usageError("--signer must have 1 to 64 characters")
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
		responses, err := buyer.New(buyer.Options{Store: s, Env: signer.Environment, Now: s.Now, Log: t.log(slog.LevelError)})
		if err != nil {
			return err
		}
		applied, err := responses.ApplyConfirmed(ctx)
		if err != nil {
			return fmt.Errorf("the signer is confirmed; a running server applies the kept responses within a minute: %w", err)
		}
		v := newSignerView(signer)
		v.Responses = int64(applied)
		return t.answer(v, func(w io.Writer) {
			line(w, "confirmed; responses of "+v.Signer+" count as those of buyer "+v.RNC)
			line(w, "kept responses that count now: "+strconv.Itoa(applied))
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
			return fmt.Errorf("%s is no known signer of buyer %s: see fiscalhub buyer list", signer.Signer, signer.BuyerRNC)
		}
		if err != nil {
			return err
		}
		v := newSignerView(signer)
		v.State = "removed"
		return t.answer(v, func(w io.Writer) {
			line(w, "removed; new responses of "+v.Signer+" are kept apart. An acknowledgement of this person from the buyer's address makes the person known again.")
		})
	})
}
