package store

import "github.com/fiscalhub/fiscalhub/internal/fiscal"

// Scope is whose rows a call may see: one taxpayer in one environment. Every
// statement on an integrator's data carries both.
type Scope struct {
	Environment fiscal.Environment
	TaxpayerID  string
}
