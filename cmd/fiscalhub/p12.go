package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	maxP12          = 1 << 20
	maxPasswordFile = 4096
)

// openP12 reads a PKCS#12 file with the password on the first line of another
// file. Its errors tell what to do, and never the password.
func openP12(path, passwordFile string) (*xmlsig.Identity, error) {
	file, err := readBounded(path, maxP12)
	if err != nil {
		return nil, err
	}
	password, err := readPassword(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("--password-file: %w", err)
	}
	id, err := xmlsig.OpenP12(file, password)
	why := ""
	if err != nil {
		why = strings.TrimPrefix(err.Error(), "xmlsig: ")
	}
	switch {
	case err == nil:
		return id, nil
	case errors.Is(err, xmlsig.ErrPassword):
		return nil, fmt.Errorf("%s: %s: the first line of %s must be the password, and nothing else", path, why, passwordFile)
	case errors.Is(err, xmlsig.ErrNotP12):
		return nil, fmt.Errorf("%s: %s: want the .p12 or .pfx file as its issuer gave it out", path, why)
	case errors.Is(err, xmlsig.ErrNoKey):
		return nil, fmt.Errorf("%s: %s: export the certificate together with its private key", path, why)
	case errors.Is(err, xmlsig.ErrKeyMismatch):
		return nil, fmt.Errorf("%s: %s: export the certificate that belongs to the key", path, why)
	case errors.Is(err, xmlsig.ErrWeakKey):
		return nil, fmt.Errorf("%s: %s: ask the issuer for a new certificate", path, why)
	}
	return nil, fmt.Errorf("%s: %s", path, why)
}

// readPassword reads the first line of a file, without its end. All else is
// part of the password, spaces too.
func readPassword(path string) (string, error) {
	text, err := readBounded(path, maxPasswordFile)
	if err != nil {
		return "", err
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(first, []byte("\r"))), nil
}

// readBounded reads a file that is not larger than it can reasonably be.
func readBounded(path string, most int64) (b []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return b, err
}

// warnOfReaders warns when others on this machine may read a file with a
// secret. Whether that matters is the operator's to say.
func (t *terminal) warnOfReaders(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe has no other readers; what cannot be read is told when it is
		return
	}
	if perm := info.Mode().Perm(); perm&0o044 != 0 {
		t.warn("other users may read %s (mode %04o): run chmod 600 %s, or remove it once the import is done", path, perm, path)
	}
}
