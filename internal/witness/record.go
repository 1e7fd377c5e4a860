package witness

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	title   = "fiscalhub-witness v1"
	maxLine = 128
	// compactAt is the size from which on a file is shortened when it is opened.
	compactAt = 1 << 20
)

// record is one line: a number sent of a range, or up to which it is settled.
type record struct {
	word string
	key
	number int64
}

func (r record) line() string {
	return seal(fmt.Sprintf("%s %s %s %d %d", r.word, r.rnc, r.kind, r.first, r.number))
}

func parseRecord(line string) (record, error) {
	text, ok := unseal(line)
	words := strings.Split(text, " ")
	if !ok || len(words) != 5 || words[0] != "sent" && words[0] != "settled" {
		return record{}, ErrDamaged
	}
	first, errFirst := strconv.ParseInt(words[3], 10, 64)
	number, errNumber := strconv.ParseInt(words[4], 10, 64)
	if errors.Join(errFirst, errNumber) != nil {
		return record{}, ErrDamaged
	}
	return record{words[0], key{words[1], words[2], first}, number}, nil
}

// header is the first line.
func header(name string, inDoubt bool) string {
	state := "whole"
	if inDoubt {
		state = "doubtful"
	}
	return seal(title + " " + name + " " + state)
}

func parseHeader(line, name string) (inDoubt bool, err error) {
	text, ok := unseal(line)
	switch {
	case ok && text == title+" "+name+" whole":
		return false, nil
	case ok && text == title+" "+name+" doubtful":
		return true, nil
	}
	return false, fmt.Errorf("%w: its first line is not that of %s", ErrDamaged, name)
}

// seal ends a line with its checksum.
func seal(text string) string {
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func unseal(line string) (text string, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return "", false
	}
	return line[:at], seal(line[:at]) == line+"\n"
}

// compact replaces the file by a short one of the same content. Whoever else
// has the old one open sees that the path names another before writing to it.
func (f *File) compact() error {
	var text strings.Builder
	text.WriteString(header(f.name, f.doubtful))
	for o, list := range f.entries {
		for first, e := range list {
			word := "sent"
			if e.settled {
				word = "settled"
			}
			text.WriteString(record{word, key{o.rnc, o.kind, first}, e.number}.line())
		}
	}
	if err := place(f.path, text.String(), os.Rename); err != nil {
		return err
	}
	old := f.file
	f.file = nil
	if err := f.hold(); err != nil {
		return errors.Join(err, old.Close())
	}
	return old.Close()
}

// place writes a file beside path and lets put give it its name once it is
// whole and durable.
func place(path, text string, put func(from, to string) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(tmp.Name()); !errors.Is(gone, fs.ErrNotExist) { // a rename has moved it
			err = errors.Join(err, gone)
		}
	}()
	_, err = tmp.WriteString(text)
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := put(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
