package console

import (
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// viewer is the person who looks at a page. It is the one place that says which taxpayers
// the person sees: every access to data takes its scope from here.
type viewer struct {
	user        store.User
	environment fiscal.Environment
}

// Name returns the name of the person.
func (v viewer) Name() string { return v.user.Name }

// Email returns the email address of the person.
func (v viewer) Email() string { return v.user.Email }

// Role returns the role of the person.
func (v viewer) Role() store.Role { return v.user.Role }

// Environment returns the environment of the console.
func (v viewer) Environment() fiscal.Environment { return v.environment }

// SeesAll reports whether the person sees every taxpayer of the environment.
func (v viewer) SeesAll() bool { return v.user.Role.AllTaxpayers() }

// TaxpayerIDs returns the taxpayers that the person sees. It is nil for a person who sees
// all of them, and empty but not nil for one who sees none.
func (v viewer) TaxpayerIDs() []string {
	if v.SeesAll() {
		return nil
	}
	return append([]string{}, v.user.TaxpayerIDs...)
}

// Within returns the limits of a search for the person.
func (v viewer) Within() store.Within {
	return store.Within{Environment: v.environment, All: v.SeesAll(), Taxpayers: v.TaxpayerIDs()}
}

// Sees reports whether the person sees a taxpayer.
func (v viewer) Sees(taxpayerID string) bool {
	return v.SeesAll() || slices.Contains(v.user.TaxpayerIDs, taxpayerID)
}

// Manages reports whether the person may change another person. One who is limited to an
// environment changes only people with the same limit: a link for anyone else would open
// the console of another environment.
func (v viewer) Manages(u store.User) bool {
	return v.user.Environment == "" || v.user.Environment == u.Environment
}

// Scope returns the scope of a taxpayer. It fails with store.ErrNotFound, which becomes a
// 404, when the person does not see the taxpayer.
func (v viewer) Scope(taxpayerID string) (store.Scope, error) {
	if taxpayerID == "" || !v.Sees(taxpayerID) {
		return store.Scope{}, store.ErrNotFound
	}
	return store.Scope{Environment: v.environment, TaxpayerID: taxpayerID}, nil
}

// Check fails with store.ErrNotFound when the person may not see what belongs to a scope:
// use it for objects that were found by their id alone.
func (v viewer) Check(scope store.Scope) error {
	if scope.Environment != v.environment || !v.Sees(scope.TaxpayerID) {
		return store.ErrNotFound
	}
	return nil
}
