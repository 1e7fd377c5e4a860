package live

import (
	"github.com/fiscalhub/fiscalhub/internal/ecf"
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
