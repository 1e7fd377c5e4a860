// Package witness keeps, in a file outside the database, the highest number of each
// number range that anybody may have seen, and the highest one that was sent to the tax
// authority. After a restore from an older copy, the database does not know the numbers
// that were used since; the witness does. Package fence decides what to do about them.
//
// The file consists of lines of text, each with a checksum. Lines are only appended; the
// second one has the length of the file and is overwritten. Several processes on one
// machine may share the file.
package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/combine"
)

// ErrDamaged means that the file cannot be trusted: a record of it was changed, is
// incomplete or is missing at the end. Only what follows the recorded length may be
// incomplete: a power cut has interrupted a write that nobody has relied on.
var ErrDamaged = errors.New("witness: the file is damaged")

// ErrOtherDatabase means that the file belongs to another database: its marks say nothing
// about the numbers of this one.
var ErrOtherDatabase = errors.New("witness: the file belongs to another database")

// Range is a range of numbers of one RNC and one document type.
type Range struct {
	RNC, Type   string
	First, Last int64
}

// Mark is the knowledge about the used numbers of a range.
type Mark struct {
	// Seen is the highest number that anybody may have seen, in an answer, on a page, in
	// an event or at the authority; 0 when there is none. It is never below Sent. Earlier
	// releases recorded only what was sent.
	Seen int64
	// Sent is the highest number that was sent to the authority, 0 when none was.
	Sent int64
	// Unknown is true when higher numbers may have been used: the file was created
	// after an earlier one was lost, and the range was not settled since.
	Unknown bool
}

// key identifies a range by its first number, because an operator may add the same
// range again with another end or another id.
type key struct {
	rnc, kind string
	first     int64
}

// entry is the content of the file about one range.
type entry struct {
	number  int64
	settled bool
}

// File is an open witness. It is safe for concurrent use.
type File struct {
	path, name, database string

	writes    combine.Group[[]record]
	durableMu sync.Mutex
	durable   map[key]int64

	writeMu  sync.Mutex // guards file, lengthAt, sync, failed and broken; one goroutine writes at a time
	file     *os.File
	lengthAt int64 // where the line with the length begins; 0: an earlier program has written the file
	sync     func(*os.File) error
	failed   error
	broken   chan struct{}

	readMu   sync.Mutex // guards the content that was read
	info     os.FileInfo
	offset   int64
	doubtful bool
	labels   map[string]string
	entries  map[owner]map[int64]entry
}

// owner is an RNC and a document type. Ranges of one owner may overlap.
type owner struct{ rnc, kind string }

// Create creates the file and opens it. The name is that of the environment that the
// file belongs to, and database that of its database; Open checks them. With inDoubt,
// numbers may have been used that the new file does not know: every range is unknown until
// it is settled. When the file exists, Create opens it and does not change it.
func Create(path, name, database string, inDoubt bool) (*File, error) {
	if err := atomicfile.Create(path, withLength(header(name, inDoubt), "")); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("witness: create: %w", err)
	}
	return Open(path, name, database)
}

