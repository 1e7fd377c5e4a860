//go:build linux

package power

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestMain(m *testing.M) {
	Main()
	if source := os.Getenv(writerSource); source != "" {
		_, _ = fmt.Fprintln(os.Stderr, writeRows(source))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// write writes a file, and syncs it if asked to.
func write(t *testing.T, path, text string, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func syncDir(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// want checks the text of a file; an empty text means that the file must not exist.
func want(t *testing.T, path, text string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if text == "" && errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil || string(got) != text {
		t.Errorf("%s has %q, %v; want %q", filepath.Base(path), got, err, text)
	}
}

func TestAStrictCutKeepsWhatWasSynced(t *testing.T) {
	t.Parallel()
	d := Start(t)
	in := func(name string) string { return filepath.Join(d.Dir, name) }
	must(t, os.Mkdir(in("old"), 0o700))
	write(t, in("kept"), "first", true)
	write(t, in("from"), "moved", true)
	write(t, in("removed"), "still here", true)
	write(t, in("empty"), "lost", false)
	syncDir(t, d.Dir)

	write(t, in("nameless"), "the name is lost", true)
	write(t, in("kept"), "second", false)
	must(t, os.Rename(in("from"), in("to")), os.Remove(in("removed")), os.Mkdir(in("new"), 0o700))
	write(t, in("new/file"), "lost with its folder", true)
	syncDir(t, in("new"))
	write(t, in("old/file"), "in a folder", true)
	must(t, os.Link(in("old/file"), in("old/link")))
	syncDir(t, in("old"))
	write(t, in("old/link"), "through the link", true)

	open, err := os.Open(in("kept"))
	must(t, err)
	d.CutStrict(t)
	if err := open.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a sync without power: %v, want EIO", err)
	}
	if _, err := os.ReadDir(in("old")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a list without power: %v, want EIO", err)
	}
	_ = open.Close() // fails without power
	d.Mount(t)

	want(t, in("kept"), "first")
	want(t, in("from"), "moved")
	want(t, in("removed"), "still here")
	want(t, in("old/file"), "through the link")
	for _, lost := range []string{"nameless", "to", "new/file"} {
		want(t, in(lost), "")
	}
	if info, err := os.Stat(in("empty")); err != nil || info.Size() != 0 {
		t.Errorf("the file that was never synced: %v, %v; want an empty file", info, err)
	}
	write(t, in("kept"), "third", true)
	d.Sync(t)
	d.CutStrict(t)
	d.Mount(t)
	want(t, in("kept"), "third")
}

// Over many seeds a cut keeps a write that was not synced as a whole, in part and not at
// all, and never touches what was synced.
func TestACutKeepsAPartThatTheSeedChooses(t *testing.T) {
	t.Parallel()
	d := Start(t)
	path := filepath.Join(d.Dir, "file")
	seen := map[string]bool{}
	old, fresh := byte('o'), byte('n')
	for seed := range uint64(60) {
		text := make([]byte, 4*sector)
		for i := range text {
			text[i] = old
		}
		write(t, path, string(text), true)
		write(t, filepath.Join(d.Dir, strconv.FormatUint(seed, 10)), "x", true)
		syncDir(t, d.Dir)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		for i := range text {
			text[i] = fresh
		}
		_, err = f.WriteAt(text, 0)
		must(t, err, f.Close())
		d.Cut(t, seed)
		d.Mount(t)
		got, err := os.ReadFile(path)
		must(t, err)
		var kept int
		for i := 0; i < len(got); i += sector {
			for _, b := range got[i : i+sector] {
				if b != got[i] || b != old && b != fresh {
					t.Fatalf("seed %d: a torn sector", seed)
				}
			}
			if got[i] == fresh {
				kept++
			}
		}
		switch {
		case len(got) != len(text):
			t.Fatalf("seed %d: %d bytes", seed, len(got))
		case kept == 0:
			seen["nothing"] = true
		case kept == len(text)/sector:
			seen["everything"] = true
		default:
			seen["a part"] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("the cuts have kept %v, want nothing, a part and everything", seen)
	}
	for seed := range 60 {
		want(t, filepath.Join(d.Dir, strconv.Itoa(seed)), "x")
	}
}

// A cut at a sync loses exactly what that sync would have kept.
func TestACutAtASync(t *testing.T) {
	t.Parallel()
	d := Start(t)
	other, path := filepath.Join(d.Dir, "other"), filepath.Join(d.Dir, "trapped-file")
	write(t, other, "old", true)
	write(t, path, "old", true)
	syncDir(t, d.Dir)
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		d.CutAtSync(t, 0, "trapped-")
	}()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	for synced := 0; ; synced++ {
		_, err = f.WriteAt([]byte(strconv.Itoa(100+synced)), 0)
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			break
		}
		write(t, other, "new", true) // the sync of another file does not cut
	}
	_ = f.Close() // fails without power
	<-cut
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("the sync without power: %v, want EIO", err)
	}
	d.Mount(t)
	got, err := os.ReadFile(path)
	if err != nil || len(got) != 3 {
		t.Errorf("the file has %q, %v", got, err)
	}
}
