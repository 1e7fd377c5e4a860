package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Role is what a person may do in the console.
type Role string

// The roles of the console.
const (
	RoleOperator   Role = "operator"   // all taxpayers, everything
	RoleAuditor    Role = "auditor"    // all taxpayers, reads everything, changes nothing
	RoleAccountant Role = "accountant" // documents, exports and issuing by hand for its taxpayers
	RoleDeveloper  Role = "developer"  // keys, webhooks, requests and the sandbox for its taxpayers
)

// Roles returns all roles.
func Roles() []Role { return []Role{RoleOperator, RoleAuditor, RoleAccountant, RoleDeveloper} }

// AllTaxpayers reports whether the role sees every taxpayer.
func (r Role) AllTaxpayers() bool { return r == RoleOperator || r == RoleAuditor }

// User is a person who uses the console.
type User struct {
	ID             string
	Name           string
	Email          string // in lower case
	Role           Role
	Environment    fiscal.Environment // empty: every environment
	TaxpayerIDs    []string           // of an accountant or a developer
	Language       string             // es, en, or empty for the language of the browser
	Theme          string             // light, dark, or empty for the theme of the browser
	PasswordHash   string             // empty: the person has not set a password
	SecondFactor   []byte             // the sealed secret; nil: none
	SecondFactorAt time.Time          // zero: the second factor is not in force
	LastStep       int64              // of the newest code of the second factor that was used
	CreatedAt      time.Time
	DisabledAt     time.Time // zero: not disabled
	LastSignInAt   time.Time // zero: never
}

// ErrEmailTaken means that another person has the email address.
var ErrEmailTaken = errors.New("another person has this email address")

const userColumns = `id, name, email, role, environment, language, theme, password_hash, sealed, second_factor_at, last_step,
	created_at, disabled_at, last_sign_in_at`

