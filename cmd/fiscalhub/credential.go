package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type credentialCmd struct {
	Create credentialCreateCmd `cmd:"" help:"Issue an API key. It is shown only this time."`
	List   credentialListCmd   `cmd:"" help:"List the credentials, without their keys."`
	Rotate credentialRotateCmd `cmd:"" help:"Issue a successor with the same rights; the old key ends after the overlap."`
	Revoke credentialRevokeCmd `cmd:"" help:"Revoke a credential now."`

	Suspend credentialSuspensionCmd `cmd:"" help:"Refuse the requests of a credential until it is resumed."`
	Resume  credentialSuspensionCmd `cmd:"" help:"End the suspension of a credential."`
}

// credentialView is a credential in JSON. APIKey is set only when it is new.
type credentialView struct {
	ID          string             `json:"id"`
	APIKey      string             `json:"api_key,omitempty"`
	Prefix      string             `json:"prefix"`
	TaxpayerID  string             `json:"taxpayer_id"`
	Environment fiscal.Environment `json:"environment"`
	Scopes      []apikey.Scope     `json:"scopes"`
	RateLimit   *int64             `json:"rate_limit"`
	CreatedAt   string             `json:"created_at"`
	ExpiresAt   *string            `json:"expires_at"`
	RevokedAt   *string            `json:"revoked_at"`
	LastUsedAt  *string            `json:"last_used_at"`
	Suspended   string             `json:"suspended,omitempty"` // credential, taxpayer or environment
	credentialClients
}

func newCredentialView(c store.Credential) credentialView {
	v := credentialView{
		ID: c.ID, Prefix: c.Prefix, TaxpayerID: c.TaxpayerID, Environment: c.Environment, Scopes: c.Scopes,
		CreatedAt: formatTime(c.CreatedAt), ExpiresAt: optionalTime(c.ExpiresAt),
		RevokedAt: optionalTime(c.RevokedAt), LastUsedAt: optionalTime(c.LastUsedAt),
		Suspended: c.Suspended.Kind(), credentialClients: newCredentialClients(c),
	}
	if c.RateLimit > 0 {
		v.RateLimit = &c.RateLimit
	}
	return v
}

// answerKey prints a new credential with its key.
func (t *terminal) answerKey(key apikey.Key, c store.Credential) error {
	v := newCredentialView(c)
	v.APIKey = key.Reveal()
	return t.answer(v, func(w io.Writer) {
		line(w, "id", v.ID)
		line(w, "api key", v.APIKey)
		line(w, "", storeNow().In(t.language))
	})
}

// withCredentials opens the database and runs fn with the service for
// credentials.
func (t *terminal) withCredentials(fn func(*access.Credentials) error) error {
	return t.withKeys(func(s *store.Store, _ *seal.Keys, ring *access.Keyring) error {
		return fn(access.NewCredentials(s, ring, s.Now))
	})
}

