package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type certificateCmd struct {
	Import certificateImportCmd `cmd:"" help:"Import a certificate with its private key from a PKCS#12 file."`
	List   certificateListCmd   `cmd:"" help:"List the certificates, without their keys."`
	Revoke certificateRevokeCmd `cmd:"" help:"Revoke a certificate. It never signs again."`
}

// expiryWarning is how long before the end of a certificate the import warns.
const expiryWarning = 60 * 24 * time.Hour

// certificateView is a certificate in JSON, without its private key.
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
	RevokedAt   string                 `json:"revoked_at,omitempty"`
}

func newCertificateView(c store.Certificate, now time.Time) certificateView {
	return certificateView{
		ID: c.ID, Subject: c.Subject, Serial: c.Serial, Person: c.Person,
		NotBefore: formatTime(c.NotBefore), NotAfter: formatTime(c.NotAfter),
		TaxpayerID: c.TaxpayerID, Environment: c.Environment, State: c.State(now), CreatedAt: formatTime(c.CreatedAt),
		RevokedAt: formatTime(c.RevokedAt),
	}
}

type certificateImportCmd struct {
	Taxpayer     string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment  string `required:"" help:"certification or production; the sandbox signs nothing." placeholder:"E"`
	PasswordFile string `required:"" help:"File whose first line is the password of the PKCS#12 file." placeholder:"FILE"`
	File         string `arg:"" name:"file" help:"PKCS#12 file (.p12 or .pfx) with the certificate and its private key."`
}

// Run imports a certificate. It stores the certificate and the encrypted private
// key, and does not store the password.
func (c certificateImportCmd) Run(t *terminal) error {
	env, err := liveEnvironment(c.Environment, lang.Messagef("the sandbox signs nothing and needs no certificate", "el sandbox no firma nada y no necesita certificado"))
	if err != nil {
		return err
	}
	t.warnOfReaders(c.PasswordFile)
	id, err := openP12(c.File, c.PasswordFile)
	if err != nil {
		return err
	}
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) error {
		scope := store.Scope{Environment: env, TaxpayerID: c.Taxpayer}
		kept, err := access.NewCertificates(s, keys, s.Now).Import(t.ctx, scope, id)
		if err != nil {
			return missing(c.explain(err), "taxpayer", c.Taxpayer)
		}
		now := s.Now()
		if left := kept.NotAfter.Sub(now); left < expiryWarning {
			t.warn(lang.Messagef("the certificate ends on %s, in %d days: renew it and import the new one, the old one can stay",
				"el certificado vence el %s, en %d días: renuévelo e importe el nuevo; el anterior puede quedarse", formatTime(kept.NotAfter), int(left/(24*time.Hour))))
		}
		return t.answer(newCertificateView(kept, now), func(w io.Writer) {
			line(w, "id", kept.ID)
			line(w, "subject", kept.Subject)
			line(w, "serial", kept.Serial)
			line(w, "valid", formatTime(kept.NotBefore)+" – "+formatTime(kept.NotAfter))
		})
	})
}

// explain adds what to do to the errors of an import.
func (c certificateImportCmd) explain(err error) error {
	switch {
	case errors.Is(err, access.ErrCertificateExpired):
		return lang.Errorf("%s: %s; import the renewed one", "%s: %s; importe el renovado", c.File, err)
	case errors.Is(err, access.ErrCertificateNotYetValid):
		return lang.Errorf("%s: %s; import it then, and check the clock of this machine",
			"%s: %s; impórtelo entonces y revise el reloj de esta máquina", c.File, err)
	case errors.Is(err, access.ErrCertificateRevoked):
		return lang.Errorf("%s: %s; a revoked certificate cannot be used again: import a new one",
			"%s: %s; un certificado revocado no se puede volver a usar: importe uno nuevo", c.File, err)
	case errors.Is(err, access.ErrNoPerson):
		return lang.Errorf("%s: %s; ask the certification authority for a certificate for tax procedures",
			"%s: %s; solicite a la entidad de certificación un certificado para procedimientos tributarios", c.File, err)
	}
	return err
}

type certificateRevokeCmd struct {
	ID string `arg:"" help:"Id of the certificate."`
	reasonFlag
}

// Run revokes a certificate.
func (c certificateRevokeCmd) Run(t *terminal) error {
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) error {
		revoked, err := access.NewCertificates(s, keys, s.Now).Revoke(c.context(t.ctx), c.ID)
		if err != nil {
			return missing(err, "certificate", c.ID)
		}
		t.warn(lang.Messagef("the certification authority does not know of this: have the certificate revoked there too",
			"la entidad de certificación no se entera de esto: haga revocar el certificado allí también"))
		return t.confirm(newCertificateView(revoked, s.Now()), lang.Messagef("revoked; every server stops signing with it within 5 seconds",
			"revocado; todos los servidores dejan de firmar con él en 5 segundos"))
	})
}

