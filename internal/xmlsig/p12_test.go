package xmlsig_test

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

func TestOpenP12ReadsOrRefuses(t *testing.T) {
	t.Parallel()
	leaf, ca := signer(), signer().CA.Certificate
	expired := xmlsigtest.Must(t, xmlsigtest.Options{CA: leaf.CA, NotAfter: time.Now().Add(-time.Hour)})
	weak := xmlsigtest.Must(t, xmlsigtest.Options{CA: leaf.CA, Key: weakKey()})
	curve := xmlsigtest.Must(t, xmlsigtest.Options{CA: leaf.CA, Key: curveKey()})
	const password = "contraseña-ñ"
	encode := func(e *pkcs12.Encoder, key crypto.Signer, c *x509.Certificate, others ...*x509.Certificate) []byte {
		return must(t)(e.Encode(key, c, others, password))
	}
	modern := encode(pkcs12.Modern, leaf.Key, leaf.Certificate, ca)
	changed := bytes.Clone(modern)
	changed[len(changed)/2] ^= 1
	for _, c := range []struct {
		name     string
		file     []byte
		password string
		want     *x509.Certificate
		err      error
	}{
		{"AES and SHA-256", modern, password, leaf.Certificate, nil},
		{"AES, SHA-256 and PBMAC1", encode(pkcs12.Modern2026, leaf.Key, leaf.Certificate, ca), password, leaf.Certificate, nil},
		{"RC2-40 and SHA-1", encode(pkcs12.LegacyRC2, leaf.Key, leaf.Certificate, ca), password, leaf.Certificate, nil},
		{"3DES and SHA-1", encode(pkcs12.LegacyDES, leaf.Key, leaf.Certificate), password, leaf.Certificate, nil},
		{"authority first", encode(pkcs12.Modern, leaf.Key, ca, leaf.Certificate), password, leaf.Certificate, nil},
		{"certificate of another key first", encode(pkcs12.LegacyRC2, leaf.Key, curve.Certificate, ca, leaf.Certificate), password, leaf.Certificate, nil},
		{"renewed, the old one first", encode(pkcs12.Modern, leaf.Key, expired.Certificate, leaf.Certificate), password, leaf.Certificate, nil},
		{"renewed, the old one last", encode(pkcs12.Modern, leaf.Key, leaf.Certificate, expired.Certificate), password, leaf.Certificate, nil},
		{"expired", encode(pkcs12.Modern, expired.Key, expired.Certificate), password, expired.Certificate, nil},
		{"empty password", must(t)(pkcs12.Modern.Encode(leaf.Key, leaf.Certificate, nil, "")), "", leaf.Certificate, nil},
		{"empty password where there is one", modern, "", nil, xmlsig.ErrPassword},
		{"wrong password", modern, "contrasena-n", nil, xmlsig.ErrPassword},
		{"wrong password of an old file", encode(pkcs12.LegacyRC2, leaf.Key, leaf.Certificate), "x", nil, xmlsig.ErrPassword},
		{"decomposed password", modern, "contrasen\u0303a-n\u0303", nil, xmlsig.ErrPassword},
		{"password that cannot be expressed", modern, "😀", nil, xmlsig.ErrPassword},
		{"damaged", changed, password, nil, xmlsig.ErrPassword}, // the MAC cannot distinguish the two
		{"truncated", modern[:len(modern)-1], password, nil, xmlsig.ErrNotP12},
		{"something after it", append(bytes.Clone(modern), 0), password, nil, xmlsig.ErrNotP12},
		{"empty", nil, password, nil, xmlsig.ErrNotP12},
		{"garbage", []byte("not a certificate at all"), password, nil, xmlsig.ErrNotP12},
		{"certificate as PEM", leaf.PEM(), password, nil, xmlsig.ErrNotP12},
		{"certificate as DER", leaf.Certificate.Raw, password, nil, xmlsig.ErrNotP12},
		{"too large", make([]byte, 1<<20+1), password, nil, xmlsig.ErrNotP12},
		{"too many rounds", rounds(t, encode(pkcs12.Modern, leaf.Key, leaf.Certificate)), password, nil, xmlsig.ErrNotP12},
		{"too many rounds of PBMAC1", derivedRounds(t, encode(pkcs12.Modern2026, leaf.Key, leaf.Certificate)), password, nil, xmlsig.ErrNotP12},
		{"no MAC", must(t)(pkcs12.Passwordless.Encode(leaf.Key, leaf.Certificate, nil, "")), "", nil, xmlsig.ErrNotP12},
		{"certificates alone", must(t)(pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{leaf.Certificate}, password)), password, nil, xmlsig.ErrNoKey},
		{"certificates of others", encode(pkcs12.Modern, leaf.Key, ca, curve.Certificate), password, nil, xmlsig.ErrKeyMismatch},
		{"elliptic curve", encode(pkcs12.Modern, curve.Key, curve.Certificate), password, nil, xmlsig.ErrWeakKey},
		{"RSA of 1024 bits", encode(pkcs12.Modern, weak.Key, weak.Certificate), password, nil, xmlsig.ErrWeakKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			id, err := xmlsig.OpenP12(c.file, c.password)
			checkP12Error(t, err, c.err)
			if err == nil {
				checkIdentity(t, id, c.want)
			}
		})
	}
}

