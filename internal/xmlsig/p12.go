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

// Why a PKCS#12 file is refused, beside ErrKeyMismatch and ErrWeakKey.
var (
	// ErrPassword is a password that is not the file's.
	ErrPassword = errors.New("xmlsig: the password does not open the file")
	// ErrNotP12 is a file that is not PKCS#12, is damaged, or is of a form that
	// cannot be read.
	ErrNotP12 = errors.New("xmlsig: not a PKCS#12 file that can be read")
	// ErrNoKey is a file that holds certificates alone.
	ErrNoKey = errors.New("xmlsig: the file holds no private key")
)

const (
	maxP12    = 1 << 20
	maxRounds = 10_000_000 // of key derivation: a second or two; files have thousands
)

// OpenP12 reads the key of a PKCS#12 file and the certificate that belongs to
// it, wherever that stands among others. It does not look at dates, so that an
// expired one can be shown.
func OpenP12(file []byte, password string) (*Identity, error) {
	if len(file) > maxP12 {
		return nil, refuse(ErrNotP12, "it has %d bytes and may have %d", len(file), maxP12)
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
		return nil, refuse(ErrNoKey, "its key cannot sign")
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil, refuse(ErrNoKey, "its key cannot be compared")
	}
	// A renewed certificate may stand beside the old one of the same key: the
	// one that lasts longer signs.
	var own *x509.Certificate
	for _, c := range append(others, first) {
		if public.Equal(c.PublicKey) && (own == nil || c.NotAfter.After(own.NotAfter)) {
			own = c
		}
	}
	if own == nil {
		return nil, &refusal{kind: ErrKeyMismatch, text: "no certificate in the file has the public key of its private key"}
	}
	return NewIdentity(own, signer)
}

// p12Error tells apart why the library does not read a file. It has no values
// for what a file lacks, only words, which a test holds it to.
func p12Error(err error, password string) error {
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return ErrPassword
	case strings.ContainsFunc(password, func(r rune) bool { return r > 0xffff }):
		return refuse(ErrPassword, "it has a character beyond U+FFFF, which PKCS#12 cannot express")
	case err.Error() == "pkcs12: private key missing":
		return ErrNoKey
	}
	return &refusal{ErrNotP12, err, strings.TrimPrefix(err.Error(), "pkcs12: ")}
}

// The outer shape of a file (RFC 7292, 4).
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
	// Both PBES2 and PBMAC1 name a derivation and what is done with its key.
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

// checkP12 refuses before any work what the library would take: a file without
// a MAC, whose content anybody may have changed, and one whose check of the
// password alone would take minutes.
func checkP12(file []byte) error {
	var outer pfx
	rest, err := asn1.Unmarshal(file, &outer)
	if err != nil || len(rest) > 0 {
		return refuse(ErrNotP12, "it is not one DER structure of that shape, or is cut short")
	}
	algorithm := outer.Mac.Mac.Algorithm
	if len(algorithm.Algorithm) == 0 {
		return refuse(ErrNotP12, "it has no MAC, so that nothing shows whether it was changed")
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
		return refuse(ErrNotP12, "its MAC asks for %d rounds and may ask for %d", rounds, maxRounds)
	}
	return nil
}
