package export

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Limits of what Verify keeps in memory, so that a prepared file cannot exhaust it.
const (
	maxManifest = 1 << 30
	maxDocument = 64 << 20
)

// A Report is the result of Verify.
type Report struct {
	Manifest   Manifest
	Signatures int64    // valid signatures of documents
	Problems   []string // empty when the export is as it was written
}

// Verify checks an export: the digest of the whole file, the digest of each file of
// the manifest, that there is no other file, and the signature of each document. The
// report has every problem. The error says that the file could not be read.
func Verify(ctx context.Context, path string, progress func(done, total int64)) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, lang.Errorf("%s is damaged, or no export: %s", "%s está dañado o no es una exportación: %s", path, err)
	}
	r := &Report{}
	r.checkSeal(f, archive.Comment)
	files := make(map[string]*zip.File, len(archive.File))
	for _, file := range archive.File {
		if files[file.Name] != nil {
			r.problem("%s is there twice", file.Name)
		}
		files[file.Name] = file
	}
	if err := r.readManifest(files); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	delete(files, manifestName)
	for i, want := range r.Manifest.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.checkFile(want, files[want.Name])
		delete(files, want.Name)
		if progress != nil {
			progress(int64(i+1), int64(len(r.Manifest.Files)))
		}
	}
	for name := range files {
		r.problem("%s is not in the manifest", name)
	}
	slices.Sort(r.Problems)
	return r, nil
}

func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

func (r *Report) checkSeal(f *os.File, comment string) {
	found, ok := strings.CutPrefix(comment, sealPrefix)
	want, _, err := sealOf(f)
	switch {
	case !ok:
		r.problem("the comment of the file has no digest")
	case err != nil:
		r.problem("the digest of the file: %v", err)
	case found != want:
		r.problem("the file was changed: its SHA-256 differs from the one in its comment")
	}
}

func (r *Report) readManifest(files map[string]*zip.File) error {
	var text bytes.Buffer
	_, _, err := copyZip(&text, files[manifestName], maxManifest)
	if err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	if err := json.Unmarshal(text.Bytes(), &r.Manifest); err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	if r.Manifest.Format != manifestFormat {
		return fmt.Errorf("%s: the format is %d; this program reads the format %d", manifestName, r.Manifest.Format, manifestFormat)
	}
	return nil
}

// checkFile checks a file of the manifest.
func (r *Report) checkFile(want File, file *zip.File) {
	var content bytes.Buffer
	signed := strings.HasPrefix(want.Name, xmlFolder)
	keep, limit := io.Discard, want.Size
	if signed {
		keep, limit = &content, min(limit, maxDocument)
	}
	sum, size, err := copyZip(keep, file, limit)
	if err != nil {
		r.problem("%s: %v", want.Name, err)
		return
	}
	if sum != want.SHA256 || size != want.Size {
		r.problem("%s was changed: its SHA-256 differs from the manifest", want.Name)
	}
	if !signed {
		return
	}
	verified, err := xmlsig.Verify(content.Bytes(), xmlsig.InvoiceLimits())
	if err != nil {
		r.problem("%s: the signature is not valid: %v", want.Name, err)
		return
	}
	document, _, err := ecf.Read(verified)
	if err != nil {
		r.problem("%s: %v", want.Name, err)
		return
	}
	if name := xmlFolder + r.Manifest.RNC + document.ENCF.String() + ".xml"; name != want.Name {
		r.problem("%s contains the document %s", want.Name, name)
		return
	}
	r.Signatures++
}

// copyZip copies a file and returns its SHA-256 and its size. A missing file and one
// that is larger than limit are errors.
func copyZip(to io.Writer, file *zip.File, limit int64) (sum string, size int64, err error) {
	if file == nil {
		return "", 0, errors.New("the file is missing")
	}
	in, err := file.Open()
	if err != nil {
		return "", 0, err
	}
	digest := sha256.New()
	size, err = io.Copy(io.MultiWriter(to, digest), io.LimitReader(in, limit+1))
	if err == nil && size > limit {
		err = errors.New("the file is larger than the manifest says")
	}
	return hex.EncodeToString(digest.Sum(nil)), size, errors.Join(err, in.Close())
}

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
