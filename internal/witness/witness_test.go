package witness

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// childPath is the environment variable with the file that a child process of the
// tests writes to.
const childPath = "FISCALHUB_TEST_WITNESS"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		os.Exit(raiseInChild(path))
	}
	os.Exit(m.Run())
}

// raiseInChild raises every third number of a range in a child process.
func raiseInChild(path string) int {
	f, err := Open(path, "test", "db")
	if err != nil {
		return 1
	}
	for n := int64(1); n <= 300; n += 3 {
		if f.RaiseSent(credit, n) != nil {
			return 1
		}
	}
	return 0
}

var (
	credit   = Range{"199000013", "31", 1, 1000}
	consumer = Range{"199000013", "32", 1, 1000}
)

func create(t *testing.T, inDoubt bool) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "witness")
	f, err := Create(path, "test", "db", inDoubt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, path
}

func reopen(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path, "test", "db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func raise(t *testing.T, f *File, r Range, n int64) {
	t.Helper()
	if err := f.RaiseSent(r, n); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, f *File, r Range, m Mark) {
	t.Helper()
	if got, err := f.Mark(r); err != nil || got != m {
		t.Errorf("%+v: %+v, %v; want %+v", r, got, err, m)
	}
}

func TestMarkIsTheHighestNumber(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	want(t, f, credit, Mark{})
	for _, n := range []int64{3, 7, 5} {
		raise(t, f, credit, n)
	}
	raise(t, f, consumer, 2)
	for _, f := range []*File{f, reopen(t, path)} {
		want(t, f, credit, Mark{Seen: 7, Sent: 7})
		want(t, f, consumer, Mark{Seen: 2, Sent: 2})
		want(t, f, Range{"101000000", "31", 1, 1000}, Mark{})
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Open(path, "other", "db"); !errors.Is(err, ErrDamaged) {
		t.Errorf("the witness of another environment: %v", err)
	}
	if _, err := Open(path+"x", "test", "db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A range that was added again with other bounds keeps the numbers of the old one.
func TestMarkCountsOverlappingRanges(t *testing.T) {
	t.Parallel()
	f, _ := create(t, false)
	raise(t, f, Range{"199000013", "31", 101, 200}, 150)
	for _, tt := range []struct{ first, last, number int64 }{
		{101, 500, 150}, {1, 1000, 150}, {1, 120, 120}, {140, 160, 150}, {1, 100, 0}, {151, 200, 0},
	} {
		want(t, f, Range{"199000013", "31", tt.first, tt.last}, Mark{Seen: tt.number, Sent: tt.number})
	}
}

func TestSettleEndsTheDoubt(t *testing.T) {
	t.Parallel()
	f, path := create(t, true)
	raise(t, f, credit, 4)
	want(t, f, credit, Mark{Seen: 4, Sent: 4, Unknown: true})
	if err := f.Settle(credit, 9); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*File{f, reopen(t, path)} {
		want(t, f, credit, Mark{Seen: 9, Sent: 4})
		want(t, f, consumer, Mark{Unknown: true})
	}
	again, err := Create(path, "test", "db", false) // opens the existing file
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	want(t, again, consumer, Mark{Unknown: true})
}

// What a power cut leaves of a write that was not synced is dropped, and the records before
// it count. A record that was durable before is missed.
func TestAnInterruptedWriteIsDropped(t *testing.T) {
	t.Parallel()
	whole := record{verbSent, credit.key(), 8}.line()
	for cut := 1; cut < len(whole); cut++ {
		for name, rest := range map[string]string{"a part": whole[:cut], "zeros": strings.Repeat("\x00", cut+1), "zeros in between": whole[:cut] + "\x00\x00\n" + whole} {
			f, path := create(t, false)
			raise(t, f, credit, 7)
			add(t, path, rest)
			again := reopen(t, path)
			want(t, again, credit, Mark{Seen: 7, Sent: 7})
			raise(t, again, credit, 9)
			raise(t, f, credit, 10)
			want(t, reopen(t, path), credit, Mark{Seen: 10, Sent: 10})
			if t.Failed() {
				t.Fatalf("after %d bytes: %s", cut, name)
			}
		}
	}
	for cut := range int64(len(whole) - 1) {
		f, path := create(t, false)
		raise(t, f, credit, 8)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()-cut-1); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, "test", "db"); !errors.Is(err, ErrDamaged) {
			t.Errorf("Open of a file without its last %d bytes: %v, want ErrDamaged", cut+1, err)
		}
		if err := f.RaiseSent(credit, 9); !errors.Is(err, ErrDamaged) {
			t.Errorf("RaiseSent without the last %d bytes: %v, want ErrDamaged", cut+1, err)
		}
	}
}

// A file that was cut at the end of a record is damaged too.
func TestMissingRecordsAreDamage(t *testing.T) {
	t.Parallel()
	for missing := 1; missing <= 3; missing++ {
		f, path := create(t, false)
		for n := range int64(3) {
			raise(t, f, credit, n+1)
		}
		if err := os.WriteFile(path, cutRecords(t, path, missing), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.RaiseSent(credit, 9); !errors.Is(err, ErrDamaged) {
			t.Errorf("Raise without the last %d records: %v, want ErrDamaged", missing, err)
		}
		if _, err := Open(path, "test", "db"); !errors.Is(err, ErrDamaged) {
			t.Errorf("Open without the last %d records: %v, want ErrDamaged", missing, err)
		}
	}
	f, path := create(t, false)
	raise(t, f, credit, 1)
	f, err := Adopt(path, "test", "other", true) // writes a new file
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	raise(t, f, credit, 2)
	if err := os.WriteFile(path, cutRecords(t, path, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "test", "other"); !errors.Is(err, ErrDamaged) {
		t.Errorf("Open of a new file that was cut: %v, want ErrDamaged", err)
	}
}

// cutRecords returns the content of a file without its last records.
func cutRecords(t *testing.T, path string, missing int) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range missing {
		text = text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1]
	}
	return text
}

// Records that were written while the line with the length was not are no damage: the
// process was killed, or an earlier program has appended them.
func TestMoreRecordsThanTheLengthAreNoDamage(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	raise(t, f, credit, 1)
	add(t, path, record{verbSent, credit.key(), 5}.line())
	want(t, reopen(t, path), credit, Mark{Seen: 5, Sent: 5})
	raise(t, f, credit, 6)
	want(t, reopen(t, path), credit, Mark{Seen: 6, Sent: 6})
}

// A file of an earlier program has no line with the length, or has it as a record after
// that program has compacted the file. Open adds the line.
func TestAFileOfAnEarlierProgramGetsItsLength(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"without a length": header("test", false) + record{verbSent, credit.key(), 7}.line() + record{verbSent, credit.key(), 8}.line(),
		"compacted":        header("test", false) + record{verbSent, key{"length", "00", 0}, 1 << 20}.line() + record{verbSent, credit.key(), 8}.line(),
	} {
		path := filepath.Join(t.TempDir(), "witness")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := reopen(t, path)
		want(t, f, credit, Mark{Seen: 8, Sent: 8})
		raise(t, f, credit, 9)
		if err := os.WriteFile(path, cutRecords(t, path, 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, "test", "db"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Open of the file after a cut: %v, want ErrDamaged", name, err)
		}
	}
	// An earlier program takes the line for a record.
	if r, err := parseRecord(strings.TrimSuffix(lengthLine(1234), "\n")); err != nil || r.number != 1234 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A number that was seen and not sent raises only the mark of seen numbers. Settle does not
// say that something was sent.
func TestSeenNumbersAreNotSent(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	for _, n := range []int64{5, 4} {
		if err := f.RaiseSeen(credit, n); err != nil {
			t.Fatal(err)
		}
	}
	raise(t, f, credit, 2)
	for _, f := range []*File{f, reopen(t, path)} {
		want(t, f, credit, Mark{Seen: 5, Sent: 2})
	}
	if err := f.Settle(credit, 8); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*File{f, reopen(t, path)} {
		want(t, f, credit, Mark{Seen: 8, Sent: 2})
		want(t, f, Range{"199000013", "31", 1, 6}, Mark{Seen: 6, Sent: 2})
	}
}

// The file of another database is refused. Adopt keeps its numbers, because they are those
// of an RNC, and every range is unknown until it is settled.
func TestAFileOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	raise(t, f, credit, 7)
	if err := f.Settle(credit, 8); err != nil {
		t.Fatal(err)
	}
	id := f.ID()
	if id == "" || reopen(t, path).ID() != id {
		t.Errorf("the name of the file is %q and %q", id, reopen(t, path).ID())
	}
	if _, err := Open(path, "test", "other"); !errors.Is(err, ErrOtherDatabase) {
		t.Fatalf("Open for another database: %v, want ErrOtherDatabase", err)
	}
	adopted, err := Adopt(path, "test", "other", true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = adopted.Close() }()
	if adopted.ID() == id || adopted.ID() == "" {
		t.Errorf("the adopted file has the name %q", adopted.ID())
	}
	want(t, adopted, credit, Mark{Seen: 8, Sent: 7, Unknown: true})
	want(t, adopted, consumer, Mark{Unknown: true})
	if err := adopted.Settle(credit, 12); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, "test", "other")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	want(t, again, credit, Mark{Seen: 12, Sent: 7})
	if _, err := Open(path, "test", "db"); !errors.Is(err, ErrOtherDatabase) {
		t.Errorf("Open for the database of before: %v, want ErrOtherDatabase", err)
	}
}

