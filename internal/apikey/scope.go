package apikey

import (
	"fmt"
	"slices"
)

// Scope is one thing that a credential allows.
type Scope string

// The scopes there are.
const (
	InvoicesWrite  Scope = "invoices.write"
	InvoicesRead   Scope = "invoices.read"
	ECFSubmit      Scope = "ecf.submit"
	ECFRead        Scope = "ecf.read"
	WebhooksManage Scope = "webhooks.manage"
)

// AllScopes returns every scope, in a slice of the caller's own.
func AllScopes() []Scope {
	return []Scope{InvoicesWrite, InvoicesRead, ECFSubmit, ECFRead, WebhooksManage}
}

// ParseScope reads a scope as it is spelled in public.
func ParseScope(text string) (Scope, error) {
	if s := Scope(text); slices.Contains(AllScopes(), s) {
		return s, nil
	}
	return "", fmt.Errorf("apikey: %q is not a scope", text)
}
