package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Taxpayer is a company or person that issues invoices. All environments share it.
type Taxpayer struct {
	ID               string
	RNC              string
	LegalName        string
	TradeName        string
	Branch           string
	Address          string
	Municipality     string
	Province         string
	Phones           []string
	Email            string
	Website          string
	EconomicActivity string
	IncomeType       string
	ElectronicSince  string // a date, or empty when not known
	Logo             []byte
	PageFormat       string // of a printed page when a request names none; empty is letter
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

const taxpayerColumns = `id, rnc, legal_name, trade_name, branch, address, municipality, province, phones,
	email, website, economic_activity, income_type, electronic_since, logo, page_format, created_at, updated_at`

// CreateTaxpayer stores a new taxpayer.
func (tx *Tx) CreateTaxpayer(ctx context.Context, t Taxpayer) error {
	phones, err := json.Marshal(t.Phones)
	if err != nil {
		return fmt.Errorf("store: encode phones: %w", err)
	}
	err = tx.exec(ctx, "create taxpayer", `
		INSERT INTO taxpayers (`+taxpayerColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		t.ID, t.RNC, t.LegalName, t.TradeName, t.Branch, t.Address, t.Municipality, t.Province, string(phones),
		t.Email, t.Website, t.EconomicActivity, t.IncomeType, t.ElectronicSince, t.Logo, t.PageFormat, micros(t.CreatedAt), micros(t.UpdatedAt))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{Scope{TaxpayerID: t.ID}, "taxpayer.create", "taxpayer:" + t.ID, nil, t.auditFields()})
}

// auditFields returns what the audit log shows of a taxpayer.
func (t Taxpayer) auditFields() map[string]any {
	return map[string]any{
		"rnc": t.RNC, "legal_name": t.LegalName, "trade_name": t.TradeName, "branch": t.Branch, "address": t.Address,
		"municipality": t.Municipality, "province": t.Province, "phones": strings.Join(t.Phones, ", "), "email": t.Email, "website": t.Website,
		"economic_activity": t.EconomicActivity, "income_type": t.IncomeType, "electronic_since": t.ElectronicSince,
		"logo_sha256": digestText(t.Logo), "page_format": t.PageFormat,
	}
}

// ErrRNCHasRanges means that a taxpayer with number ranges cannot get another RNC: the tax
// authority has authorised the ranges for the present one.
var ErrRNCHasRanges = errors.New("store: the taxpayer has number ranges of its RNC")

// UpdateTaxpayer replaces all fields of a taxpayer but its id and its creation time.
// The error is ErrNotFound when there is no such taxpayer, and ErrRNCHasRanges when its RNC
// would change although it has number ranges.
func (tx *Tx) UpdateTaxpayer(ctx context.Context, t Taxpayer) error {
	before, err := tx.Taxpayer(ctx, t.ID)
	if err != nil {
		return err
	}
	phones, err := json.Marshal(t.Phones)
	if err != nil {
		return fmt.Errorf("store: encode phones: %w", err)
	}
	err = tx.exec(ctx, "update taxpayer", `
		UPDATE taxpayers
		SET rnc = $2, legal_name = $3, trade_name = $4, branch = $5, address = $6, municipality = $7, province = $8,
			phones = $9, email = $10, website = $11, economic_activity = $12, income_type = $13,
			electronic_since = $14, logo = $15, page_format = $16, updated_at = $17
		WHERE id = $1`,
		t.ID, t.RNC, t.LegalName, t.TradeName, t.Branch, t.Address, t.Municipality, t.Province, string(phones),
		t.Email, t.Website, t.EconomicActivity, t.IncomeType, t.ElectronicSince, t.Logo, t.PageFormat, micros(t.UpdatedAt))
	if err != nil {
		return err
	}
	if t.RNC != before.RNC {
		// The row is locked, so that no range of the taxpayer is added meanwhile.
		ranges, err := one(tx.rows(ctx, "update taxpayer", `SELECT count(*) FROM number_ranges WHERE taxpayer_id = $1`, t.ID), only[int64])
		if err != nil {
			return err
		}
		if ranges > 0 {
			return ErrRNCHasRanges
		}
	}
	return tx.Audit(ctx, AuditEntry{Scope{TaxpayerID: t.ID}, "taxpayer.update", "taxpayer:" + t.ID, before.auditFields(), t.auditFields()})
}

