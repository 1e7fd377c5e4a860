package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

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
		return netip.Prefix{}, wrongUsage("--allow %s: the network is %s",
			"--allow %s: la red es %s", text, network.Masked())
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
		return "", lang.Errorf("%s has no certificate in PEM or DER: %s",
			"%s no tiene un certificado en PEM o DER: %s", path, err)
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
