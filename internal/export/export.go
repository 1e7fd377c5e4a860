// Package export writes the documents of a taxpayer into a ZIP file for its
// accountant, and checks such files.
//
// The file has the signed documents (xml/), their printed pages (pdf/), a table of the
// documents (documents.csv), sums by day, type and rate (summary.csv), and a manifest
// with the digest of each file. The comment of the ZIP file holds the digest of
// the whole file, so that Verify finds every changed byte.
package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Names of the files in an export.
const (
	manifestName  = "manifest.json"
	documentsName = "documents.csv"
	summaryName   = "summary.csv"
	xmlFolder     = "xml/"
	pdfFolder     = "pdf/"
)

// ErrOtherExport says that the folder of an interrupted export belongs to an export
// with other options.
var ErrOtherExport = errors.New("export: the interrupted export has other options")

// Options say what is exported.
type Options struct {
	Store    *store.Store
	Pipeline *pipeline.Pipeline // reads the files of documents
	Scope    store.Scope
	From, To fiscal.Date // first and last date of issue
	PDF      bool        // with the printed pages
	Now      func() time.Time
	// Progress receives how many of the documents are written. It may be nil.
	Progress func(done, total int64)

	part int // documents of a part; 0: partSize
}

// A Manifest describes an export.
type Manifest struct {
	Format      int       `json:"format"`
	RNC         string    `json:"rnc"`
	LegalName   string    `json:"legal_name"`
	TaxpayerID  string    `json:"taxpayer_id"`
	Environment string    `json:"environment"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	PDF         bool      `json:"pdf"`
	MadeAt      time.Time `json:"made_at"`
	Documents   int64     `json:"documents"`
	Files       []File    `json:"files"`
}

// A File is the entry of a file in the manifest.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const manifestFormat = 1

// partialEnding ends the name of the folder of an export that is not complete.
const partialEnding = ".partial"

// Write exports documents into a new file. The error is fs.ErrExist when the file
// exists.
//
// Write works in the folder path+".partial". When it is interrupted, the folder
// stays, and the next Write with the same options goes on where the last one stopped.
// It fails with ErrOtherExport when the folder has other options.
func Write(ctx context.Context, path string, o Options) (Manifest, error) {
	if _, err := os.Lstat(path); err == nil {
		return Manifest{}, fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	w, err := begin(ctx, path+partialEnding, o)
	if err != nil {
		return Manifest{}, err
	}
	if err := w.collect(ctx); err != nil {
		return Manifest{}, err
	}
	manifest, err := w.join(ctx, path)
	if err != nil {
		return Manifest{}, err
	}
	return manifest, os.RemoveAll(w.dir)
}

// join writes the file from the complete parts.
func (w *writer) join(ctx context.Context, path string) (m Manifest, err error) {
	whole := filepath.Join(w.dir, "export.zip")
	f, err := create(whole)
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }() // closed below; this one is for errors
	archive := zip.NewWriter(f)
	m = w.state.manifest()
	if err := w.copyParts(ctx, archive, &m); err != nil {
		return m, err
	}
	if err := w.addManifest(archive, m); err != nil {
		return m, err
	}
	if err := archive.SetComment(emptySeal); err != nil {
		return m, err
	}
	if err := errors.Join(archive.Close(), sealFile(f), f.Sync(), f.Close()); err != nil {
		return m, err
	}
	return m, errors.Join(publish(whole, path), atomicfile.SyncDir(filepath.Dir(path)))
}

// create creates a file that only this user can read.
func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// publish gives a complete file its name. Link fails when the file exists, which another
// export may have made meanwhile. Some disks have no links.
func publish(whole, path string) error {
	err := os.Link(whole, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(whole, path)
}

// copyParts copies the files of all parts, and adds the tables.
func (w *writer) copyParts(ctx context.Context, archive *zip.Writer, m *Manifest) error {
	rows, sums := [][]string{documentColumns()}, newSums()
	for n := range w.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, err := openPart(w.partPath(n))
		if err != nil {
			return err
		}
		for _, file := range part.archive.File {
			if file.Name != partName {
				err = errors.Join(err, archive.Copy(file))
			}
		}
		m.Files = append(m.Files, part.Files...)
		rows = append(rows, part.Rows...)
		if err := errors.Join(err, sums.addAll(part.Sums), part.archive.Close()); err != nil {
			return err
		}
	}
	m.Documents = int64(len(rows) - 1)
	for _, table := range []struct {
		name string
		rows [][]string
	}{{documentsName, rows}, {summaryName, sums.rows()}} {
		file, err := addTable(archive, table.name, table.rows, w.state.StartedAt)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, file)
	}
	return nil
}

func (w *writer) addManifest(archive *zip.Writer, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	_, err = addFile(archive, manifestName, append(text, '\n'), w.state.StartedAt)
	return err
}

// addFile adds a file and returns its entry in the manifest.
func addFile(archive *zip.Writer, name string, content []byte, at time.Time) (File, error) {
	w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at})
	if err != nil {
		return File{}, err
	}
	sum := sha256.Sum256(content)
	_, err = w.Write(content)
	return File{name, int64(len(content)), hex.EncodeToString(sum[:])}, err
}

// addTable adds a CSV file. It begins with a byte order mark, so that spreadsheets
// read the letters of Spanish names.
func addTable(archive *zip.Writer, name string, rows [][]string, at time.Time) (File, error) {
	w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at})
	if err != nil {
		return File{}, err
	}
	digest, size := sha256.New(), new(counter)
	out := io.MultiWriter(w, digest, size)
	if _, err := io.WriteString(out, "\ufeff"); err != nil {
		return File{}, err
	}
	table := csv.NewWriter(out)
	table.UseCRLF = true
	if err := table.WriteAll(rows); err != nil {
		return File{}, err
	}
	return File{name, int64(*size), hex.EncodeToString(digest.Sum(nil))}, nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