// Taxpayer reads one taxpayer. The error is ErrNotFound when there is none.
func (r reader) Taxpayer(ctx context.Context, id string) (Taxpayer, error) {
	return one(r.rows(ctx, "read taxpayer", `SELECT `+taxpayerColumns+` FROM taxpayers WHERE id = $1`, id), (*Taxpayer).columns)
}

// PageFormat reads the format of a taxpayer's printed pages when a request names none;
// empty is letter. The error is ErrNotFound when there is no such taxpayer.
func (r reader) PageFormat(ctx context.Context, taxpayerID string) (string, error) {
	return one(r.rows(ctx, "read page format", `SELECT page_format FROM taxpayers WHERE id = $1`, taxpayerID), only[string])
}

// Taxpayers lists all taxpayers, the oldest first.
func (r reader) Taxpayers(ctx context.Context) ([]Taxpayer, error) {
	return collect(r.rows(ctx, "list taxpayers", `SELECT `+taxpayerColumns+` FROM taxpayers ORDER BY id`), (*Taxpayer).columns)
}

// TaxpayersWithoutLogos lists all taxpayers, the oldest first. Logo has the first byte
// alone, which says that there is one: lists for people need no more.
func (r reader) TaxpayersWithoutLogos(ctx context.Context) ([]Taxpayer, error) {
	return collect(r.rows(ctx, "list taxpayers", `SELECT `+strings.Replace(taxpayerColumns, "logo", "substr(logo, 1, 1)", 1)+` FROM taxpayers ORDER BY id`), (*Taxpayer).columns)
}

// TaxpayerByRNC returns the taxpayer that receives documents for an RNC in an
// environment. Several taxpayers may have the same RNC. It returns the one whose
// certificate in the environment expires last, and the oldest taxpayer when none has a
// certificate. The error is ErrNotFound when no taxpayer has the RNC.
func (r reader) TaxpayerByRNC(ctx context.Context, env fiscal.Environment, rnc string) (Taxpayer, error) {
	return one(r.rows(ctx, "find taxpayer", `
		SELECT `+taxpayerColumns+` FROM taxpayers WHERE rnc = $2
		ORDER BY (SELECT coalesce(max(not_after), 0) FROM certificates
			WHERE environment = $1 AND taxpayer_id = taxpayers.id AND revoked_at IS NULL) DESC, id LIMIT 1`, env, rnc), (*Taxpayer).columns)
}

func (t *Taxpayer) columns() []any {
	phones := scanned[string](func(text string) error {
		if err := json.Unmarshal([]byte(text), &t.Phones); err != nil {
			return fmt.Errorf("phones of taxpayer %s: %w", t.ID, err)
		}
		return nil
	})
	return []any{
		&t.ID, &t.RNC, &t.LegalName, &t.TradeName, &t.Branch, &t.Address, &t.Municipality, &t.Province, phones, &t.Email, &t.Website,
		&t.EconomicActivity, &t.IncomeType, &t.ElectronicSince, &t.Logo, &t.PageFormat, instant(&t.CreatedAt), instant(&t.UpdatedAt),
	}
}

// LockedTaxpayer reads one taxpayer, which no other transaction that locks it changes until
// this one ends. The error is ErrNotFound when there is none.
func (tx *Tx) LockedTaxpayer(ctx context.Context, id string) (Taxpayer, error) {
	if err := tx.lockTaxpayer(ctx, id); err != nil {
		return Taxpayer{}, err
	}
	return tx.Taxpayer(ctx, id)
}

// lockTaxpayer makes other transactions that lock the same taxpayer wait until this one
// ends. The error is ErrNotFound when there is no such taxpayer.
func (tx *Tx) lockTaxpayer(ctx context.Context, id string) error {
	return tx.writeOne(ctx, "lock taxpayer", ErrNotFound, do(`
		UPDATE taxpayers SET updated_at = updated_at WHERE id = $1`, id))
}
