package xmlsig

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"
)

// maxSigner is the largest length of an identifier of a signer.
const maxSigner = 64

// Signer returns an identifier of the holder of a certificate that no holder of another
// identity has. It is the serial number of the subject: the digits alone when it is a
// Dominican cédula or RNC (IDCDO-00112345678, TINDO-131880681, VATDO-131880681, or
// without a prefix), and otherwise as it stands, so that a passport or an identifier of
// another country is never mistaken for a cédula. A certificate without a serial number
// has an identifier of its own.
func Signer(c *x509.Certificate) string {
	serial := strings.TrimSpace(c.Subject.SerialNumber)
	number := serial
	for _, prefix := range [...]string{"IDCDO-", "TINDO-", "VATDO-"} {
		if rest, ok := strings.CutPrefix(serial, prefix); ok {
			number = rest
		}
	}
	number = strings.NewReplacer("-", "", " ", "").Replace(number)
	if strings.Trim(number, "0123456789") != "" {
		number = serial
	}
	if number != "" && len(number) <= maxSigner && strings.IndexFunc(number, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
		return number
	}
	sum := sha256.Sum256(c.Raw)
	return "certificate-" + hex.EncodeToString(sum[:16])
}
