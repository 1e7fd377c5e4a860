// Package seal encrypts secrets at rest. It seals each secret under its own data
// key, wraps the data key with the master key, and manages the file that holds the
// master key. It does not store the sealed bytes.
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

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
)

const (
	keyLen  = 32
	idLen   = 8
	header  = "fiscalhub-master-key v1"
	maxFile = 4096

	redacted = "[redacted]"
)

// MasterKey wraps the data keys of sealed secrets. It prints as [redacted].
// It is safe for concurrent use.
type MasterKey struct {
	id   [idLen]byte
	aead cipher.AEAD
}

// LoadOrCreate loads the master key from the file at path, and creates the file with
// a new key when it does not exist. Processes that start at the same time get the
// same key, and a returned key survives a power cut. The folder must exist.
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
	// This also covers a key that another process has just created: that process may
	// not have synced the folder yet, and our caller may seal secrets before it does.
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("seal: create master key: %w", err)
	}
	return m, nil
}

// Load loads the master key from the file at path. It fails when other users may
// open the file, and with fs.ErrNotExist when there is no file.
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

// ID returns the id of the key, which is the same on every machine. The id is a
// hash and does not reveal the key.
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

// create writes a new key to the file at path. It does nothing when another process
// has created the file first.
func create(path string) error {
	text, err := newKeyText()
	if err != nil {
		return err
	}
	if err := atomicfile.Create(path, text); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// newKeyText returns the content of the file of a new key.
func newKeyText() (string, error) {
	key := make([]byte, keyLen)
	defer clear(key)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	return formatFile(key), nil
}

// An OpenToOthersError means that other users may open the file of a master key.
type OpenToOthersError struct {
	Path string
	Mode fs.FileMode // its permissions
}

// Error returns the text for logs, with what to do.
func (e *OpenToOthersError) Error() string {
	return fmt.Sprintf("other users may open %s (mode %04o): run chmod 600 %s, and rotate the key if others had access", e.Path, e.Mode, e.Path)
}

func readPrivate(path string) (text string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat() // of the opened file: the path may name another one by now
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); OpenToOthers(info) {
		return "", &OpenToOthersError{Path: path, Mode: perm}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(b), err
}

// formatFile returns the content of a key's file: a header line with the version and
// the id, then the key in hexadecimal.
func formatFile(key []byte) string {
	return fmt.Sprintf("%s %x\n%x\n", header, keyID(key), key)
}

// parseFile parses the content that formatFile returns. Its errors never quote it.
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
		return nil, errors.New("damaged: the key does not match the id in the first line; restore the file from a copy")
	}
	return m, nil
}
