// Package people manages the people who use the console: who they are, how they sign in,
// and the sessions of their browsers.
package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// LinkTime is how long a link is valid with which a person sets a password.
const LinkTime = 24 * time.Hour

const (
	maxName  = 100 // characters
	maxEmail = 254 // bytes, as RFC 5321 has it
)

// The errors of changes of a person.
var (
	ErrName     = lang.Errorf("a name has 1 to 100 characters, and no control characters", "un nombre tiene de 1 a 100 caracteres, sin caracteres de control")
	ErrEmail    = lang.Errorf("the email address must be like ana@example.com", "el correo electrónico debe ser como ana@example.com")
	ErrRole     = errors.New("the role must be operator, auditor, accountant or developer")
	ErrLink     = errors.New("the link is not valid: it was used, replaced, or is older than 24 hours")
	ErrDisabled = errors.New("the person is disabled")
)

// Options are what a People needs. All fields are required.
type Options struct {
	Store   *store.Store
	Secrets *access.Secrets
	Hasher  Hasher
	Now     func() time.Time
}

// People manages the people of the console. It is safe for concurrent use.
type People struct {
	o       Options
	refused *refusedBuckets
}

// New returns the people of a store. It fails when an option is missing.
func New(o Options) (*People, error) {
	if o.Store == nil || o.Secrets == nil || o.Hasher == nil || o.Now == nil {
		return nil, errors.New("people: options: Store, Secrets, Hasher and Now are required")
	}
	return &People{o: o, refused: newRefusedBuckets()}, nil
}

// Invitation is a new person: all that an operator decides.
type Invitation struct {
	Name        string
	Email       string
	Role        store.Role
	Environment fiscal.Environment // empty: every environment
	TaxpayerIDs []string           // for an accountant or a developer
}

// Create stores a new person and returns the token of the link with which the person sets
// a password. It fails with ErrName, ErrEmail or ErrRole when the invitation is not valid,
// with store.ErrEmailTaken, and with store.ErrNotFound when a taxpayer does not exist.
func (p *People) Create(ctx context.Context, in Invitation) (store.User, Token, error) {
	u := store.User{
		ID: store.NewID(), Name: strings.TrimSpace(in.Name), Role: in.Role, Environment: in.Environment,
		TaxpayerIDs: in.TaxpayerIDs, CreatedAt: p.o.Now(),
	}
	var err error
	if u.Email, err = normalEmail(in.Email); err != nil {
		return store.User{}, Token{}, err
	}
	if err := checkName(u.Name); err != nil {
		return store.User{}, Token{}, err
	}
	if !slices.Contains(store.Roles(), u.Role) {
		return store.User{}, Token{}, ErrRole
	}
	token, err := newToken()
	if err != nil {
		return store.User{}, Token{}, err
	}
	err = p.o.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.CreateUser(ctx, u); err != nil {
			return err
		}
		return tx.SetUserLink(ctx, u.ID, token.digest(), p.o.Now().Add(LinkTime))
	})
	return u, token, err
}

// Disable keeps a person from signing in, and ends the person's sessions. It fails with
// store.ErrNotFound.
func (p *People) Disable(ctx context.Context, id string) (store.User, error) {
	return p.update(ctx, id, "user.disable", func(tx *store.Tx, u *store.User) error {
		if u.DisabledAt.IsZero() {
			u.DisabledAt = p.o.Now()
		}
		if err := tx.EndUserSessions(ctx, id, ""); err != nil {
			return err
		}
		return tx.DropUserLinks(ctx, id)
	})
}

// Reset makes a person start again: it ends the person's sessions, removes password and
// second factor, enables a disabled person, and returns the token of a new link. It fails
// with store.ErrNotFound.
func (p *People) Reset(ctx context.Context, id string) (store.User, Token, error) {
	token, err := newToken()
	if err != nil {
		return store.User{}, Token{}, err
	}
	u, err := p.update(ctx, id, "user.reset", func(tx *store.Tx, u *store.User) error {
		u.PasswordHash, u.SecondFactor, u.SecondFactorAt, u.DisabledAt = "", nil, time.Time{}, time.Time{}
		if err := tx.EndUserSessions(ctx, id, ""); err != nil {
			return err
		}
		if err := tx.SetRecoveryCodes(ctx, id, nil); err != nil {
			return err
		}
		return tx.SetUserLink(ctx, id, token.digest(), p.o.Now().Add(LinkTime))
	})
	return u, token, err
}

// ChangeRole gives a person another role, and other taxpayers when taxpayerIDs is not nil.
// It ends the person's sessions. It fails with ErrRole, and with store.ErrNotFound when
// there is no such person or taxpayer.
func (p *People) ChangeRole(ctx context.Context, id string, role store.Role, taxpayerIDs []string) (store.User, error) {
	if !slices.Contains(store.Roles(), role) {
		return store.User{}, ErrRole
	}
	return p.update(ctx, id, "user.role", func(tx *store.Tx, u *store.User) error {
		u.Role = role
		if taxpayerIDs != nil {
			u.TaxpayerIDs = slices.Compact(slices.Sorted(slices.Values(taxpayerIDs)))
		}
		return tx.EndUserSessions(ctx, id, "")
	})
}

// Languages and themes that SetPreferences accepts. An empty text follows the browser.
func preferences() (languages, themes []string) {
	return []string{"", "es", "en"}, []string{"", "light", "dark"}
}

// SetPreferences stores the language (es, en) and the theme (light, dark) of a person; an
// empty text follows the browser. It fails when one of them is another text.
func (p *People) SetPreferences(ctx context.Context, id, language, theme string) error {
	languages, themes := preferences()
	if !slices.Contains(languages, language) || !slices.Contains(themes, theme) {
		return errors.New("people: no such language or theme")
	}
	_, err := p.update(ctx, id, "user.preferences", func(_ *store.Tx, u *store.User) error {
		u.Language, u.Theme = language, theme
		return nil
	})
	return err
}

// update changes a person in a transaction, and returns the changed person.
func (p *People) update(ctx context.Context, id, action string, fn func(*store.Tx, *store.User) error) (changed store.User, err error) {
	err = p.o.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.UpdateUser(ctx, id, action, func(u *store.User) error {
			err := fn(tx, u)
			changed = *u
			return err
		})
	})
	return changed, err
}

func checkName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return ErrName
	}
	return nil
}

// normalEmail returns an email address as it is stored: in lower case.
func normalEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail || !utf8.ValidString(email) {
		return "", ErrEmail
	}
	return email, nil
}

// Token is a secret that a person or a browser keeps: 256 random bits. The store has only
// its digest. It prints as [redacted].
type Token struct{ text string }

// newToken returns a new token.
func newToken() (Token, error) {
	var bits [32]byte
	if _, err := rand.Read(bits[:]); err != nil {
		return Token{}, fmt.Errorf("people: make token: %w", err)
	}
	return Token{base64.RawURLEncoding.EncodeToString(bits[:])}, nil
}

// ParseToken returns the token of a text that a client sent. The text may be anything.
func ParseToken(text string) Token { return Token{text} }

// Reveal returns the text of the token.
func (t Token) Reveal() string { return t.text }

// String returns [redacted].
func (Token) String() string { return "[redacted]" }

// GoString returns [redacted].
func (Token) GoString() string { return "[redacted]" }

func (t Token) digest() []byte {
	sum := sha256.Sum256([]byte(t.text))
	return sum[:]
}
