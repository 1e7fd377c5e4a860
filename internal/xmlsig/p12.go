package xmlsig

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"strings"

	"software.sslmate.com/src/go-pkcs12"
)

// Why a PKCS#12 file is refused, besides ErrKeyMismatch and ErrWeakKey.
var (
	// ErrPassword means that the password is wrong.
	ErrPassword = errors.New("xmlsig: the password does not open the file")
	// ErrNotP12 means that the file is not PKCS#12, is damaged, or has a form
	// that is not supported.
	ErrNotP12 = errors.New("xmlsig: not a PKCS#12 file of a supported form")
	// ErrNoKey means that the file has only certificates.
	ErrNoKey = errors.New("xmlsig: the file has no private key")
)

const (
	maxP12    = 1 << 20
	maxRounds = 10_000_000 // of key derivation, which take a second or two; usual files have thousands
)

// OpenP12 reads the private key of a PKCS#12 file and the certificate of that
// key, which may be in any position among other certificates. It does not check
// dates, so that an expired certificate can be shown.
func OpenP12(file []byte, password string) (*Identity, error) {
	if len(file) > maxP12 {
		return nil, refuse(ErrNotP12, "the file has %d bytes; the limit is %d", len(file), maxP12)
	}
	if err := checkP12(file); err != nil {
		return nil, err
	}
	key, first, others, err := pkcs12.DecodeChain(file, password)
	if err != nil {
		return nil, p12Error(err, password)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, refuse(ErrNoKey, "the key in the file cannot sign")
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil, refuse(ErrNoKey, "the key in the file cannot be compared with certificates")
	}
	// The file may have an old and a renewed certificate of the same key. The one
	// that expires later is used.
	var own *x509.Certificate
	for _, c := range append(others, first) {
		if public.Equal(c.PublicKey) && (own == nil || c.NotAfter.After(own.NotAfter)) {
			own = c
		}
	}
	if own == nil {
		return nil, &refusalError{kind: ErrKeyMismatch, text: "the file has no certificate for its private key"}
	}
	return NewIdentity(own, signer)
}

// p12Error converts an error of the library. For a missing key the library has no
// error value, only a text; a test checks that the text has not changed.
func p12Error(err error, password string) error {
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return ErrPassword
	case strings.ContainsFunc(password, func(r rune) bool { return r > 0xffff }):
		return refuse(ErrPassword, "it has a character beyond U+FFFF, which PKCS#12 does not support")
	case err.Error() == "pkcs12: private key missing":
		return ErrNoKey
	}
	return &refusalError{ErrNotP12, err, strings.TrimPrefix(err.Error(), "pkcs12: ")}
}

// The outer structure of a file (RFC 7292, section 4).
type (
	pfx struct {
		Version  int
		AuthSafe asn1.RawValue
		Mac      struct {
			Mac struct {
				Algorithm pkix.AlgorithmIdentifier
				Digest    []byte
			}
			Salt   []byte
			Rounds int `asn1:"optional,default:1"`
		} `asn1:"optional"`
	}
	// PBES2 and PBMAC1 have a key derivation function and a scheme that uses the
	// key.
	derived struct {
		Derivation pkix.AlgorithmIdentifier
		Scheme     pkix.AlgorithmIdentifier
	}
	derivation struct {
		Salt   asn1.RawValue
		Rounds int
		Length int                      `asn1:"optional"`
		Hash   pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

// checkP12 refuses two kinds of files that the library accepts: a file without a
// MAC, which anybody may have changed, and a file whose number of rounds would
// take minutes.
func checkP12(file []byte) error {
	var outer pfx
	rest, err := asn1.Unmarshal(file, &outer)
	if err != nil || len(rest) > 0 {
		return refuse(ErrNotP12, "the file does not have the structure of PKCS#12, or is truncated")
	}
	algorithm := outer.Mac.Mac.Algorithm
	if len(algorithm.Algorithm) == 0 {
		return refuse(ErrNotP12, "the file has no MAC, so changes of its content cannot be detected")
	}
	rounds := outer.Mac.Rounds
	var scheme derived
	if _, err := asn1.Unmarshal(algorithm.Parameters.FullBytes, &scheme); err == nil {
		var kdf derivation
		if _, err := asn1.Unmarshal(scheme.Derivation.Parameters.FullBytes, &kdf); err == nil {
			rounds = max(rounds, kdf.Rounds)
		}
	}
	if rounds > maxRounds {
		return refuse(ErrNotP12, "the MAC needs %d rounds; the limit is %d", rounds, maxRounds)
	}
	return nil
}
