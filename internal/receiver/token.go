package receiver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

const (
	keySize    = 32
	seedRandom = 32
	seedLife   = 5 * time.Minute
	tokenLife  = time.Hour
	maxToken   = 1 << 10
	numberSize = 8
)

var errToken = errors.New("the token is unknown or has expired")

// appendMAC appends a MAC to data. The MAC proves that this service has made data, for this
// kind and this environment.
func (rc *Receiver) appendMAC(kind string, data []byte) []byte {
	return append(data, rc.mac(rc.o.Keys()[0], kind, data)...)
}

// cutMAC returns data without its MAC, and whether the MAC is right.
func (rc *Receiver) cutMAC(kind string, data []byte) ([]byte, bool) {
	n := len(data) - sha256.Size
	if n < 0 {
		return nil, false
	}
	for _, key := range rc.o.Keys() {
		if hmac.Equal(data[n:], rc.mac(key, kind, data[:n])) {
			return data[:n], true
		}
	}
	return nil, false
}

func (rc *Receiver) mac(key []byte, kind string, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(kind + "\x00" + string(rc.o.Environment) + "\x00"))
	h.Write(data)
	return h.Sum(nil)
}

// newSeed returns a new seed. The seed contains the instant of its issue, so that the
// service stores only seeds that are used.
func (rc *Receiver) newSeed(issued time.Time) string {
	seed := make([]byte, seedRandom, seedRandom+numberSize+sha256.Size)
	_, _ = rand.Read(seed) // crypto/rand.Read never fails
	seed = appendNumber(seed, issued.UnixMicro())
	return base64.StdEncoding.EncodeToString(rc.appendMAC("seed", seed))
}

// readSeed returns the instant of issue of a seed and its digest. ok is false when we did
// not issue the seed. The digest is that of the decoded bytes, because base64 has several
// encodings of the same bytes.
func (rc *Receiver) readSeed(value string) (issued time.Time, digest []byte, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return time.Time{}, nil, false
	}
	seed, ok := rc.cutMAC("seed", raw)
	if !ok || len(seed) != seedRandom+numberSize {
		return time.Time{}, nil, false
	}
	sum := sha256.Sum256(seed)
	return time.UnixMicro(readNumber(seed[seedRandom:])), sum[:], true
}

// A caller identifies the certificate that a token was issued for, by its issuer and
// serial number.
type caller [sha256.Size]byte

func newCaller(c *x509.Certificate) caller {
	h := sha256.New()
	issuer := sha256.Sum256(c.RawIssuer)
	h.Write(issuer[:])
	h.Write(c.SerialNumber.Bytes())
	return caller(h.Sum(nil))
}

// String returns a short form for the log.
func (c caller) String() string { return hex.EncodeToString(c[:8]) }

// newToken returns a token for a certificate and the person that it identifies.
func (rc *Receiver) newToken(c *x509.Certificate, person string, expires time.Time) string {
	data := appendNumber(nil, expires.Unix())
	who := newCaller(c)
	data = append(append(data, who[:]...), person...)
	return base64.RawURLEncoding.EncodeToString(rc.appendMAC("token", data))
}

// readToken returns the caller of the token in the header Authorization. It fails with
// errToken, which does not quote the token.
func (rc *Receiver) readToken(lines []string, now time.Time) (caller, error) {
	if len(lines) != 1 || len(lines[0]) > maxToken {
		return caller{}, errToken
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSpace(token))
	if err != nil || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, errToken
	}
	data, ok := rc.cutMAC("token", raw)
	if !ok || len(data) < numberSize+sha256.Size {
		return caller{}, errToken
	}
	if expires := time.Unix(readNumber(data), 0); !now.Before(expires) {
		return caller{}, errToken
	}
	return caller(data[numberSize : numberSize+sha256.Size]), nil
}

func appendNumber(b []byte, n int64) []byte {
	b, _ = binary.Append(b, binary.BigEndian, n) // an int64 has a fixed size: it cannot fail
	return b
}

// readNumber returns the number at the beginning of b, which must have at least
// numberSize bytes.
func readNumber(b []byte) (n int64) {
	_, _ = binary.Decode(b, binary.BigEndian, &n) // b is long enough: it cannot fail
	return n
}
