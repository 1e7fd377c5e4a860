package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
)

// compressFrom is the size in bytes from which a text is stored compressed. A smaller
// one fits into a few pages.
const compressFrom = 16 << 10

// gzipMagic begins every compressed value. No text that is stored so begins with it: a
// request begins with "{" and a signed document with "<".
var gzipMagic = []byte{0x1f, 0x8b}

func newGzipWriters() *sync.Pool {
	return &sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails only for an unknown level
		return w
	}}
}

// compressed returns the form in which a text is stored. SQLite writes every page of a
// row to the log and copies it to the database later, and all writers wait for both. So
// a large text is made small before it gets there. PostgreSQL compresses large values
// itself.
func (d *dialect) compressed(text []byte) []byte {
	if d.gzipWriters == nil || len(text) < compressFrom {
		return text
	}
	var b bytes.Buffer
	w := d.gzipWriters.Get().(*gzip.Writer)
	defer d.gzipWriters.Put(w)
	w.Reset(&b)
	_, err := w.Write(text)
	if err != nil || w.Close() != nil || b.Len() >= len(text) { // a Buffer takes everything
		return text
	}
	return b.Bytes()
}

// A storedText scans a column that compressed has written.
type storedText []byte

// Scan implements sql.Scanner. It fails when a compressed value is damaged: gzip has a
// checksum of the text.
func (t *storedText) Scan(column any) error {
	switch column := column.(type) {
	case nil:
		*t = nil
		return nil
	case []byte:
		if !bytes.HasPrefix(column, gzipMagic) {
			*t = bytes.Clone(column) // the driver may use the bytes again
			return nil
		}
		r, err := gzip.NewReader(bytes.NewReader(column))
		if err != nil {
			return fmt.Errorf("decompress: %w", err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("decompress: %w", err)
		}
		*t = text
		return nil
	default:
		return fmt.Errorf("the column has the type %T, not bytes", column)
	}
}

// headSize is how much of a large request is read when only its beginning is needed.
const headSize = 16 << 10

// A storedHead scans the first headSize bytes of a column that compressed has written,
// and returns at most headSize bytes of the text.
type storedHead []byte

// Scan implements sql.Scanner.
func (t *storedHead) Scan(column any) error {
	value, ok := column.([]byte)
	if !ok || len(value) < headSize || !bytes.HasPrefix(value, gzipMagic) {
		whole := (*storedText)(t)
		err := whole.Scan(column)
		*t = (*t)[:min(len(*t), headSize)]
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	text := make([]byte, headSize)
	n, err := io.ReadFull(r, text)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // the value is cut
		return fmt.Errorf("decompress: %w", err)
	}
	*t = text[:n]
	return nil
}
