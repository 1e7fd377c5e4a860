package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// MinPassword is the shortest password, in characters.
const MinPassword = 12

// maxPassword is the longest password, in bytes.
const maxPassword = 1024

// The reasons for which a password is refused.
var (
	ErrPasswordShort  = errors.New("the password must have at least 12 characters")
	ErrPasswordLong   = errors.New("the password must have at most 1024 bytes")
	ErrPasswordCommon = errors.New("the password is one of the most common ones: choose another one")
)

//go:embed common_passwords.txt
var commonPasswords string

// CheckPassword returns why a password is refused: ErrPasswordShort, ErrPasswordLong or
// ErrPasswordCommon.
func CheckPassword(password string) error {
	switch {
	case utf8.RuneCountInString(password) < MinPassword:
		return ErrPasswordShort
	case len(password) > maxPassword:
		return ErrPasswordLong
	}
	lower := strings.ToLower(password)
	for line := range strings.Lines(commonPasswords) {
		if strings.TrimSpace(line) == lower {
			return ErrPasswordCommon
		}
	}
	return nil
}

// A Hasher makes and compares the hashes of passwords.
type Hasher interface {
	// Hash returns the hash of a password with a new salt.
	Hash(ctx context.Context, password string) (string, error)
	// Matches reports whether a hash belongs to a password. An empty hash belongs to no
	// password, and takes as long as any other.
	Matches(ctx context.Context, hash, password string) (bool, error)
}

// ErrBusy means that too many passwords are being checked. The caller may try again.
var ErrBusy = errors.New("too many sign-ins at the same time")

// Argon2 hashes passwords with Argon2id. Strangers can make the service compute a hash, so
// it computes only a few at the same time, and refuses when many wait.
type Argon2 struct {
	memory  uint32 // KiB
	passes  uint32
	running chan struct{}
	waiting chan struct{}
}

const (
	// The parameters that OWASP recommends: 19 MiB, 2 passes, 1 lane.
	argonMemory = 19 * 1024
	argonPasses = 2
	argonLanes  = 1
	argonKey    = 32
	argonSalt   = 16

	argonRunning = 2  // computations at the same time: 38 MiB
	argonWaiting = 32 // sign-ins that wait for one
)

// NewArgon2 returns the hasher of the service.
func NewArgon2() *Argon2 {
	return &Argon2{
		memory: argonMemory, passes: argonPasses,
		running: make(chan struct{}, argonRunning), waiting: make(chan struct{}, argonWaiting),
	}
}

// Hash returns the hash of a password. It fails with ErrBusy.
func (a *Argon2) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("people: make salt: %w", err)
	}
	key, err := a.compute(ctx, password, salt, a.memory, a.passes)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, a.memory, a.passes, argonLanes, encode(salt), encode(key)), nil
}

// Matches reports whether a hash belongs to a password. It fails with ErrBusy.
func (a *Argon2) Matches(ctx context.Context, hash, password string) (bool, error) {
	memory, passes, salt, want, ok := parseHash(hash)
	if !ok {
		memory, passes, salt, want = a.memory, a.passes, make([]byte, argonSalt), make([]byte, argonKey)
	}
	got, err := a.compute(ctx, password, salt, memory, passes)
	if err != nil {
		return false, err
	}
	return ok && subtle.ConstantTimeCompare(got, want) == 1, nil
}

// compute computes one Argon2id, when there is room for it.
func (a *Argon2) compute(ctx context.Context, password string, salt []byte, memory, passes uint32) ([]byte, error) {
	select {
	case a.waiting <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	defer func() { <-a.waiting }()
	select {
	case a.running <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-a.running }()
	return argon2.IDKey([]byte(password), salt, passes, memory, argonLanes, argonKey), nil
}

// parseHash reads a hash that Hash has made. It refuses parameters that would take more
// memory or time than any version of the service uses.
func parseHash(hash string) (memory, passes uint32, salt, key []byte, ok bool) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return 0, 0, nil, nil, false
	}
	var lanes uint32
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil {
		return 0, 0, nil, nil, false
	}
	salt, errSalt := base64.RawStdEncoding.DecodeString(parts[4])
	key, errKey := base64.RawStdEncoding.DecodeString(parts[5])
	ok = errSalt == nil && errKey == nil && len(key) == argonKey && len(salt) == argonSalt && lanes == argonLanes &&
		memory >= 8 && memory <= 256*1024 && passes >= 1 && passes <= 16
	return memory, passes, salt, key, ok
}
