package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Checkpoint is a signed statement of how long the log was at an instant, and of its
// hash. A copy outside of the database shows when entries were removed from the end,
// or when the whole chain was computed again.
type Checkpoint struct {
	Seq       int64
	Hash      []byte
	At        string // RFC 3339
	Signature []byte
}

// ErrCheckpoint means that a checkpoint was not signed by this service, or was changed.
var ErrCheckpoint = lang.Errorf("the checkpoint was not signed by this service, or was changed", "el punto de control no fue firmado por este servicio, o fue alterado")

// NewCheckpoint signs the head of a log.
func NewCheckpoint(key ed25519.PrivateKey, head Head, at time.Time) Checkpoint {
	p := Checkpoint{Seq: head.Seq, Hash: head.Hash, At: at.UTC().Format(time.RFC3339)}
	p.Signature = ed25519.Sign(key, p.message())
	return p
}

// Verify fails with ErrCheckpoint unless the key signed the checkpoint.
func (p Checkpoint) Verify(key ed25519.PublicKey) error {
	if len(p.Hash) != sha256.Size || !ed25519.Verify(key, p.message(), p.Signature) {
		return ErrCheckpoint
	}
	return nil
}

// message returns the signed bytes.
func (p Checkpoint) message() []byte {
	m := append([]byte("fiscalhub audit checkpoint\n"), p.Hash...)
	m = binary.BigEndian.AppendUint64(m, uint64(p.Seq)) //nolint:gosec // only the bytes matter
	return append(m, p.At...)
}

// checkpointFile is the form of a checkpoint in a file.
type checkpointFile struct {
	Entries   int64  `json:"entries"`
	Hash      string `json:"hash"`
	At        string `json:"at"`
	Signature string `json:"signature"`
}

// MarshalJSON writes the form of the file.
func (p Checkpoint) MarshalJSON() ([]byte, error) {
	encode := base64.StdEncoding.EncodeToString
	return json.Marshal(checkpointFile{p.Seq, encode(p.Hash), p.At, encode(p.Signature)})
}

// UnmarshalJSON reads the form of the file. It does not verify the signature.
func (p *Checkpoint) UnmarshalJSON(data []byte) error {
	var f checkpointFile
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	hash, err := base64.StdEncoding.DecodeString(f.Hash)
	if err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(f.Signature)
	if err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	*p = Checkpoint{f.Entries, hash, f.At, signature}
	return nil
}
