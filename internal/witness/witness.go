// Package witness keeps, in a file outside of the database, the highest number
// of each range whose document has been sent. A database that is restored from
// an older copy forgets that it has sent numbers; the witness does not. What
// follows from it is not its business.
//
// The file is lines of text, only ever appended to, each with a checksum.
// Several processes of one machine may share it.
package witness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// ErrDamaged says that the file cannot be relied on: a record of it is not what
// was written.
var ErrDamaged = errors.New("witness: the file is damaged")

// Range is a range of numbers of one RNC and one type of document.
type Range struct {
	RNC, Type   string
	First, Last int64
}

// Mark is what is known about the numbers sent of a range.
type Mark struct {
	// Number is the highest one, 0 when none was.
	Number int64
	// Unknown tells that there may have been higher ones: the file was begun
	// when an earlier one had been lost, and the range was not settled since.
	Unknown bool
}

// key names a range by where it begins: an operator may add it again with
// another end, or under another id.
type key struct {
	rnc, kind string
	first     int64
}

// entry is what the file says about a range.
type entry struct {
	number  int64
	settled bool
}

// File is an open witness. Use it from as many goroutines as needed.
type File struct {
	path, name string

	gather  sync.Mutex // over what waits to be written, and what is durable
	next    *batch
	durable map[key]int64

	turn   sync.Mutex // of whoever writes
	file   *os.File
	sync   func(*os.File) error
	failed error
	broken chan struct{}

	mu       sync.Mutex // over what has been read
	info     os.FileInfo
	offset   int64
	doubtful bool
	entries  map[owner]map[int64]entry
}

// owner is whose ranges may have numbers in common.
type owner struct{ rnc, kind string }

// batch is records that share one fsync.
type batch struct {
	records []record
	done    bool
	err     error
}

// Create makes a new file with a name for what it is the witness of, and opens
// it. In doubt says that earlier numbers may have been sent that nobody
// remembers: then every range is unknown until it is settled. A file that
// exists stays as it is and is opened.
func Create(path, name string, inDoubt bool) (*File, error) {
	if err := place(path, header(name, inDoubt), os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("witness: create: %w", err)
	}
	return Open(path, name)
}

