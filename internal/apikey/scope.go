package apikey

import (
	"fmt"
	"slices"
)

// Scope is a permission of a credential.
type Scope string

// The scopes of credentials.
const (
	InvoicesWrite  Scope = "invoices.write"
	InvoicesRead   Scope = "invoices.read"
	ECFSubmit      Scope = "ecf.submit"
	ECFRead        Scope = "ecf.read"
	WebhooksManage Scope = "webhooks.manage"
)

// AllScopes returns every scope, in a new slice.
func AllScopes() []Scope {
	return []Scope{InvoicesWrite, InvoicesRead, ECFSubmit, ECFRead, WebhooksManage}
}

// ParseScope parses the public name of a scope. It fails for an unknown name.
func ParseScope(text string) (Scope, error) {
	if s := Scope(text); slices.Contains(AllScopes(), s) {
		return s, nil
	}
	return "", fmt.Errorf("apikey: unknown scope %q", text)
}
