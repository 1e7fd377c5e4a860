package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type certificateCmd struct {
	Import certificateImportCmd `cmd:"" help:"Import a certificate with its private key from a PKCS#12 file."`
	List   certificateListCmd   `cmd:"" help:"List the certificates, without their keys."`
}

// expiryNotice is how long before its end a certificate is warned about.
const expiryNotice = 60 * 24 * time.Hour

// certificateView is a certificate in JSON. Nothing of its key is there.
type certificateView struct {
	ID          string                 `json:"id"`
	Subject     string                 `json:"subject"`
	Serial      string                 `json:"serial"`
	Person      string                 `json:"person"`
	NotBefore   string                 `json:"not_before"`
	NotAfter    string                 `json:"not_after"`
	TaxpayerID  string                 `json:"taxpayer_id"`
	Environment fiscal.Environment     `json:"environment"`
	State       store.CertificateState `json:"state"`
	CreatedAt   string                 `json:"created_at"`
}

func newCertificateView(c store.Certificate, now time.Time) certificateView {
	return certificateView{
		ID: c.ID, Subject: c.Subject, Serial: c.Serial, Person: c.Person,
		NotBefore: moment(c.NotBefore), NotAfter: moment(c.NotAfter),
		TaxpayerID: c.TaxpayerID, Environment: c.Environment, State: c.State(now), CreatedAt: moment(c.CreatedAt),
	}
}

type certificateImportCmd struct {
	Taxpayer     string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment  string `required:"" help:"certification or production; the sandbox signs nothing." placeholder:"E"`
	PasswordFile string `required:"" help:"File whose first line is the password of the PKCS#12 file." placeholder:"FILE"`
	File         string `arg:"" name:"file" help:"PKCS#12 file (.p12 or .pfx) with the certificate and its private key."`
}

// Run imports a certificate. Of the file it keeps the certificate and, sealed,
// the private key; of the password nothing.
func (c certificateImportCmd) Run(t *terminal) error {
	env := fiscal.Environment(c.Environment)
	if env != fiscal.Certification && env != fiscal.Production {
		return usageError("--environment: want certification or production; the sandbox signs nothing and needs no certificate")
	}
	t.warnOfReaders(c.PasswordFile)
	id, err := openP12(c.File, c.PasswordFile)
	if err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		keys := t.masterKeys()
		if _, err := t.keyring(s, keys); err != nil {
			return err
		}
		scope := store.Scope{Environment: env, TaxpayerID: c.Taxpayer}
		kept, err := access.NewCertificates(s, keys, time.Now).Import(t.ctx, scope, id)
		switch {
		case errors.Is(err, access.ErrCertificateExpired):
			return fmt.Errorf("%s: %w; import the renewed one", c.File, err)
		case errors.Is(err, access.ErrCertificateNotYetValid):
			return fmt.Errorf("%s: %w; import it then, and look whether the clock of this machine is right", c.File, err)
		case errors.Is(err, access.ErrNoPerson):
			return fmt.Errorf("%s: %w; ask its issuer for a certificate for tax procedures", c.File, err)
		case err != nil:
			return missing(err, "taxpayer", c.Taxpayer)
		}
		now := time.Now()
		if left := kept.NotAfter.Sub(now); left < expiryNotice {
			t.warn("the certificate ends on %s, in %d days: have it renewed and import the new one beside it", moment(kept.NotAfter), int(left/(24*time.Hour)))
		}
		return t.answer(newCertificateView(kept, now), func(w io.Writer) {
			line(w, "id", kept.ID)
			line(w, "subject", kept.Subject)
			line(w, "serial", kept.Serial)
			line(w, "valid", moment(kept.NotBefore)+" to "+moment(kept.NotAfter))
		})
	})
}

type certificateListCmd struct{}

// Run lists certificates.
func (certificateListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Certificates(t.ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		views := make([]certificateView, len(all))
		for i, c := range all {
			views[i] = newCertificateView(c, now)
		}
		return t.answer(views, func(w io.Writer) {
			for _, v := range views {
				line(w, v.ID, string(v.Environment), v.TaxpayerID, string(v.State), v.NotAfter, v.Serial, v.Subject)
			}
		})
	})
}
