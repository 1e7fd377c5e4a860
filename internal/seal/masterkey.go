// Package seal owns secrets at rest: it seals each under a data key of its own,
// wrapped by the master key, and keeps the file that holds the master key.
// Where sealed bytes are stored is not its business.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

const (
	keyLen  = 32
	idLen   = 8
	header  = "fiscalhub-master-key v1"
	maxFile = 4096

	redacted = "[redacted]"
)

// MasterKey wraps the data keys of sealed secrets. It prints as [redacted].
// Use it by pointer, from as many goroutines as needed.
type MasterKey struct {
	id   [idLen]byte
	aead cipher.AEAD
}

// LoadOrCreate loads the master key in the file at path, and makes a new one
// when there is no such file. Processes that start together end with one and
// the same key, and a key that was returned survives a power cut. The folder
// must exist.
func LoadOrCreate(path string) (*MasterKey, error) {
	m, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("seal: create master key: %w", err)
		}
		m, err = Load(path)
	}
	if err != nil {
		return nil, err
	}
	// Also for a key that another process has just made: it may be about to
	// sync the folder, and secrets may be sealed before it does.
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("seal: create master key: %w", err)
	}
	return m, nil
}

// Load loads the master key in the file at path. It refuses a file that anyone
// but its owner may open. The error is fs.ErrNotExist when there is no file.
func Load(path string) (*MasterKey, error) {
	_, m, err := readKey(path)
	if err != nil {
		return nil, fmt.Errorf("seal: load master key: %w", err)
	}
	return m, nil
}

func readKey(path string) (text string, m *MasterKey, err error) {
	if text, err = readPrivate(path); err != nil {
		return "", nil, err
	}
	if m, err = parseFile(text); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, m, nil
}

// ID returns a short name of the key, the same for the same key everywhere. It
// is derived by a hash and tells nothing about the key.
func (m *MasterKey) ID() string { return hex.EncodeToString(m.id[:]) }

// String returns [redacted].
func (m MasterKey) String() string { return redacted }

// GoString returns [redacted].
func (m MasterKey) GoString() string { return redacted }

// MarshalJSON encodes the string [redacted].
func (m MasterKey) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText encodes [redacted].
func (m MasterKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns the string [redacted].
func (m MasterKey) LogValue() slog.Value { return slog.StringValue(redacted) }

func newMasterKey(key []byte) (*MasterKey, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return &MasterKey{id: keyID(key), aead: aead}, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func keyID(key []byte) [idLen]byte {
	sum := sha256.Sum256(append([]byte("fiscalhub master key id v1\x00"), key...))
	return [idLen]byte(sum[:idLen])
}

// create makes the file with a new key in it, unless it exists by the time the
// key is ready. A link, unlike a rename, never replaces a file: of several
// processes one wins.
func create(path string) error {
	text, err := newKeyText()
	if err != nil {
		return err
	}
	if err := place(path, text, os.Link); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// newKeyText is the file of a new key.
func newKeyText() (string, error) {
	key := make([]byte, keyLen)
	defer clear(key)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	return formatFile(key), nil
}

// place writes a file beside path, for its owner alone, and lets put give it
// its name once it is whole and durable: no reader ever meets half a key.
func place(path, text string, put func(from, to string) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(tmp.Name()); !errors.Is(gone, fs.ErrNotExist) { // a rename has moved it
			err = errors.Join(err, gone)
		}
	}()
	_, err = tmp.WriteString(text)
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return put(tmp.Name(), path)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readPrivate(path string) (text string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat() // of what was opened, whatever the path means by now
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return "", fmt.Errorf("%s may be opened by other users (mode %04o): run chmod 600 %s, and rotate the key if others had access", path, perm, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(b), err
}

// formatFile writes a key as its file: a header with the version and the id,
// then the key in hexadecimal.
func formatFile(key []byte) string {
	return fmt.Sprintf("%s %x\n%x\n", header, keyID(key), key)
}

// parseFile reads what formatFile wrote. Its errors never quote the text.
func parseFile(text string) (*MasterKey, error) {
	head, line, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
	if !ok || !strings.HasPrefix(head, header+" ") {
		return nil, fmt.Errorf("not a master key file: the first line must be %q and an id", header)
	}
	key, err := hex.DecodeString(line)
	if err != nil || len(key) != keyLen {
		return nil, errors.New("damaged: the second line must be 64 hexadecimal digits")
	}
	m, err := newMasterKey(key)
	if err != nil {
		return nil, err
	}
	if head != header+" "+m.ID() {
		return nil, errors.New("damaged: the key does not have the id of the first line; restore the file from a copy")
	}
	return m, nil
}
