package store

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// AllowsAddress reports whether a client at an address may use the credential. Without
// AllowedNetworks every client may.
func (c Credential) AllowsAddress(client netip.Addr) bool {
	client = client.Unmap().WithZone("")
	return len(c.AllowedNetworks) == 0 ||
		slices.ContainsFunc(c.AllowedNetworks, func(n netip.Prefix) bool { return n.Contains(client) })
}

// AllowsCertificate reports whether a client with a certificate may use the credential.
// The fingerprint is the SHA-256 of the certificate in lower-case hexadecimal digits; it
// is empty for a client without a certificate. Without ClientCertificates every client may.
func (c Credential) AllowsCertificate(fingerprint string) bool {
	return len(c.ClientCertificates) == 0 || slices.Contains(c.ClientCertificates, fingerprint)
}

// NetworkText returns the allowed networks as they are stored.
func (c Credential) NetworkText() string {
	texts := make([]string, len(c.AllowedNetworks))
	for i, n := range c.AllowedNetworks {
		texts[i] = n.String()
	}
	return strings.Join(texts, " ")
}

// CertificateText returns the fingerprints of the client certificates as they are stored.
func (c Credential) CertificateText() string { return strings.Join(c.ClientCertificates, " ") }

// parseNetworks parses what NetworkText returns. An error must not allow a client, so
// the credential cannot be read then.
func parseNetworks(text string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for field := range strings.FieldsSeq(text) {
		n, err := netip.ParsePrefix(field)
		if err != nil {
			return nil, fmt.Errorf("store: allowed network of a credential: %w", err)
		}
		networks = append(networks, n)
	}
	return networks, nil
}
