package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// chunkSize is the size in bytes of all chunks of a file but the last one. A reader
	// holds one chunk in memory.
	chunkSize = 256 << 10
	// maxStored is the size in bytes of the largest file that the database keeps.
	maxStored = 2 << 30
)

// TooLarge is the problem of an export whose file is larger than the service keeps.
const TooLarge = "too_large"

var errTooLarge = fmt.Errorf("export: the file is larger than %d bytes: export a shorter span, or use fiscalhub export", int64(maxStored))

// upload stores the file of an export in the database, in chunks. Each transaction checks
// that this process still has the export. The error is store.ErrLeaseLost when it has not.
func (j *Jobs) upload(ctx context.Context, e store.Export) (size int64, err error) {
	f, err := os.Open(j.path(e.ID))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() > maxStored {
		return 0, errTooLarge
	}
	chunk := make([]byte, chunkSize)
	for n := int64(0); ; n++ {
		read, err := io.ReadFull(f, chunk)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		now := j.o.Now()
		err = j.o.Store.Update(ctx, func(tx *store.Tx) error {
			if err := tx.SaveExport(ctx, e, j.holder, now, now.Add(lease)); err != nil {
				return err
			}
			return tx.SaveExportChunk(ctx, e, n, chunk[:read])
		})
		if err != nil {
			return 0, err
		}
		size += int64(read)
	}
}

// A storedFile reads the file of an export from the database.
type storedFile struct {
	ctx    context.Context //nolint:containedctx // io.Reader has none
	store  *store.Store
	export store.Export
	at     int64
	loaded int64 // the number of chunk; -1: none
	chunk  []byte
}

// Read reads from the chunk at the position.
func (f *storedFile) Read(p []byte) (int, error) {
	if f.at >= f.export.Size {
		return 0, io.EOF
	}
	if n := f.at / chunkSize; n != f.loaded {
		chunk, err := f.store.ExportChunk(f.ctx, f.export, n)
		if err != nil {
			return 0, err
		}
		if want := min(chunkSize, f.export.Size-n*chunkSize); int64(len(chunk)) != want {
			return 0, fmt.Errorf("export: chunk %d has %d bytes, want %d: %w", n, len(chunk), want, io.ErrUnexpectedEOF)
		}
		f.chunk, f.loaded = chunk, n
	}
	read := copy(p, f.chunk[f.at%chunkSize:])
	f.at += int64(read)
	return read, nil
}

// Seek sets the position of the next Read.
func (f *storedFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.export.Size
	}
	if offset < 0 {
		return 0, errors.New("export: a negative position")
	}
	f.at = offset
	return offset, nil
}

// Close releases the chunk.
func (f *storedFile) Close() error {
	f.chunk, f.loaded = nil, -1
	return nil
}
