package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	maxP12          = 1 << 20
	maxPasswordFile = 4096
)

// openP12 reads a PKCS#12 file. The password is the first line of another file.
// The errors say what to do, and never contain the password.
func openP12(path, passwordFile string) (*xmlsig.Identity, error) {
	file, err := readBounded(path, maxP12)
	if err != nil {
		return nil, err
	}
	password, err := readPassword(passwordFile)
	if err != nil {
		return nil, lang.Errorf("--password-file: %s", "--password-file: %s", err)
	}
	id, err := xmlsig.OpenP12(file, password)
	if err != nil {
		return nil, explainP12(err, path, passwordFile)
	}
	return id, nil
}

// explainP12 adds what to do to an error of a PKCS#12 file.
func explainP12(err error, path, passwordFile string) error {
	why := strings.TrimPrefix(err.Error(), "xmlsig: ")
	switch {
	case errors.Is(err, xmlsig.ErrPassword):
		return lang.Errorf("%s: %s: the first line of %s must be the password alone",
			"%s: %s: la primera línea de %s debe ser solo la contraseña", path, lang.Translated(why, "la contraseña no abre el archivo"), passwordFile)
	case errors.Is(err, xmlsig.ErrNotP12):
		return lang.Errorf("%s: %s: give the .p12 or .pfx file as the certification authority issued it",
			"%s: %s: indique el archivo .p12 o .pfx tal como lo emitió la entidad de certificación", path, lang.Translated(why, "el archivo no es un PKCS#12 que se pueda leer"))
	case errors.Is(err, xmlsig.ErrNoKey):
		return lang.Errorf("%s: %s: export the certificate together with its private key",
			"%s: %s: exporte el certificado junto con su clave privada", path, lang.Translated(why, "el archivo no tiene una clave privada que se pueda usar"))
	case errors.Is(err, xmlsig.ErrKeyMismatch):
		return lang.Errorf("%s: %s: export the certificate that belongs to the key",
			"%s: %s: exporte el certificado que corresponde a la clave", path, lang.Translated(why, "el certificado no corresponde a la clave privada"))
	case errors.Is(err, xmlsig.ErrWeakKey):
		return lang.Errorf("%s: %s: ask the certification authority for a new certificate",
			"%s: %s: solicite un certificado nuevo a la entidad de certificación", path, lang.Translated(why, "la clave debe ser RSA de 2048 bits o más"))
	}
	return lang.Errorf("%s: %s", "%s: %s", path, why)
}

// readPassword reads the first line of a file, without the line end. Spaces are
// part of the password.
func readPassword(path string) (string, error) {
	text, err := readBounded(path, maxPasswordFile)
	if err != nil {
		return "", err
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(first, []byte("\r"))), nil
}

// readBounded reads a file. It fails when the file is larger than limit bytes.
func readBounded(path string, limit int64) (b []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = lang.Errorf("%s is larger than %d bytes",
			"%s es mayor de %d bytes", path, limit)
	}
	return b, err
}

// warnOfReaders warns when other users of this machine may read a file with a
// secret. The command goes on.
func (t *terminal) warnOfReaders(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe has no other readers; opening the file reports the error
		return
	}
	if perm := info.Mode().Perm(); perm&0o044 != 0 {
		t.warn(lang.Messagef("other users may read %s (mode %04o): run chmod 600 %s, or remove it once the import is done",
			"otros usuarios pueden leer %s (modo %04o): ejecute chmod 600 %s, o elimínelo después de importar", path, perm, path))
	}
}
