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
	_, err = tx.q.ExecContext(ctx, `
		INSERT INTO taxpayers (`+taxpayerColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		t.ID, t.RNC, t.LegalName, t.TradeName, t.Branch, t.Address, t.Municipality, t.Province, string(phones),
		t.Email, t.Website, t.EconomicActivity, t.IncomeType, t.ElectronicSince, t.Logo, t.PageFormat, micros(t.CreatedAt), micros(t.UpdatedAt))
	if err != nil {
		return tx.d.wrap("create taxpayer", err)
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
	_, err = tx.q.ExecContext(ctx, `
		UPDATE taxpayers
		SET rnc = $2, legal_name = $3, trade_name = $4, branch = $5, address = $6, municipality = $7, province = $8,
			phones = $9, email = $10, website = $11, economic_activity = $12, income_type = $13,
			electronic_since = $14, logo = $15, page_format = $16, updated_at = $17
		WHERE id = $1`,
		t.ID, t.RNC, t.LegalName, t.TradeName, t.Branch, t.Address, t.Municipality, t.Province, string(phones),
		t.Email, t.Website, t.EconomicActivity, t.IncomeType, t.ElectronicSince, t.Logo, t.PageFormat, micros(t.UpdatedAt))
	if err != nil {
		return tx.d.wrap("update taxpayer", err)
	}
	if t.RNC != before.RNC {
		// The row is locked, so that no range of the taxpayer is added meanwhile.
		var ranges int64
		if err := tx.q.QueryRowContext(ctx, `SELECT count(*) FROM number_ranges WHERE taxpayer_id = $1`, t.ID).Scan(&ranges); err != nil {
			return tx.d.wrap("update taxpayer", err)
		}
		if ranges > 0 {
			return ErrRNCHasRanges
		}
	}
	return tx.Audit(ctx, AuditEntry{Scope{TaxpayerID: t.ID}, "taxpayer.update", "taxpayer:" + t.ID, before.auditFields(), t.auditFields()})
}

// Taxpayer reads one taxpayer. The error is ErrNotFound when there is none.
func (r reader) Taxpayer(ctx context.Context, id string) (Taxpayer, error) {
	t, err := scanTaxpayer(r.q.QueryRowContext(ctx, `SELECT `+taxpayerColumns+` FROM taxpayers WHERE id = $1`, id))
	return t, r.d.wrap("read taxpayer", err)
}

// PageFormat reads the format of a taxpayer's printed pages when a request names none;
// empty is letter. The error is ErrNotFound when there is no such taxpayer.
func (r reader) PageFormat(ctx context.Context, taxpayerID string) (string, error) {
	var format string
	err := r.q.QueryRowContext(ctx, `SELECT page_format FROM taxpayers WHERE id = $1`, taxpayerID).Scan(&format)
	return format, r.d.wrap("read page format", err)
}

// Taxpayers lists all taxpayers, the oldest first.
func (r reader) Taxpayers(ctx context.Context) ([]Taxpayer, error) {
	rows, err := r.q.QueryContext(ctx, `SELECT `+taxpayerColumns+` FROM taxpayers ORDER BY id`)
	if err != nil {
		return nil, r.d.wrap("list taxpayers", err)
	}
	return collect(r.d, "list taxpayers", rows, scanTaxpayer)
}

// TaxpayersWithoutLogos lists all taxpayers, the oldest first. Logo has the first byte
// alone, which says that there is one: lists for people need no more.
func (r reader) TaxpayersWithoutLogos(ctx context.Context) ([]Taxpayer, error) {
	rows, err := r.q.QueryContext(ctx, `SELECT `+strings.Replace(taxpayerColumns, "logo", "substr(logo, 1, 1)", 1)+` FROM taxpayers ORDER BY id`)
	if err != nil {
		return nil, r.d.wrap("list taxpayers", err)
	}
	return collect(r.d, "list taxpayers", rows, scanTaxpayer)
}

// TaxpayerByRNC returns the taxpayer that receives documents for an RNC in an
// environment. Several taxpayers may have the same RNC. It returns the one whose
// certificate in the environment expires last, and the oldest taxpayer when none has a
// certificate. The error is ErrNotFound when no taxpayer has the RNC.
func (r reader) TaxpayerByRNC(ctx context.Context, env fiscal.Environment, rnc string) (Taxpayer, error) {
	t, err := scanTaxpayer(r.q.QueryRowContext(ctx, `
		SELECT `+taxpayerColumns+` FROM taxpayers WHERE rnc = $2
		ORDER BY (SELECT coalesce(max(not_after), 0) FROM certificates
			WHERE environment = $1 AND taxpayer_id = taxpayers.id AND revoked_at IS NULL) DESC, id LIMIT 1`, env, rnc))
	return t, r.d.wrap("find taxpayer", err)
}

func scanTaxpayer(r row) (Taxpayer, error) {
	var t Taxpayer
	var phones string
	var created, updated int64
	err := r.Scan(&t.ID, &t.RNC, &t.LegalName, &t.TradeName, &t.Branch, &t.Address, &t.Municipality, &t.Province, &phones,
		&t.Email, &t.Website, &t.EconomicActivity, &t.IncomeType, &t.ElectronicSince, &t.Logo, &t.PageFormat, &created, &updated)
	if err != nil {
		return Taxpayer{}, err
	}
	t.CreatedAt, t.UpdatedAt = fromMicros(created), fromMicros(updated)
	if err := json.Unmarshal([]byte(phones), &t.Phones); err != nil {
		return Taxpayer{}, fmt.Errorf("phones of taxpayer %s: %w", t.ID, err)
	}
	return t, nil
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
	return tx.writeOne(ctx, "lock taxpayer", ErrNotFound, statement{`
		UPDATE taxpayers SET updated_at = updated_at WHERE id = $1`, []any{id}})
}
