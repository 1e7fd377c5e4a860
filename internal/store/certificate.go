package store

import (
	"context"
	"crypto/sha256"
	"time"
)

// Certificate is a certificate that a taxpayer signs with, in one environment.
// Its private key is encrypted (sealed) with the master key. A taxpayer has several
// over time: a renewed certificate is imported in addition to the old one.
type Certificate struct {
	Scope
	ID            string
	DER           []byte // the certificate itself, which is public
	Subject       string
	Serial        string // of the certificate, in upper-case hexadecimal
	Person        string // identifier of the person that the certificate names
	NotBefore     time.Time
	NotAfter      time.Time
	Sealed        []byte // the private key, encrypted with the master key
	SealedVersion int64  // version of the private key; it is part of the authenticated data of Sealed
	CreatedAt     time.Time
	RevokedAt     time.Time // zero: not revoked
}

// CertificateState says whether a certificate can sign, and why it cannot.
type CertificateState string

// The states of a certificate.
const (
	CertificateValid       CertificateState = "valid"
	CertificateExpired     CertificateState = "expired"
	CertificateNotYetValid CertificateState = "not_yet_valid"
	CertificateRevoked     CertificateState = "revoked"
)

// State returns the state of the certificate at the given moment.
func (c Certificate) State(now time.Time) CertificateState {
	switch {
	case !c.RevokedAt.IsZero():
		return CertificateRevoked
	case now.After(c.NotAfter):
		return CertificateExpired
	case now.Before(c.NotBefore):
		return CertificateNotYetValid
	}
	return CertificateValid
}

// SigningCertificate returns the certificate to sign with. all are the certificates
// of one taxpayer, the oldest import first. It returns the newest import that is
// valid. When none is valid it returns the newest import, whose state says why it
// cannot sign. It returns false when all is empty.
func SigningCertificate(all []Certificate, now time.Time) (Certificate, bool) {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].State(now) == CertificateValid {
			return all[i], true
		}
	}
	if len(all) == 0 {
		return Certificate{}, false
	}
	return all[len(all)-1], true
}

const certificateColumns = `id, environment, taxpayer_id, certificate, subject, serial, person, not_before, not_after,
	sealed, sealed_version, created_at, revoked_at`

// AddCertificate stores a certificate and returns the stored row. When the taxpayer
// already has the same certificate in the environment, it returns the row of the
// earlier import. The error is ErrNotFound when there is no such taxpayer.
func (tx *Tx) AddCertificate(ctx context.Context, c Certificate) (Certificate, error) {
	if _, err := tx.Taxpayer(ctx, c.TaxpayerID); err != nil {
		return Certificate{}, err
	}
	fingerprint := sha256.Sum256(c.DER)
	err := tx.exec(ctx, "add certificate", `
		INSERT INTO certificates (id, environment, taxpayer_id, fingerprint, certificate, subject, serial, person,
			not_before, not_after, sealed, sealed_version, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (environment, taxpayer_id, fingerprint) DO NOTHING`,
		c.ID, c.Environment, c.TaxpayerID, fingerprint[:], c.DER, c.Subject, c.Serial, c.Person,
		micros(c.NotBefore), micros(c.NotAfter), c.Sealed, c.SealedVersion, micros(c.CreatedAt))
	if err != nil {
		return Certificate{}, err
	}
	stored, err := one(tx.rows(ctx, "read certificate", `
		SELECT `+certificateColumns+`
		FROM certificates WHERE environment = $1 AND taxpayer_id = $2 AND fingerprint = $3`,
		c.Environment, c.TaxpayerID, fingerprint[:]), (*Certificate).columns)
	if err != nil || stored.ID != c.ID {
		return stored, err
	}
	return stored, tx.Audit(ctx, AuditEntry{c.Scope, "certificate.import", "certificate:" + c.ID, nil, c.auditFields()})
}

// auditFields returns what the audit log shows of a certificate.
func (c Certificate) auditFields() map[string]any {
	return map[string]any{
		"subject": c.Subject, "serial": c.Serial, "person": c.Person, "sha256": digestText(c.DER),
		"not_before": auditTime(c.NotBefore), "not_after": auditTime(c.NotAfter), "revoked_at": auditTime(c.RevokedAt),
	}
}

// RevokeCertificate keeps a certificate from signing. It does not change a revoked
// certificate. The error is ErrNotFound when there is no such certificate.
func (tx *Tx) RevokeCertificate(ctx context.Context, scope Scope, id string, at time.Time) error {
	changed, err := tx.write(ctx, "revoke certificate", do(`
		UPDATE certificates SET revoked_at = $4 WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND revoked_at IS NULL`,
		scope.Environment, scope.TaxpayerID, id, micros(at)))
	if err != nil {
		return err
	}
	if !changed {
		_, err := one(tx.rows(ctx, "read certificate", `
			SELECT 1 FROM certificates WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
			scope.Environment, scope.TaxpayerID, id), only[int])
		return err
	}
	return tx.Audit(ctx, AuditEntry{scope, "certificate.revoke", "certificate:" + id, nil, map[string]any{"revoked_at": auditTime(at)}})
}

// RewrapCertificate replaces the encrypted key of a certificate. It is the same key,
// encrypted with another master key.
func (tx *Tx) RewrapCertificate(ctx context.Context, c Certificate) error {
	return tx.exec(ctx, "rewrap certificate", `
		UPDATE certificates SET sealed = $4 WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		c.Environment, c.TaxpayerID, c.ID, c.Sealed)
}

// Certificates lists the certificates of all taxpayers and environments, the
// oldest import first. The operator and the rotation of the master key use it.
func (r reader) Certificates(ctx context.Context) ([]Certificate, error) {
	return collect(r.rows(ctx, "list certificates", `
		SELECT `+certificateColumns+`
		FROM certificates ORDER BY id`), (*Certificate).columns)
}

// CertificatesOf lists the certificates of a taxpayer in an environment, the
// oldest import first.
func (r reader) CertificatesOf(ctx context.Context, scope Scope) ([]Certificate, error) {
	return collect(r.rows(ctx, "list certificates", `
		SELECT `+certificateColumns+`
		FROM certificates WHERE environment = $1 AND taxpayer_id = $2 ORDER BY id`, scope.Environment, scope.TaxpayerID), (*Certificate).columns)
}

func (c *Certificate) columns() []any {
	return []any{
		&c.ID, &c.Environment, &c.TaxpayerID, &c.DER, &c.Subject, &c.Serial, &c.Person, instant(&c.NotBefore),
		instant(&c.NotAfter), &c.Sealed, &c.SealedVersion, instant(&c.CreatedAt), instant(&c.RevokedAt),
	}
}
