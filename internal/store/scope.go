package store

import "github.com/fiscalhub/fiscalhub/internal/fiscal"

// Scope limits a call to the rows of one taxpayer in one environment. Every statement
// on the data of a taxpayer compares both; the exceptions are listed in scope_test.go.
type Scope struct {
	Environment fiscal.Environment
	TaxpayerID  string
}
