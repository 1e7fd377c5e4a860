package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

// issuerView is an issuer in JSON. It has the fields of ecf.Issuer in the same
// order, so that one converts to the other.
type issuerView struct {
	RNC              string   `json:"rnc"`
	LegalName        string   `json:"legal_name"`
	TradeName        string   `json:"trade_name"`
	Branch           string   `json:"branch"`
	Address          string   `json:"address"`
	Municipality     string   `json:"municipality"`
	Province         string   `json:"province"`
	Phones           []string `json:"phones"`
	Email            string   `json:"email"`
	Website          string   `json:"website"`
	EconomicActivity string   `json:"economic_activity"`
	IncomeType       string   `json:"income_type"`
}

// taxpayerView is a taxpayer in JSON. Missing is set by taxpayer show only.
type taxpayerView struct {
	ID string `json:"id"`
	issuerView
	ElectronicSince *string       `json:"electronic_since"`
	PageFormat      string        `json:"page_format"`
	Logo            bool          `json:"logo"`
	CreatedAt       string        `json:"created_at"`
	UpdatedAt       string        `json:"updated_at"`
	Missing         []missingView `json:"missing,omitzero"`

	SuspendedAt      string `json:"suspended_at,omitempty"`
	SuspensionReason string `json:"suspension_reason,omitempty"`
}

// printProfile writes the fields of the profile that are set.
func (v taxpayerView) printProfile(w io.Writer) {
	named := func(code string) string { return strings.TrimSpace(code + " " + ecf.RegionName(code)) }
	line(w, "address", v.Address)
	for _, f := range []struct{ name, value string }{
		{"trade name", v.TradeName}, {"branch", v.Branch}, {"municipality", named(v.Municipality)}, {"province", named(v.Province)},
		{"telephone", strings.Join(v.Phones, ", ")}, {"e-mail", v.Email}, {"web site", v.Website}, {"economic activity", v.EconomicActivity},
		{"type of income", v.IncomeType}, {"electronic since", textOf(v.ElectronicSince)}, {"page format", v.PageFormat},
	} {
		if f.value != "" {
			line(w, f.name, f.value)
		}
	}
}

// with adds whether the taxpayer is suspended.
func (v taxpayerView) with(suspended map[store.Subject]store.Suspension) taxpayerView {
	one := suspended[store.TaxpayerSubject(v.ID)]
	v.SuspendedAt, v.SuspensionReason = formatTime(one.At), one.Reason
	return v
}

// state returns suspended, or an empty text.
func (v taxpayerView) state() lang.Message {
	if v.SuspendedAt == "" {
		return lang.Message{}
	}
	return lang.Messagef("suspended", "suspendido")
}

// missingView is something that a taxpayer needs before it can issue documents of
// a type in an environment.
type missingView struct {
	Environment fiscal.Environment `json:"environment"`
	Type        fiscal.Type        `json:"type"`
	Code        string             `json:"code"`
}

func newTaxpayerView(t store.Taxpayer) taxpayerView {
	return taxpayerView{
		ID: t.ID, issuerView: issuerView(taxpayer.IssuerOf(t)), ElectronicSince: optional(t.ElectronicSince), PageFormat: cmp.Or(t.PageFormat, store.LetterFormat), Logo: len(t.Logo) > 0,
		CreatedAt: formatTime(t.CreatedAt), UpdatedAt: formatTime(t.UpdatedAt),
	}
}