// rounds sets a number of MAC rounds that would take very long.
func rounds(t *testing.T, file []byte) []byte {
	t.Helper()
	var outer struct {
		Version  int
		AuthSafe asn1.RawValue
		Mac      struct {
			Mac    asn1.RawValue
			Salt   []byte
			Rounds int
		}
	}
	if _, err := asn1.Unmarshal(file, &outer); err != nil {
		t.Fatal(err)
	}
	outer.Mac.Rounds = math.MaxInt32
	return must(t)(asn1.Marshal(outer))
}

// derivedRounds is rounds for a file with PBMAC1.
func derivedRounds(t *testing.T, file []byte) []byte {
	t.Helper()
	var outer struct {
		Version  int
		AuthSafe asn1.RawValue
		Mac      struct {
			Mac struct {
				Algorithm struct {
					Name   asn1.ObjectIdentifier
					Scheme struct {
						Derivation struct {
							Name       asn1.ObjectIdentifier
							Parameters struct {
								Salt   []byte
								Rounds int
								Length int
								Hash   asn1.RawValue
							}
						}
						Hash asn1.RawValue
					}
				}
				Digest []byte
			}
			Salt   []byte
			Rounds int `asn1:"optional,default:1"`
		}
	}
	if _, err := asn1.Unmarshal(file, &outer); err != nil {
		t.Fatal(err)
	}
	outer.Mac.Mac.Algorithm.Scheme.Derivation.Parameters.Rounds = math.MaxInt32
	return must(t)(asn1.Marshal(outer))
}

func checkP12Error(t *testing.T, err, want error) {
	t.Helper()
	for _, kind := range []error{xmlsig.ErrPassword, xmlsig.ErrNotP12, xmlsig.ErrNoKey, xmlsig.ErrKeyMismatch, xmlsig.ErrWeakKey} {
		if is := errors.Is(err, kind); is != errors.Is(want, kind) {
			t.Fatalf("error %v, want %v", err, want)
		}
	}
	if (err == nil) != (want == nil) {
		t.Fatalf("error %v, want %v", err, want)
	}
	if err != nil {
		t.Log(err)
	}
}