// CreateUser stores a new person. The error is ErrEmailTaken when another person has the
// email address, and ErrNotFound when there is no such taxpayer.
func (tx *Tx) CreateUser(ctx context.Context, u User) error {
	err := tx.writeOne(ctx, "create user", ErrEmailTaken, do(`
		INSERT INTO users (`+userColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (email) DO NOTHING`,
		u.ID, u.Name, u.Email, string(u.Role), string(u.Environment), u.Language, u.Theme, u.PasswordHash,
		optionalBytes(u.SecondFactor), optionalMicros(u.SecondFactorAt), u.LastStep,
		micros(u.CreatedAt), optionalMicros(u.DisabledAt), optionalMicros(u.LastSignInAt)))
	if err != nil {
		return err
	}
	if err := tx.setUserTaxpayers(ctx, u.ID, u.TaxpayerIDs); err != nil {
		return err
	}
	return tx.Audit(ctx, u.auditEntry("user.create", nil, u.auditFields()))
}

// setUserTaxpayers replaces the taxpayers of a person.
func (tx *Tx) setUserTaxpayers(ctx context.Context, userID string, taxpayerIDs []string) error {
	if err := tx.exec(ctx, "remove taxpayers of user", `DELETE FROM user_taxpayers WHERE user_id = $1`, userID); err != nil {
		return err
	}
	for _, id := range taxpayerIDs {
		if _, err := tx.Taxpayer(ctx, id); err != nil {
			return err
		}
		err := tx.exec(ctx, "add taxpayer of user", `
			INSERT INTO user_taxpayers (user_id, taxpayer_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, userID, id)
		if err != nil {
			return err
		}
	}
	return nil
}

// auditFields returns what the audit log shows of a person.
func (u User) auditFields() map[string]any {
	taxpayers := slices.Sorted(slices.Values(u.TaxpayerIDs))
	return map[string]any{
		"name": u.Name, "email": u.Email, "role": string(u.Role), "environment": string(u.Environment),
		"taxpayers": strings.Join(taxpayers, " "), "language": u.Language, "theme": u.Theme,
		"password": u.PasswordHash != "", "second_factor_at": auditTime(u.SecondFactorAt), "disabled_at": auditTime(u.DisabledAt),
	}
}

// auditEntry returns a change of the person for the audit log.
func (u User) auditEntry(action string, before, after map[string]any) AuditEntry {
	return AuditEntry{Action: action, Object: "user:" + u.ID, Before: before, After: after}
}

// UpdateUser changes a person with fn and records the change in the audit log as action.
// fn gets the stored person, which is locked until the transaction ends, and may change
// every field but the id, the email address and the times of creation and sign-in. The error
// is ErrNotFound when there is no such person or taxpayer, and the error of fn.
func (tx *Tx) UpdateUser(ctx context.Context, id, action string, fn func(*User) error) error {
	if err := tx.exec(ctx, "lock user", `UPDATE users SET id = id WHERE id = $1`, id); err != nil {
		return err
	}
	before, err := tx.User(ctx, id)
	if err != nil {
		return err
	}
	after := before
	after.TaxpayerIDs = slices.Clone(before.TaxpayerIDs)
	if err := fn(&after); err != nil {
		return err
	}
	err = tx.exec(ctx, "update user", `
		UPDATE users SET name = $2, role = $3, environment = $4, language = $5, theme = $6, password_hash = $7,
			sealed = $8, second_factor_at = $9, last_step = $10, disabled_at = $11
		WHERE id = $1`,
		id, after.Name, string(after.Role), string(after.Environment), after.Language, after.Theme, after.PasswordHash,
		optionalBytes(after.SecondFactor), optionalMicros(after.SecondFactorAt), after.LastStep, optionalMicros(after.DisabledAt))
	if err != nil {
		return err
	}
	if !slices.Equal(before.TaxpayerIDs, after.TaxpayerIDs) {
		if err := tx.setUserTaxpayers(ctx, id, after.TaxpayerIDs); err != nil {
			return err
		}
	}
	return tx.Audit(ctx, after.auditEntry(action, before.auditFields(), after.auditFields()))
}

// UseSecondFactor records the step of a code of the second factor, so that no code is used
// twice. It reports false when this step or a later one was used before.
func (tx *Tx) UseSecondFactor(ctx context.Context, id string, step int64) (bool, error) {
	return tx.write(ctx, "use second factor", do(`
		UPDATE users SET last_step = $2 WHERE id = $1 AND last_step < $2`, id, step))
}

// RecordSignIn stores when a person signed in.
func (tx *Tx) RecordSignIn(ctx context.Context, id string, at time.Time) error {
	return tx.exec(ctx, "record sign-in", `UPDATE users SET last_sign_in_at = $2 WHERE id = $1`, id, micros(at))
}

// RewrapUser replaces the sealed secret of a person's second factor. It is the same secret,
// encrypted with another master key.
func (tx *Tx) RewrapUser(ctx context.Context, u User) error {
	return tx.exec(ctx, "rewrap user", `UPDATE users SET sealed = $2 WHERE id = $1`, u.ID, u.SecondFactor)
}

// User reads one person.
func (r reader) User(ctx context.Context, id string) (User, error) {
	return r.oneUser(ctx, `id`, id)
}

// UserByEmail reads the person with an email address, which must be in lower case.
func (r reader) UserByEmail(ctx context.Context, email string) (User, error) {
	return r.oneUser(ctx, `email`, email)
}

func (r reader) oneUser(ctx context.Context, column, value string) (User, error) {
	u, err := one(r.rows(ctx, "read user", `SELECT `+userColumns+` FROM users WHERE `+column+` = $1`, value), (*User).columns)
	if err != nil {
		return User{}, err
	}
	u.TaxpayerIDs, err = r.userTaxpayers(ctx, u.ID)
	return u, err
}

// Users lists all people, the oldest first.
func (r reader) Users(ctx context.Context) ([]User, error) {
	all, err := collect(r.rows(ctx, "list users", `SELECT `+userColumns+` FROM users ORDER BY id`), (*User).columns)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].TaxpayerIDs, err = r.userTaxpayers(ctx, all[i].ID); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// userTaxpayers lists the taxpayers of a person.
func (r reader) userTaxpayers(ctx context.Context, userID string) ([]string, error) {
	return collect(r.rows(ctx, "list taxpayers of user", `
		SELECT taxpayer_id FROM user_taxpayers WHERE user_id = $1 ORDER BY taxpayer_id`, userID), only[string])
}

func (u *User) columns() []any {
	return []any{
		&u.ID, &u.Name, &u.Email, &u.Role, &u.Environment, &u.Language, &u.Theme, &u.PasswordHash, &u.SecondFactor, instant(&u.SecondFactorAt),
		&u.LastStep, instant(&u.CreatedAt), instant(&u.DisabledAt), instant(&u.LastSignInAt),
	}
}
