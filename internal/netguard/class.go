package netguard

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// The classes of calls that got no answer. Others are told a class and never the
// error, which may name addresses of ours.
const (
	ClassRefused = "refused_address" // the guard does not allow it
	ClassDNS     = "dns"             // the name has no address
	ClassConnect = "connect"         // there is no connection to be had
	ClassTLS     = "tls"             // the server does not prove who it is
	ClassTimeout = "timeout"
)

// Class tells of which class an error of a call is.
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
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"): // alerts of TLS
		return ClassTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &networkError) && networkError.Timeout():
		return ClassTimeout
	default:
		return ClassConnect
	}
}