// checkIdentity checks the certificate of an identity, and that its key belongs to
// it.
func checkIdentity(t *testing.T, id *xmlsig.Identity, want *x509.Certificate) {
	t.Helper()
	if !id.Certificate.Equal(want) {
		t.Errorf("the certificate of %s, want that of %s", id.Certificate.Subject, want.Subject)
	}
	v, err := xmlsig.Verify([]byte(write(t, id)), xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	if xmlsig.Person(v.Certificate) != "00112345678" {
		t.Errorf("person %q", xmlsig.Person(v.Certificate))
	}
}

func TestOpenP12ReadsFilesOfOpenSSL(t *testing.T) {
	t.Parallel()
	program := needtest.Program(t, "openssl")
	leaf := signer()
	dir := t.TempDir()
	key := must(t)(x509.MarshalPKCS8PrivateKey(leaf.Key.(*rsa.PrivateKey)))
	for name, content := range map[string][]byte{
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"leaf.pem": leaf.PEM(),
		"ca.pem":   leaf.CA.PEM(),
		"both.pem": append(leaf.CA.PEM(), leaf.PEM()...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := func(args ...string) []string { return append([]string{"-inkey", "key.pem"}, args...) }
	for _, c := range []struct {
		name, password string
		args           []string
		err            error
	}{
		{"default", "secreto", with("-in", "leaf.pem"), nil},
		{"chain", "secreto", with("-in", "leaf.pem", "-certfile", "ca.pem"), nil},
		{"authority first", "secreto", with("-in", "both.pem"), nil},
		{"old", "secreto", with("-legacy", "-in", "leaf.pem", "-certfile", "ca.pem"), nil},
		{"3DES", "secreto", with("-legacy", "-in", "leaf.pem", "-descert"), nil},
		{"letters with accents", "contraseña-ñ", with("-in", "leaf.pem"), nil},
		{"old, letters with accents", "contraseña-ñ", with("-legacy", "-in", "leaf.pem"), nil},
		{"empty password", "", with("-in", "leaf.pem"), nil},
		{"old, empty password", "", with("-legacy", "-in", "leaf.pem"), nil},
		{"friendly name", "secreto", with("-in", "leaf.pem", "-name", "José Ñáñez"), nil},
		{"SHA-512 MAC", "secreto", with("-in", "leaf.pem", "-macalg", "sha512"), nil},
		{"certificates without encryption", "secreto", with("-in", "leaf.pem", "-certpbe", "NONE"), nil},
		{"nothing encrypted", "secreto", with("-in", "leaf.pem", "-certpbe", "NONE", "-keypbe", "NONE"), nil},
		{"no MAC", "secreto", with("-in", "leaf.pem", "-nomac"), xmlsig.ErrNotP12},
		{"no key", "secreto", []string{"-in", "leaf.pem", "-nokeys"}, xmlsig.ErrNoKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, append([]string{"pkcs12", "-export", "-passout", "pass:" + c.password}, c.args...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			file, err := cmd.Output()
			if err != nil && slices.Contains(c.args, "-legacy") {
				needtest.LeftOut(t, "openssl-legacy", stderr.String())
			}
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			id, err := xmlsig.OpenP12(file, c.password)
			checkP12Error(t, err, c.err)
			if err != nil {
				return
			}
			checkIdentity(t, id, leaf.Certificate)
			_, err = xmlsig.OpenP12(file, c.password+"x")
			checkP12Error(t, err, xmlsig.ErrPassword)
		})
	}
}

func TestOpenP12ReadsTheFileOfALeaf(t *testing.T) {
	t.Parallel()
	id, err := xmlsig.OpenP12(must(t)(signer().P12("secreto")), "secreto")
	if err != nil {
		t.Fatal(err)
	}
	checkIdentity(t, id, signer().Certificate)
	now := time.Now()
	if err := id.Check(now); err != nil {
		t.Error(err)
	}
	if err := id.Check(now.AddDate(2, 0, 0)); !errors.Is(err, xmlsig.ErrExpired) {
		t.Error(err)
	}
	if err := id.Check(now.AddDate(-2, 0, 0)); !errors.Is(err, xmlsig.ErrNotYetValid) {
		t.Error(err)
	}
}
