package netguard

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// The classes of calls that got no answer. Show integrators the class and never the
// error itself, which may contain internal addresses.
const (
	ClassRefused = "refused_address" // the guard does not allow the address
	ClassDNS     = "dns"             // the name has no address
	ClassConnect = "connect"         // no connection could be made
	ClassTLS     = "tls"             // the TLS handshake or the check of the certificate failed
	ClassTimeout = "timeout"
)

// Class returns the class of an error of a call.
func Class(err error) string {
	var (
		dns          *net.DNSError
		certificate  *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		op           *net.OpError
		networkError net.Error
	)
	switch {
	case errors.Is(err, ErrAddress):
		return ClassRefused
	case errors.As(err, &dns):
		return ClassDNS
	case errors.As(err, &certificate), errors.As(err, &record):
		return ClassTLS
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"): // TLS alerts
		return ClassTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &networkError) && networkError.Timeout():
		return ClassTimeout
	default:
		return ClassConnect
	}
}
