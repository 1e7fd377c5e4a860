package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	keysAddress = "/console/keys"
	keyRows     = 200 // of one page
)

func (c *Console) keyPages() []page {
	see, act := integrators(), integrationEditors()
	return []page{
		get(keysAddress, see, c.showKeys),
		post(keysAddress, see, act, c.createKey),
		post(keysAddress+"/{id}/rotate", see, act, on((*request).key, c.rotateKey)),
		post(keysAddress+"/{id}/revoke", see, act, on((*request).key, c.revokeKey)),
	}
}

// keysView is the data of the page of API keys.
type keysView struct {
	Keys      []keyView
	More      bool // there are more keys than the page shows
	Ended     int  // keys that have ended and are not shown
	All       bool // keys that have ended are shown too
	Chosen    string
	Filter    *form
	Form      *form
	Taxpayers []option
	Scopes    []option
	Envs      []option
	Shown     *shownKey // the key that was just made
	Used      *keyView  // the key that the form has made before
}

// shownKey is a new key, which is shown once.
type shownKey struct {
	keyView
	Secret string
	Old    string // prefix of the key that it replaces
}

// keyView is an API key with the name of its taxpayer.
type keyView struct {
	store.Credential
	TaxpayerName string
	Tone         tone
	StateKey     string
	Usable       bool // it can be rotated and revoked
}

// ScopeNames returns the names of the scopes.
func (v keyView) ScopeNames() []string {
	names := make([]string, 0, len(v.Scopes))
	for _, s := range v.Scopes {
		names = append(names, string(s))
	}
	return names
}

func newKeyView(c store.Credential, name string, now time.Time) keyView {
	v := keyView{Credential: c, TaxpayerName: name, Tone: good, StateKey: "word.active", Usable: true}
	switch {
	case !c.RevokedAt.IsZero():
		v.Tone, v.StateKey, v.Usable = neutral, "keys.state_revoked", false
	case !c.Live(now):
		v.Tone, v.StateKey, v.Usable = neutral, "keys.state_expired", false
	case c.Suspended != "":
		v.Tone, v.StateKey = bad, "keys.state_suspended"
	case !c.ExpiresAt.IsZero() && c.ExpiresAt.Sub(now) < fiscal.EndsSoon:
		v.Tone, v.StateKey = warn, "keys.state_ending"
	}
	return v
}

func (c *Console) showKeys(x *request) error {
	return x.renderKeys(http.StatusOK, keysView{Form: newForm(x.URL.Query())})
}

// renderKeys renders the page. It fills the list; the caller sets the form and what was
// just done.
func (x *request) renderKeys(status int, v keysView) error {
	query := x.URL.Query()
	v.Filter, v.Chosen, v.All = newForm(query), query.Get("taxpayer"), query.Get("state") == "all"
	var names map[string]string
	var err error
	if v.Taxpayers, names, err = x.taxpayerOptions(); err != nil {
		return err
	}
	all, err := x.console.o.Store.Credentials(x.Context())
	if err != nil {
		return err
	}
	now := x.console.o.Now()
	for _, c := range slices.Backward(all) {
		if x.viewer.Check(c.Scope()) != nil || v.Chosen != "" && c.TaxpayerID != v.Chosen {
			continue
		}
		one := newKeyView(c, names[c.TaxpayerID], now)
		switch {
		case !one.Usable && !v.All:
			v.Ended++
		case len(v.Keys) == keyRows:
			v.More = true
		default:
			v.Keys = append(v.Keys, one)
		}
	}
	v.Scopes, v.Envs = x.scopeOptions(), x.environmentOptions()
	return x.renderStatus(status, "keys", x.text("nav.keys"), v)
}

// scopeOptions returns the scopes with what each of them allows.
func (x *request) scopeOptions() []option {
	texts := map[apikey.Scope]string{
		apikey.InvoicesWrite: "keys.scope_invoices_write", apikey.InvoicesRead: "keys.scope_invoices_read",
		apikey.ECFSubmit: "keys.scope_ecf_submit", apikey.ECFRead: "keys.scope_ecf_read", apikey.WebhooksManage: "keys.scope_webhooks_manage",
	}
	var all []option
	for _, s := range apikey.AllScopes() {
		all = append(all, option{string(s), string(s) + " · " + x.text(texts[s])})
	}
	return all
}