// Open opens the file. The error is fs.ErrNotExist when there is none, and
// ErrDamaged when it cannot be relied on. The end of a record that a crash has
// cut off is removed: its document was never sent.
func Open(path, name string) (*File, error) {
	f := &File{
		path: path, name: name, next: &batch{}, durable: make(map[key]int64), broken: make(chan struct{}),
		sync: (*os.File).Sync, entries: make(map[owner]map[int64]entry),
	}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open() error {
	if err := f.hold(); err != nil {
		return fmt.Errorf("witness: open: %w", err)
	}
	defer f.release()
	size, err := f.mend()
	if err == nil {
		err = f.refresh()
	}
	if err == nil && size > compactAt {
		err = f.compact()
	}
	if err == nil {
		// What another process has written it may not have synced before it ended.
		err = f.sync(f.file)
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return fmt.Errorf("witness: open: %w", err)
	}
	for o, list := range f.entries {
		for first, e := range list {
			f.durable[key{o.rnc, o.kind, first}] = e.number
		}
	}
	return nil
}

// Close lets the file go.
func (f *File) Close() error {
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.failed = nil, fs.ErrClosed
	return err
}

// Broken is closed when the disk has failed to keep a record. The process must
// end: repeating a failed fsync can report success for data that is gone.
func (f *File) Broken() <-chan struct{} { return f.broken }

// Raise says that a number of a range is about to be sent, and returns once
// that is durable. Callers at the same time share one fsync. A number that is
// not higher than one that is durable costs nothing.
func (f *File) Raise(r Range, number int64) error { return f.add(record{"sent", r.key(), number}) }

// Settle says that every number up to one is accounted for, and that no higher
// one was sent: the range is unknown no longer.
func (f *File) Settle(r Range, number int64) error { return f.add(record{"settled", r.key(), number}) }

func (r Range) key() key { return key{r.RNC, r.Type, r.First} }

func (f *File) add(r record) error {
	f.gather.Lock()
	if r.word == "sent" && f.durable[r.key] >= r.number {
		f.gather.Unlock()
		return nil
	}
	mine := f.next
	mine.records = append(mine.records, r)
	f.gather.Unlock()

	f.turn.Lock()
	defer f.turn.Unlock()
	if mine.done { // by one who had the turn before
		return mine.err
	}
	f.gather.Lock()
	f.next = &batch{}
	f.gather.Unlock()
	mine.err, mine.done = f.commit(mine.records), true
	if mine.err != nil {
		return mine.err
	}
	f.gather.Lock()
	defer f.gather.Unlock()
	for _, r := range mine.records {
		f.durable[r.key] = max(f.durable[r.key], r.number)
	}
	return nil
}

// commit appends records and makes them durable.
func (f *File) commit(records []record) error {
	if f.failed != nil {
		return fmt.Errorf("witness: write: %w", f.failed)
	}
	if err := f.hold(); err != nil {
		return fmt.Errorf("witness: write: %w", err)
	}
	defer f.release()
	size, err := f.mend()
	if err != nil {
		return fmt.Errorf("witness: write: %w", err)
	}
	var text bytes.Buffer
	for _, r := range records {
		text.WriteString(r.line())
	}
	if _, err := f.file.Write(text.Bytes()); err != nil {
		// Part of it may be there: on a full disk there is no room for the rest.
		return fmt.Errorf("witness: write: %w", errors.Join(err, f.file.Truncate(size)))
	}
	if err := f.sync(f.file); err != nil {
		f.failed = err
		close(f.broken)
		return fmt.Errorf("witness: write: %w", err)
	}
	return nil
}

// hold locks the file that the path names, for it may have been replaced by a
// shorter one of the same content.
func (f *File) hold() error {
	for {
		if f.file == nil {
			file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			f.file = file
		}
		if err := lock(f.file); err != nil {
			return err
		}
		mine, err := f.file.Stat()
		if err != nil {
			return err
		}
		named, err := os.Stat(f.path)
		if err == nil && os.SameFile(mine, named) {
			return nil
		}
		if err := errors.Join(err, f.file.Close()); err != nil { // closing unlocks
			f.file = nil
			return err
		}
		f.file = nil
	}
}

func (f *File) release() {
	if f.file != nil {
		_ = unlock(f.file) // a lock that cannot be given back ends with the file
	}
}

// mend removes a record without an end, which only a crash leaves behind while
// the file is locked, and returns the size.
func (f *File) mend() (int64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	tail := make([]byte, min(size, 4*maxLine))
	if _, err := f.file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, err
	}
	end := bytes.LastIndexByte(tail, '\n')
	torn := int64(len(tail) - end - 1)
	switch {
	case end < 0:
		return 0, ErrDamaged
	case torn == 0:
		return size, nil
	}
	return size - torn, f.file.Truncate(size - torn)
}

// Mark tells what is known about a range, also by what other processes have
// written. A number counts whichever range of the same RNC and type it was sent
// from, so that a range that is added anew remembers.
func (f *File) Mark(r Range) (Mark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return Mark{}, fmt.Errorf("witness: read: %w", err)
	}
	list := f.entries[owner{r.RNC, r.Type}]
	m := Mark{Unknown: f.doubtful && !list[r.First].settled}
	for first, e := range list {
		// Numbers of a range are taken in order: all up to the highest were.
		if first <= r.Last && e.number >= r.First {
			m.Number = max(m.Number, min(e.number, r.Last))
		}
	}
	return m, nil
}

// refresh reads what has been written since the last time.
func (f *File) refresh() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if f.info == nil || !os.SameFile(f.info, info) || info.Size() < f.offset {
		f.offset = 0 // another file, which knows at least as much
	}
	if f.info = info; info.Size() == f.offset {
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.NewSectionReader(file, f.offset, info.Size()-f.offset))
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return nil // being written
		}
		if err := f.take(string(line), f.offset == 0); err != nil {
			f.info = nil // the next look finds it damaged as well
			return err
		}
		f.offset += int64(len(line)) + 1
		text = rest
	}
}

// take keeps what a line says.
func (f *File) take(line string, first bool) error {
	if first {
		inDoubt, err := parseHeader(line, f.name)
		f.doubtful = f.doubtful || inDoubt
		return err
	}
	r, err := parseRecord(line)
	if err != nil {
		return err
	}
	o := owner{r.rnc, r.kind}
	if f.entries[o] == nil {
		f.entries[o] = make(map[int64]entry)
	}
	e := f.entries[o][r.first]
	f.entries[o][r.first] = entry{max(e.number, r.number), e.settled || r.word == "settled"}
	return nil
}