// Open opens the file. It fails with fs.ErrNotExist when there is no file, with
// ErrDamaged when the file cannot be trusted, and with ErrOtherDatabase when it belongs to
// another database.
func Open(path, name, database string) (*File, error) {
	f := newFile(path, name, database)
	err := f.open()
	if err == nil {
		err = f.label()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func newFile(path, name, database string) *File {
	f := &File{
		path: path, name: name, database: database, durable: make(map[key]int64), broken: make(chan struct{}),
		sync: (*os.File).Sync, labels: make(map[string]string), entries: make(map[owner]map[int64]entry),
	}
	f.writes.Run = f.writeAll
	return f
}

func (f *File) open() error {
	if err := f.lockFile(); err != nil {
		return fmt.Errorf("witness: open: %w", err)
	}
	defer f.unlockFile()
	size, err := f.checkTail()
	if err == nil {
		err = f.refresh()
	}
	if err == nil && (size > compactAt || f.lengthAt == 0) {
		err = f.compact()
	}
	if err == nil {
		// Another process may have written records and ended before it synced them.
		err = f.sync(f.file)
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(f.path))
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

// Close closes the file.
func (f *File) Close() error {
	f.writeMu.Lock()
	defer f.writeMu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.failed = nil, fs.ErrClosed
	return err
}

// Broken returns a channel that is closed when an fsync fails. The process must then
// end: a second fsync can report success for data that is lost.
func (f *File) Broken() <-chan struct{} { return f.broken }

// RaiseSeen records that a number of a range is about to become visible, and returns when
// the record is durable. Concurrent calls share one fsync. RaiseSeen writes nothing when the
// same or a higher number is already durable.
func (f *File) RaiseSeen(r Range, number int64) error {
	return f.add(record{verbSent, r.seenKey(), number})
}

// RaiseSent records that a number of a range is about to be sent, and so to become visible,
// as RaiseSeen does.
func (f *File) RaiseSent(r Range, number int64) error {
	return f.add(record{verbSent, r.key(), number}, record{verbSent, r.seenKey(), number})
}

// Settle records that every number of a range up to this one is accounted for and
// that no higher number was used. The range is then no longer unknown.
func (f *File) Settle(r Range, number int64) error {
	mark, err := f.Mark(r)
	if err != nil {
		return err
	}
	return f.add(record{verbSettled, r.key(), mark.Sent}, record{verbSent, r.seenKey(), number})
}

func (r Range) key() key { return key{r.RNC, r.Type, r.First} }

func (r Range) seenKey() key { return key{r.RNC, seenKind(r.Type), r.First} }

// add returns when records are durable. Concurrent calls share an fsync.
func (f *File) add(records ...record) error {
	f.durableMu.Lock()
	records = slices.DeleteFunc(records, func(r record) bool { return r.verb == verbSent && f.durable[r.key] >= r.number })
	f.durableMu.Unlock()
	if len(records) == 0 {
		return nil
	}
	return f.writes.Do(context.Background(), records) //nolint:forbidigo // a record that is written stays written, whoever gives up
}

// writeAll makes the records of calls durable.
func (f *File) writeAll(_ context.Context, calls []*combine.Call[[]record]) {
	var all []record
	for _, c := range calls {
		all = append(all, c.Value...)
	}
	f.writeMu.Lock()
	defer f.writeMu.Unlock()
	err := f.commit(all)
	combine.SetAll(calls, err)
	if err != nil {
		return
	}
	f.durableMu.Lock()
	defer f.durableMu.Unlock()
	for _, r := range all {
		f.durable[r.key] = max(f.durable[r.key], r.number)
	}
}

// commit appends records to the file and syncs it.
func (f *File) commit(records []record) error {
	if f.failed != nil {
		return fmt.Errorf("witness: write: %w", f.failed)
	}
	if err := f.lockFile(); err != nil {
		return fmt.Errorf("witness: write: %w", err)
	}
	defer f.unlockFile()
	size, err := f.checkTail()
	if err != nil {
		return fmt.Errorf("witness: write: %w", err)
	}
	var text bytes.Buffer
	for _, r := range records {
		text.WriteString(r.line())
	}
	if _, err := f.file.WriteAt(text.Bytes(), size); err != nil {
		// The disk may be full and hold only a part of the records.
		return fmt.Errorf("witness: write: %w", errors.Join(err, f.file.Truncate(size)))
	}
	if err := f.sync(f.file); err != nil {
		f.failed = err
		close(f.broken)
		return fmt.Errorf("witness: write: %w", err)
	}
	if f.lengthAt > 0 {
		// Only now: after a power cut the file must not be shorter than the line says. When
		// the line is not written, the file is longer, which does no harm.
		_, _ = f.file.WriteAt([]byte(lengthLine(size+int64(text.Len()))), f.lengthAt)
	}
	return nil
}

// lockFile locks the file that the path names. It opens the file again when another
// process has replaced it with a shorter one of the same content.
func (f *File) lockFile() error {
	for {
		if f.file == nil {
			file, err := os.OpenFile(f.path, os.O_RDWR, 0)
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

func (f *File) unlockFile() {
	if f.file != nil {
		_ = unlock(f.file) // closing the file releases the lock too
	}
}

// checkTail returns the size of the file. It fails with ErrDamaged when the last
// record is incomplete, or when records are missing at the end. The file must be locked:
// no other process is writing then.
func (f *File) checkTail() (int64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	head := make([]byte, 512)
	n, err := f.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	first, rest, _ := bytes.Cut(head[:n], []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	length, ok, err := parseLength(string(second))
	if err != nil {
		return 0, err
	}
	f.lengthAt = int64(len(first)) + 1
	if !ok { // a file of an earlier release does not say how long it was
		f.lengthAt, length = 0, 0
	}
	if size < length {
		return 0, fmt.Errorf("%w: it has %d bytes and had %d", ErrDamaged, size, length)
	}
	return f.dropTail(size, length)
}

// dropTail removes what was written after the recorded length and is incomplete: a write
// that was not synced. It returns the size of the file then.
func (f *File) dropTail(size, length int64) (int64, error) {
	tail := make([]byte, size-length)
	if _, err := f.file.ReadAt(tail, length); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	whole := length
	for rest := tail; len(rest) > 0; {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		torn := !found || bytes.IndexByte(line, 0) >= 0 // zeros are where nothing was written
		if torn && length == 0 {
			return 0, fmt.Errorf("%w: its last record is incomplete", ErrDamaged)
		}
		if torn {
			return whole, f.file.Truncate(whole)
		}
		whole, rest = whole+int64(len(line))+1, after
	}
	if whole == 0 {
		return 0, ErrDamaged
	}
	return whole, nil
}

// Mark returns the knowledge about a range, including the records of other processes.
// It counts the numbers of every range of the same RNC and type, so that a range
// that was removed and added again keeps its mark.
func (f *File) Mark(r Range) (Mark, error) {
	f.readMu.Lock()
	defer f.readMu.Unlock()
	if err := f.refresh(); err != nil {
		return Mark{}, fmt.Errorf("witness: read: %w", err)
	}
	m := Mark{
		Sent: f.highest(r, r.Type), Seen: f.highest(r, seenKind(r.Type)),
		Unknown: f.doubtful && !f.entries[owner{r.RNC, r.Type}][r.First].settled,
	}
	m.Seen = max(m.Seen, m.Sent)
	return m, nil
}

// highest returns the highest number of a range among the entries of a kind.
func (f *File) highest(r Range, kind string) (number int64) {
	for first, e := range f.entries[owner{r.RNC, kind}] {
		// A range gives out its numbers in order: all up to the highest were used.
		if first <= r.Last && e.number >= r.First {
			number = max(number, min(e.number, r.Last))
		}
	}
	return number
}

// refresh reads the records that were appended since the last call.
func (f *File) refresh() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if f.info == nil || !os.SameFile(f.info, info) || info.Size() < f.offset {
		// Another file with the same numbers; ranges may be unknown again.
		f.offset = 0
		for _, list := range f.entries {
			for first, e := range list {
				list[first] = entry{number: e.number}
			}
		}
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
			return nil // another process is writing this record
		}
		if err := f.apply(string(line), f.offset == 0); err != nil {
			f.info = nil // the next call reads the file again and reports the damage too
			return err
		}
		f.offset += int64(len(line)) + 1
		text = rest
	}
}

// apply adds a line to the entries. The first line is the header.
func (f *File) apply(line string, first bool) error {
	if first {
		inDoubt, err := parseHeader(line, f.name)
		f.doubtful = f.doubtful || inDoubt
		return err
	}
	if strings.HasPrefix(line, lengthPrefix) {
		return nil // checkTail reads it; another process may be writing it now
	}
	r, err := parseRecord(line)
	if err != nil {
		return err
	}
	if name, value, ok := r.label(); ok && f.labels[name] == "" {
		f.labels[name] = value
	}
	o := owner{r.rnc, r.kind}
	if f.entries[o] == nil {
		f.entries[o] = make(map[int64]entry)
	}
	e := f.entries[o][r.first]
	f.entries[o][r.first] = entry{max(e.number, r.number), e.settled || r.verb == verbSettled}
	return nil
}
