package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// ErrWrongKey says that a secret was sealed under another master key.
var ErrWrongKey = errors.New("seal: sealed under another master key")

// ErrTampered says that sealed bytes are not what Seal made for that secret:
// they were changed, cut, or belong to something else.
var ErrTampered = errors.New("seal: sealed bytes do not open")

// A sealed secret is a version byte, the id of the master key, the wrapped data
// key and the encrypted secret; the last two each with nonce and tag.
const (
	version     = 1
	overhead    = 12 + 16 // nonce and tag of AES-GCM
	wrappedAt   = 1 + idLen
	secretAt    = wrappedAt + keyLen + overhead
	minSealed   = secretAt + overhead
	wrapPurpose = "wrap"
	dataPurpose = "data"
)

// AAD returns the additional data that ties a sealed secret to its place, such
// as taxpayer, environment, kind, id and version. Different parts never make
// the same bytes.
func AAD(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// KeyID returns the id of the master key that bytes are sealed under. The error
// is ErrTampered when they are not sealed bytes.
func KeyID(sealed []byte) (string, error) {
	if len(sealed) < minSealed || sealed[0] != version {
		return "", ErrTampered
	}
	return hex.EncodeToString(sealed[1:wrappedAt]), nil
}

// Seal encrypts a secret under a data key of its own, wrapped by m. Only the
// same aad opens it.
func (m *MasterKey) Seal(plaintext, aad []byte) ([]byte, error) {
	dataKey := make([]byte, keyLen)
	defer clear(dataKey)
	if _, err := rand.Read(dataKey); err != nil {
		return nil, fmt.Errorf("seal: make data key: %w", err)
	}
	aead, err := newAEAD(dataKey)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	sealed := make([]byte, 0, minSealed+len(plaintext))
	sealed = m.appendWrapped(sealed, dataKey, aad)
	return aead.Seal(sealed, nil, plaintext, bind(dataPurpose, aad)), nil //nolint:gosec // a fresh random nonce is the AEAD's own doing
}

// Open returns the secret in sealed bytes. The error is ErrWrongKey when they
// name another master key, and otherwise ErrTampered.
func (m *MasterKey) Open(sealed, aad []byte) ([]byte, error) {
	dataKey, err := m.unwrap(sealed, aad)
	if err != nil {
		return nil, err
	}
	defer clear(dataKey)
	aead, err := newAEAD(dataKey)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	plaintext, err := aead.Open(nil, nil, sealed[secretAt:], bind(dataPurpose, aad))
	if err != nil {
		return nil, ErrTampered
	}
	return plaintext, nil
}

// Rewrap returns sealed bytes that open with the master key to instead of m.
// The secret itself stays encrypted as it is, so this is cheap for any size.
// What is already under to comes back as it was, so that an interrupted
// rotation can start again from the beginning.
func (m *MasterKey) Rewrap(sealed, aad []byte, to *MasterKey) ([]byte, error) {
	if _, err := to.unwrap(sealed, aad); err == nil {
		return slices.Clone(sealed), nil
	}
	dataKey, err := m.unwrap(sealed, aad)
	if err != nil {
		return nil, err
	}
	defer clear(dataKey)
	out := to.appendWrapped(make([]byte, 0, len(sealed)), dataKey, aad)
	return append(out, sealed[secretAt:]...), nil
}

func (m *MasterKey) appendWrapped(b, dataKey, aad []byte) []byte {
	b = append(b, version)
	b = append(b, m.id[:]...)
	return m.aead.Seal(b, nil, dataKey, bind(wrapPurpose, aad)) //nolint:gosec // a fresh random nonce is the AEAD's own doing
}

func (m *MasterKey) unwrap(sealed, aad []byte) ([]byte, error) {
	if len(sealed) < minSealed || sealed[0] != version {
		return nil, ErrTampered
	}
	if !bytes.Equal(sealed[1:wrappedAt], m.id[:]) {
		return nil, ErrWrongKey
	}
	dataKey, err := m.aead.Open(nil, nil, sealed[wrappedAt:secretAt], bind(wrapPurpose, aad))
	if err != nil {
		return nil, ErrTampered
	}
	return dataKey, nil
}

// bind returns aad for one of the two uses of a key, so that neither
// ciphertext can stand in for the other.
func bind(purpose string, aad []byte) []byte {
	return append(append([]byte{version}, purpose...), aad...)
}
