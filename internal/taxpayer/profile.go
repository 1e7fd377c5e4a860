// Package taxpayer checks what people enter about a taxpayer: its profile, its logo and its
// number ranges. The commands and the console use the same checks.
package taxpayer

import (
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// IssuerOf returns the issuer of a taxpayer's documents.
func IssuerOf(t store.Taxpayer) ecf.Issuer {
	return ecf.Issuer{
		RNC: t.RNC, LegalName: t.LegalName, TradeName: t.TradeName, Branch: t.Branch, Address: t.Address,
		Municipality: t.Municipality, Province: t.Province, Phones: t.Phones, Email: t.Email, Website: t.Website,
		EconomicActivity: t.EconomicActivity, IncomeType: t.IncomeType,
	}
}

// Check checks the profile of a taxpayer against the authority's format. Its error is of
// type fiscal.Problems, with fields named as in JSON. An empty address is allowed: the
// taxpayer cannot issue before it has one.
func Check(t store.Taxpayer) error {
	var found, all fiscal.Problems
	if err := IssuerOf(t).Check(); err != nil && !errors.As(err, &found) {
		return err
	}
	for _, p := range found {
		if p.Field != "address" || t.Address != "" {
			all = append(all, p)
		}
	}
	if province := ecf.ProvinceOf(t.Municipality); province != "" && t.Province != "" && t.Province != province && ecf.RegionName(t.Province) != "" {
		all = append(all, fiscal.Problem{Field: "province", Code: fiscal.CodeInvalidEnum, Message: lang.Messagef(
			"must be the province of the municipality %s: %s", "debe ser la provincia del municipio %s: %s", t.Municipality, province)})
	}
	if t.ElectronicSince != "" {
		if _, err := fiscal.ParseDate(t.ElectronicSince); err != nil {
			all = append(all, fiscal.Problem{Field: "electronic_since", Code: fiscal.CodeInvalidDate, Message: lang.OfError(err)})
		}
	}
	if t.PageFormat != "" {
		if _, err := printed.ParseFormat(t.PageFormat); err != nil {
			all = append(all, fiscal.Problem{Field: "page_format", Code: fiscal.CodeInvalidEnum, Message: lang.Messagef("must be %s", "debe ser %s", lang.OneOf(printed.FormatNames()))})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// MaxLogo is the size of the largest logo, in bytes.
const MaxLogo = 1 << 20

// ErrLogo means that a file is not a logo that can be printed.
var ErrLogo = lang.Errorf("the file must be a PNG or JPEG of at most 1 MiB and 8 million pixels",
	"el archivo debe ser un PNG o JPEG de un máximo de 1 MiB y 8 millones de píxeles")

// CheckLogo fails with ErrLogo when a file cannot be printed as the logo.
func CheckLogo(logo []byte) error {
	if len(logo) == 0 || len(logo) > MaxLogo || printed.CheckLogo(logo) != nil {
		return ErrLogo
	}
	return nil
}
