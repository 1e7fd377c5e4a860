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

// ErrWrongKey means that a secret is sealed under another master key.
var ErrWrongKey = errors.New("seal: sealed under another master key")

// ErrTampered means that sealed bytes are not the ones that Seal returned for this
// secret: they were changed, were cut, or belong to another secret.
var ErrTampered = errors.New("seal: cannot decrypt the sealed bytes: they are damaged or belong to another secret")

// A sealed secret is a version byte, the id of the master key, the wrapped data key
// and the encrypted secret. The last two each include a nonce and a tag.
const (
	version     = 1
	overhead    = 12 + 16 // nonce and tag of AES-GCM
	wrappedAt   = 1 + idLen
	secretAt    = wrappedAt + keyLen + overhead
	minSealed   = secretAt + overhead
	wrapPurpose = "wrap"
	dataPurpose = "data"
)

// AAD returns the additional authenticated data that binds a sealed secret to its
// row: taxpayer, environment, kind, id and version, for example. Different parts
// never give the same bytes.
func AAD(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// KeyID returns the id of the master key that bytes are sealed under. It fails with
// ErrTampered when they are not sealed bytes.
func KeyID(sealed []byte) (string, error) {
	if len(sealed) < minSealed || sealed[0] != version {
		return "", ErrTampered
	}
	return hex.EncodeToString(sealed[1:wrappedAt]), nil
}

// Seal encrypts a secret under a new data key, which it wraps with m. Opening the
// secret needs the same aad.
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
	return aead.Seal(sealed, nil, plaintext, bind(dataPurpose, aad)), nil //nolint:gosec // the AEAD adds a random nonce
}

// Open decrypts sealed bytes. It fails with ErrWrongKey when they name another master
// key, and otherwise with ErrTampered.
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

// Rewrap returns sealed bytes that open with the master key to instead of m. It
// encrypts only the data key again, so its cost does not depend on the size of the
// secret. Bytes that are already under to are returned unchanged, so an interrupted
// rotation can start again.
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
	return m.aead.Seal(b, nil, dataKey, bind(wrapPurpose, aad)) //nolint:gosec // the AEAD adds a random nonce
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

// bind returns aad with the purpose of a ciphertext, so that a wrapped data key
// cannot be exchanged for an encrypted secret.
func bind(purpose string, aad []byte) []byte {
	return append(append([]byte{version}, purpose...), aad...)
}