// A file of an earlier release has neither seen numbers nor names. An earlier program can
// read the records of this one.
func TestAFileOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "witness")
	text := withLength(header("test", false), record{verbSent, credit.key(), 7}.line()+record{verbSettled, consumer.key(), 3}.line())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := reopen(t, path)
	want(t, f, credit, Mark{Seen: 7, Sent: 7})
	want(t, f, consumer, Mark{Seen: 3, Sent: 3})
	if f.ID() == "" {
		t.Error("the file got no name")
	}
	if err := f.RaiseSeen(credit, 9); err != nil {
		t.Fatal(err)
	}
	want(t, reopen(t, path), credit, Mark{Seen: 9, Sent: 7})
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(lines), "\n"), "\n")[1:] {
		if r, err := parseRecord(line); err != nil || r.verb != verbSent && r.verb != verbSettled {
			t.Errorf("%q is no record of the first form: %v", line, err)
		}
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsReported(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	for n := int64(1); n <= 3; n++ {
		raise(t, f, credit, n)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text[:len(text)-1] {
		damaged := []byte(string(text))
		damaged[at] ^= 1
		other := filepath.Join(t.TempDir(), "witness")
		if err := os.WriteFile(other, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(other, "test", "db"); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	for name, damage := range map[string]func() error{
		"an unknown line": func() error { add(t, path, "hello\n"); return nil },
		"no file":         func() error { return os.Remove(path) },
		"an empty file":   func() error { return os.WriteFile(path, nil, 0o600) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := f.Mark(credit); name != "an empty file" && err == nil {
				t.Errorf("%s: Mark does not report it", name)
			}
		}
		if _, err := Open(path, "test", "db"); err == nil {
			t.Errorf("%s: Open does not report it", name)
		}
	}
}

// Raise returns only after an fsync that follows its write. Calls that arrive during
// an fsync share the next one.
func TestConcurrentCallsShareAnFsync(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	entered, leave := make(chan struct{}), make(chan struct{})
	syncs := 0
	f.sync = func(file *os.File) error {
		if syncs++; syncs == 1 {
			close(entered)
			<-leave
		}
		return file.Sync()
	}
	var callers sync.WaitGroup
	call := func(n int64) {
		callers.Go(func() {
			if err := f.RaiseSent(credit, n); err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), record{verbSent, credit.key(), n}.line()) {
				t.Errorf("%d is not in the file: %v", n, err)
			}
		})
	}
	call(1)
	<-entered
	for n := int64(2); n <= 50; n++ {
		call(n)
	}
	for f.writes.Waiting() < 49 { // until all calls wait
		runtime.Gosched()
	}
	close(leave)
	callers.Wait()
	if syncs != 2 {
		t.Errorf("%d fsyncs for 50 numbers, want 2", syncs)
	}
	raise(t, f, credit, 50)
	raise(t, f, credit, 12)
	if syncs != 2 {
		t.Errorf("a number that is already durable costs an fsync")
	}
	want(t, f, credit, Mark{Seen: 50, Sent: 50})
}

// A caller may recover from a panic of its own write. The next one must not wait for ever.
func TestAPanicDoesNotEndTheFile(t *testing.T) {
	t.Parallel()
	f, _ := create(t, false)
	f.sync = func(*os.File) error { panic("planted") }
	func() {
		defer func() { _ = recover() }()
		raise(t, f, credit, 1)
	}()
	f.sync = (*os.File).Sync
	done := make(chan struct{})
	go func() { defer close(done); raise(t, f, credit, 2) }()
	select {
	case <-done:
		want(t, f, credit, Mark{Seen: 2, Sent: 2})
	case <-time.After(time.Minute):
		t.Fatal("the file stays locked")
	}
}

func TestAFailedFsyncIsNeverRepeated(t *testing.T) {
	t.Parallel()
	f, _ := create(t, false)
	failure := errors.New("input/output error")
	f.sync = func(*os.File) error { return failure }
	if err := f.RaiseSent(credit, 1); !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
	select {
	case <-f.Broken():
	default:
		t.Error("Broken is not closed after a failed fsync")
	}
	f.sync = (*os.File).Sync
	if err := f.RaiseSent(credit, 1); !errors.Is(err, failure) {
		t.Errorf("after the failed fsync: %v", err)
	}
}

func TestTwoProcessesShareAFile(t *testing.T) {
	t.Parallel()
	f, path := create(t, false)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), self)
	other.Env = append(os.Environ(), childPath+"="+path)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	second := reopen(t, path)
	for n := int64(2); n <= 300; n += 3 {
		raise(t, f, credit, n)
		raise(t, second, credit, n+1)
	}
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*File{f, second, reopen(t, path)} {
		want(t, f, credit, Mark{Seen: 300, Sent: 300})
	}
}

// Open compacts a long file. A process that has the old file open continues with the
// new one.
func TestOpenCompactsALongFile(t *testing.T) {
	t.Parallel()
	f, path := create(t, true)
	var text strings.Builder
	for n := int64(1); text.Len() <= compactAt; n++ {
		r := Range{RNC: strconv.FormatInt(n%100, 10), Type: "31", First: 1, Last: 1 << 40}
		text.WriteString(record{verbSent, r.key(), n}.line())
	}
	add(t, path, text.String())
	if err := f.Settle(credit, 5); err != nil {
		t.Fatal(err)
	}
	short := reopen(t, path)
	if info, err := os.Stat(path); err != nil || info.Size() > 10_000 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	raise(t, f, credit, 6)
	raise(t, short, consumer, 3)
	for _, f := range []*File{f, short, reopen(t, path)} {
		want(t, f, credit, Mark{Seen: 6, Sent: 6})
		want(t, f, consumer, Mark{Seen: 3, Sent: 3, Unknown: true})
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}