type credentialCreateCmd struct {
	Taxpayer    string   `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string   `required:"" help:"sandbox, certification or production." enum:"sandbox,certification,production"`
	Scope       []string `required:"" help:"Right of the key; may be repeated: invoices.write, invoices.read, ecf.submit, ecf.read, webhooks.manage." placeholder:"SCOPE"`
	Expires     string   `help:"When the key expires. By default never." placeholder:"RFC3339"`
	RateLimit   int64    `name:"requests-per-minute" help:"Rate limit of this credential. By default that of the service." placeholder:"N"`
	clientFlags
}

// Run issues a credential.
func (c credentialCreateCmd) Run(t *terminal) error {
	terms := access.Terms{TaxpayerID: c.Taxpayer, Environment: fiscal.Environment(c.Environment), RateLimit: c.RateLimit}
	var wrong []lang.Message
	for _, name := range splitList(c.Scope) {
		scope, err := apikey.ParseScope(name)
		if err != nil {
			wrong = append(wrong, lang.Messagef("--scope: there is no scope %q; use some of %s", "--scope: no existe el alcance %q; use algunos de %s", name, scopeList(apikey.AllScopes(), ", ")))
		}
		terms.Scopes = append(terms.Scopes, scope)
	}
	if c.Expires != "" {
		var err error
		if terms.ExpiresAt, err = time.Parse(time.RFC3339, c.Expires); err != nil {
			wrong = append(wrong, lang.Messagef("--expires must be an instant like 2027-12-31T23:59:59Z",
				"--expires debe ser un instante como 2027-12-31T23:59:59Z"))
		}
	}
	if c.RateLimit < 0 {
		wrong = append(wrong, lang.Messagef("--requests-per-minute must be positive", "--requests-per-minute debe ser mayor que 0"))
	}
	err := c.apply(&terms)
	if len(wrong) > 0 {
		if err != nil {
			wrong = append(wrong, lang.OfError(err))
		}
		return usageError{lang.Join(wrong, "; ")}
	}
	if err != nil {
		return err
	}
	return t.withCredentials(func(all *access.Credentials) error {
		key, made, err := all.Issue(t.ctx, terms)
		if errors.Is(err, access.ErrExpiryPast) {
			return lang.Errorf("--expires: %s is in the past", "--expires: %s está en el pasado", c.Expires)
		}
		if err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		return t.answerKey(key, made)
	})
}

// scopeList returns the names of scopes with a separator between them.
func scopeList(scopes []apikey.Scope, separator string) string {
	return strings.Join(mapEach(scopes, func(s apikey.Scope) string { return string(s) }), separator)
}

type credentialListCmd struct{}

// Run lists the credentials of all taxpayers.
func (credentialListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Credentials(t.ctx)
		if err != nil {
			return err
		}
		now := s.Now()
		views := mapEach(all, newCredentialView)
		b := newTable("CREDENTIAL", "PREFIX", "ENVIRONMENT", "TAXPAYER", "STATE", "SCOPES")
		for i, c := range all {
			state := lang.Messagef("valid", "vigente")
			switch {
			case !c.Live(now):
				state = lang.Messagef("ended", "terminada")
			case c.Suspended != "":
				state = lang.Messagef("suspended", "suspendida")
			}
			b.add(c.ID, c.Prefix, string(c.Environment), c.TaxpayerID, state.In(t.language), scopeList(views[i].Scopes, ","))
		}
		return t.list(views, b)
	})
}

type credentialRotateCmd struct {
	ID      string        `arg:"" help:"Id of the credential."`
	Overlap time.Duration `help:"How long the old key stays valid: 0 ends it at once, at most 720h." default:"24h"`
}

// Run rotates a credential.
func (c credentialRotateCmd) Run(t *terminal) error {
	return t.withCredentials(func(all *access.Credentials) error {
		key, made, err := all.Rotate(t.ctx, c.ID, c.Overlap)
		if err != nil {
			return missing(err, "credential", c.ID)
		}
		return t.answerKey(key, made)
	})
}

type credentialRevokeCmd struct {
	ID string `arg:"" help:"Id of the credential."`
}

// Run revokes a credential.
func (c credentialRevokeCmd) Run(t *terminal) error {
	return t.withCredentials(func(all *access.Credentials) error {
		if err := all.Revoke(t.ctx, c.ID); err != nil {
			return missing(err, "credential", c.ID)
		}
		ended, err := all.Get(t.ctx, c.ID)
		if err != nil {
			return err
		}
		return t.confirm(newCredentialView(ended), lang.Messagef("revoked; every server refuses it within 5 seconds",
			"revocada; todos los servidores la rechazan en 5 segundos"))
	})
}

// clientFlags say which clients may use a credential.
type clientFlags struct {
	Allow                   []string `help:"Network or address from which the key may be used; may be repeated. By default every address." placeholder:"CIDR"`
	ClientCertificate       []string `name:"client-certificate" help:"Certificate file (PEM or DER) that the client must have; may be repeated. Needs serve --tls-client-certificates." placeholder:"FILE" sep:"none"`
	ClientCertificateSHA256 []string `name:"client-certificate-sha256" env:"FISCALHUB_CLIENT_CERTIFICATE_SHA256" help:"SHA-256 fingerprint of such a certificate, instead of its file; may be repeated." placeholder:"HEX"`
}

// maxClients limits the networks, and the client certificates, of a credential.
const maxClients = 50

// apply parses the flags into the terms of a credential.
func (c clientFlags) apply(terms *access.Terms) error {
	for _, text := range splitList(c.Allow) {
		network, err := parseNetwork(text)
		if err != nil {
			return err
		}
		if !slices.Contains(terms.AllowedNetworks, network) {
			terms.AllowedNetworks = append(terms.AllowedNetworks, network)
		}
	}
	add := func(fingerprint string) {
		if !slices.Contains(terms.ClientCertificates, fingerprint) {
			terms.ClientCertificates = append(terms.ClientCertificates, fingerprint)
		}
	}
	for _, path := range c.ClientCertificate {
		fingerprint, err := certificateFingerprint(path)
		if err != nil {
			return lang.Errorf("--client-certificate: %s", "--client-certificate: %s", err)
		}
		add(fingerprint)
	}
	for _, text := range splitList(c.ClientCertificateSHA256) {
		digest, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
		if err != nil || len(digest) != sha256.Size {
			return wrongUsage("--client-certificate-sha256 must be 64 hexadecimal digits",
				"--client-certificate-sha256 debe ser 64 dígitos hexadecimales")
		}
		add(hex.EncodeToString(digest))
	}
	if len(terms.AllowedNetworks) > maxClients || len(terms.ClientCertificates) > maxClients {
		return wrongUsage("a credential has at most %d networks and %d client certificates",
			"una credencial tiene un máximo de %d redes y %d certificados de cliente", maxClients, maxClients)
	}
	return nil
}

// parseNetwork parses a network, or an address alone. It returns a usageError for a network
// whose address has bits outside of its mask, because that is usually a mistake.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil || network.Addr().Is4In6():
		return netip.Prefix{}, wrongUsage("--allow must be a network like 203.0.113.0/24, or an address",
			"--allow debe ser una red como 203.0.113.0/24 o una dirección")
	case network != network.Masked():
		return netip.Prefix{}, wrongUsage("--allow %s: the network is %s", "--allow %s: la red es %s", text, network.Masked())
	}
	return network, nil
}

// certificateFingerprint returns the SHA-256 of the first certificate of a file.
func certificateFingerprint(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if block, _ := pem.Decode(content); block != nil {
		content = block.Bytes
	}
	if _, err := x509.ParseCertificate(content); err != nil {
		return "", lang.Errorf("%s has no certificate in PEM or DER: %s", "%s no tiene un certificado en PEM o DER: %s", path, err)
	}
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:]), nil
}

// credentialClients shows in JSON which clients may use a credential. A credential that
// every client may use has neither field.
type credentialClients struct {
	Allow              []string `json:"allow,omitempty"`
	ClientCertificates []string `json:"client_certificates,omitempty"`
}

func newCredentialClients(c store.Credential) credentialClients {
	return credentialClients{
		Allow:              mapEach(c.AllowedNetworks, netip.Prefix.String),
		ClientCertificates: c.ClientCertificates,
	}
}
