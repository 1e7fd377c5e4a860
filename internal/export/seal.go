package export

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// sealPrefix begins the comment of an export. The SHA-256 of the whole file follows in
// hexadecimal digits. For the digest these digits are zeros.
const sealPrefix = "fiscalhub export sha256:"

var emptySeal = sealPrefix + strings.Repeat("0", 2*sha256.Size)

// sealFile writes the digest of the file over the zeros at its end.
func sealFile(f *os.File) error {
	sum, at, err := sealOf(f)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(sum), at)
	return err
}

// sealOf returns the digest that the comment of a file should have, and its place.
func sealOf(f *os.File) (sum string, at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	at = info.Size() - 2*sha256.Size
	if at < int64(len(sealPrefix)) {
		return "", 0, fmt.Errorf("the file is too short")
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, io.NewSectionReader(f, 0, at)); err != nil {
		return "", 0, err
	}
	_, _ = io.WriteString(digest, emptySeal[len(sealPrefix):]) // a digest returns no error
	return hex.EncodeToString(digest.Sum(nil)), at, nil
}