// createKey issues a key, and shows it once in the answer itself.
func (c *Console) createKey(x *request) error {
	f := x.sentForm()
	token, err := x.formToken()
	if err != nil {
		return err
	}
	terms := access.Terms{Environment: c.o.Environment, TaxpayerID: f.Value("taxpayer"), ExpiresAt: x.momentField(f, "expires", true), Form: token}
	if env := f.Value("environment"); env != "" && env != string(c.o.Environment) {
		f.fail("environment", x.text("keys.wrong_environment", x.text("environment."+string(c.o.Environment))))
	}
	if terms.Scopes, err = parseScopes(x.PostForm["scopes"]); err != nil {
		f.fail("scopes", x.text("keys.wrong_scope"))
	} else if len(terms.Scopes) == 0 {
		f.fail("scopes", x.text("keys.no_scope"))
	}
	if _, err := x.viewer.Scope(terms.TaxpayerID); err != nil {
		f.fail("taxpayer", x.text("keys.wrong_taxpayer"))
	}
	if !f.ok() {
		return x.renderKeys(http.StatusUnprocessableEntity, keysView{Form: f})
	}
	key, made, err := c.credentials.Issue(x.Context(), terms)
	var used *store.FormUsedError
	switch {
	case errors.As(err, &used):
		return x.renderUsedKey(used.ID)
	case errors.Is(err, access.ErrExpiryPast):
		f.fail("expires", x.text("keys.expiry_past"))
	case errors.Is(err, store.ErrTooManyCredentials):
		f.fail("", x.text("keys.too_many", store.MaxLiveCredentials))
	case errors.Is(err, store.ErrNotFound):
		f.fail("taxpayer", x.text("keys.wrong_taxpayer"))
	case err != nil:
		return err
	}
	if !f.ok() {
		return x.renderKeys(http.StatusUnprocessableEntity, keysView{Form: f})
	}
	return x.renderNewKey(key, made, "")
}

// parseScopes reads the scopes of a form. A value may name several of them.
func parseScopes(values []string) (scopes []apikey.Scope, err error) {
	for _, value := range values {
		for name := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ' ' || r == ',' }) {
			scope, err := apikey.ParseScope(name)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes, nil
}

// renderNewKey shows a key once. The answer to the form shows it: it is in no address and
// in no stored page.
func (x *request) renderNewKey(key apikey.Key, made store.Credential, old string) error {
	shown := shownKey{keyView: newKeyView(made, "", x.console.o.Now()), Secret: key.Reveal(), Old: old}
	return x.renderKeys(http.StatusCreated, keysView{Form: newForm(nil), Shown: &shown})
}

// renderUsedKey answers a form that was sent before.
func (x *request) renderUsedKey(id string) error {
	made, err := x.console.o.Store.Credential(x.Context(), id)
	if err != nil {
		return err
	}
	used := newKeyView(made, "", x.console.o.Now())
	return x.renderKeys(http.StatusConflict, keysView{Form: newForm(nil), Used: &used})
}

// key returns the key of the address, if the person sees it.
func (x *request) key() (store.Credential, error) {
	found, err := x.console.o.Store.Credential(x.Context(), x.PathValue("id"))
	if err != nil {
		return store.Credential{}, err
	}
	return found, x.viewer.Check(found.Scope())
}

// rotateKey issues the successor of a key, and shows it once.
func (c *Console) rotateKey(x *request, old store.Credential) error {
	token, err := x.formToken()
	if err != nil {
		return err
	}
	key, made, err := c.credentials.RotateOnce(x.Context(), token, old.ID, access.DefaultOverlap)
	f := newForm(nil)
	var used *store.FormUsedError
	switch {
	case errors.As(err, &used):
		return x.renderUsedKey(used.ID)
	case errors.Is(err, access.ErrEnded):
		f.fail("", x.text("keys.ended"))
	case errors.Is(err, access.ErrIsSuspended):
		f.fail("", x.text("keys.suspended"))
	case errors.Is(err, access.ErrAltered):
		f.fail("", x.text("keys.altered"))
	case errors.Is(err, store.ErrTooManyCredentials):
		f.fail("", x.text("keys.too_many", store.MaxLiveCredentials))
	case err != nil:
		return err
	default:
		return x.renderNewKey(key, made, old.Prefix)
	}
	return x.renderKeys(http.StatusUnprocessableEntity, keysView{Form: f})
}

// revokeKey ends a key.
func (c *Console) revokeKey(x *request, found store.Credential) error {
	if err := c.credentials.Revoke(x.Context(), found.ID); err != nil {
		return err
	}
	return x.done(keysAddress, "keys.revoke")
}

// environmentOptions returns the environment of the console as the one choice of a field.
func (x *request) environmentOptions() []option {
	env := x.console.o.Environment
	return []option{{string(env), x.text("environment." + string(env))}}
}
