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

var errToken = errors.New("the token is none of ours, or has expired")

// seal appends the proof that a text of this kind is ours, and of this
// environment.
func (rc *Receiver) seal(kind string, text []byte) []byte {
	return append(text, rc.proof(kind, text)...)
}

// open returns what was sealed.
func (rc *Receiver) open(kind string, sealed []byte) ([]byte, bool) {
	n := len(sealed) - sha256.Size
	if n < 0 || !hmac.Equal(sealed[n:], rc.proof(kind, sealed[:n])) {
		return nil, false
	}
	return sealed[:n], true
}

func (rc *Receiver) proof(kind string, text []byte) []byte {
	h := hmac.New(sha256.New, rc.Key)
	h.Write([]byte(kind + "\x00" + string(rc.Environment) + "\x00"))
	h.Write(text)
	return h.Sum(nil)
}

// newSeed makes a seed that says itself when it was given, so that nothing has to
// be kept for those who only ask.
func (rc *Receiver) newSeed(issued time.Time) string {
	seed := make([]byte, seedRandom, seedRandom+numberSize+sha256.Size)
	_, _ = rand.Read(seed) // crypto/rand.Read never fails
	seed = appendNumber(seed, issued.UnixMicro())
	return base64.StdEncoding.EncodeToString(rc.seal("seed", seed))
}

// readSeed tells when a seed was given. The digest is that of the seed itself,
// which has more than one way to be written.
func (rc *Receiver) readSeed(value string) (issued time.Time, digest []byte, ok bool) {
	sealed, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return time.Time{}, nil, false
	}
	seed, ok := rc.open("seed", sealed)
	if !ok || len(seed) != seedRandom+numberSize {
		return time.Time{}, nil, false
	}
	sum := sha256.Sum256(seed)
	return time.UnixMicro(readNumber(seed[seedRandom:])), sum[:], true
}

// A caller is whom a token was given to: a certificate, by who issued it and its
// number.
type caller [sha256.Size]byte

func callerOf(c *x509.Certificate) caller {
	h := sha256.New()
	issuer := sha256.Sum256(c.RawIssuer)
	h.Write(issuer[:])
	h.Write(c.SerialNumber.Bytes())
	return caller(h.Sum(nil))
}

// String is enough of it to tell callers apart in the log.
func (c caller) String() string { return hex.EncodeToString(c[:8]) }

// newToken makes a token of a certificate and the person it names.
func (rc *Receiver) newToken(c *x509.Certificate, person string, expires time.Time) string {
	text := appendNumber(nil, expires.Unix())
	who := callerOf(c)
	text = append(append(text, who[:]...), person...)
	return base64.RawURLEncoding.EncodeToString(rc.seal("token", text))
}

// readToken reads the header of a token. No error repeats it.
func (rc *Receiver) readToken(lines []string, now time.Time) (caller, error) {
	if len(lines) != 1 || len(lines[0]) > maxToken {
		return caller{}, errToken
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSpace(token))
	if err != nil || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, errToken
	}
	text, ok := rc.open("token", sealed)
	if !ok || len(text) < numberSize+sha256.Size {
		return caller{}, errToken
	}
	if expires := time.Unix(readNumber(text), 0); !now.Before(expires) {
		return caller{}, errToken
	}
	return caller(text[numberSize : numberSize+sha256.Size]), nil
}

func appendNumber(b []byte, n int64) []byte {
	b, _ = binary.Append(b, binary.BigEndian, n) // which has a fixed size
	return b
}

// readNumber reads the number that the bytes begin with.
func readNumber(b []byte) (n int64) {
	_, _ = binary.Decode(b, binary.BigEndian, &n) // of bytes that are enough
	return n
}