type certificateListCmd struct{}

// Run lists the certificates of all taxpayers.
func (certificateListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Certificates(t.ctx)
		if err != nil {
			return err
		}
		now := s.Now()
		views := mapEach(all, func(c store.Certificate) certificateView { return newCertificateView(c, now) })
		b := newTable("CERTIFICATE", "ENVIRONMENT", "TAXPAYER", "STATE", "ENDS", "SERIAL", "SUBJECT")
		for _, v := range views {
			b.add(v.ID, string(v.Environment), v.TaxpayerID, certificateState(v.State).In(t.language), v.NotAfter, v.Serial, v.Subject)
		}
		return t.list(views, b)
	})
}

// certificateState returns the state of a certificate for people.
func certificateState(state store.CertificateState) lang.Message {
	switch state {
	case store.CertificateValid:
		return lang.Messagef("valid", "vigente")
	case store.CertificateExpired:
		return lang.Messagef("expired", "vencido")
	case store.CertificateNotYetValid:
		return lang.Messagef("not_yet_valid", "todavía no vigente")
	case store.CertificateRevoked:
		return lang.Messagef("revoked", "revocado")
	}
	return lang.Literal(string(state))
}

const (
	maxP12          = 1 << 20
	maxPasswordFile = 4096
)

// openP12 reads a PKCS#12 file. The password is the first line of another file.
// The errors say what to do, and never contain the password.
func openP12(path, passwordFile string) (*xmlsig.Identity, error) {
	file, err := readBounded(path, maxP12)
	if err != nil {
		return nil, err
	}
	password, err := readPassword(passwordFile)
	if err != nil {
		return nil, lang.Errorf("--password-file: %s", "--password-file: %s", err)
	}
	id, err := xmlsig.OpenP12(file, password)
	if err != nil {
		return nil, explainP12(err, path, passwordFile)
	}
	return id, nil
}

// explainP12 adds what to do to an error of a PKCS#12 file.
func explainP12(err error, path, passwordFile string) error {
	why := strings.TrimPrefix(err.Error(), "xmlsig: ")
	switch {
	case errors.Is(err, xmlsig.ErrPassword):
		return lang.Errorf("%s: %s: the first line of %s must be the password alone",
			"%s: %s: la primera línea de %s debe ser solo la contraseña", path, lang.Translated(why, "la contraseña no abre el archivo"), passwordFile)
	case errors.Is(err, xmlsig.ErrNotP12):
		return lang.Errorf("%s: %s: give the .p12 or .pfx file as the certification authority issued it",
			"%s: %s: indique el archivo .p12 o .pfx tal como lo emitió la entidad de certificación", path, lang.Translated(why, "el archivo no es un PKCS#12 que se pueda leer"))
	case errors.Is(err, xmlsig.ErrNoKey):
		return lang.Errorf("%s: %s: export the certificate together with its private key",
			"%s: %s: exporte el certificado junto con su clave privada", path, lang.Translated(why, "el archivo no tiene una clave privada que se pueda usar"))
	case errors.Is(err, xmlsig.ErrKeyMismatch):
		return lang.Errorf("%s: %s: export the certificate that belongs to the key",
			"%s: %s: exporte el certificado que corresponde a la clave", path, lang.Translated(why, "el certificado no corresponde a la clave privada"))
	case errors.Is(err, xmlsig.ErrWeakKey):
		return lang.Errorf("%s: %s: ask the certification authority for a new certificate",
			"%s: %s: solicite un certificado nuevo a la entidad de certificación", path, lang.Translated(why, "la clave debe ser RSA de 2048 bits o más"))
	}
	return lang.Errorf("%s: %s", "%s: %s", path, why)
}

// readPassword reads the first line of a file, without the line end. Spaces are
// part of the password.
func readPassword(path string) (string, error) {
	text, err := readBounded(path, maxPasswordFile)
	if err != nil {
		return "", err
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(first, []byte("\r"))), nil
}

// readBounded reads a file. It fails when the file is larger than limit bytes.
func readBounded(path string, limit int64) (b []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = lang.Errorf("%s is larger than %d bytes", "%s es mayor de %d bytes", path, limit)
	}
	return b, err
}

// warnOfReaders warns when other users of this machine may read a file with a
// secret. The command goes on.
func (t *terminal) warnOfReaders(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe has no other readers; opening the file reports the error
		return
	}
	if perm := info.Mode().Perm(); perm&0o044 != 0 {
		t.warn(lang.Messagef("other users may read %s (mode %04o): run chmod 600 %s, or remove it once the import is done",
			"otros usuarios pueden leer %s (modo %04o): ejecute chmod 600 %s, o elimínelo después de importar", path, perm, path))
	}
}
