package witness

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
)

const (
	title = "fiscalhub-witness v1"
	// compactAt is the size in bytes above which Open compacts the file.
	compactAt = 1 << 20
)

// The verbs of a record: the highest number of a range that was sent, or that the range is
// settled.
const (
	verbSent    = "sent"
	verbSettled = "settled"
)

// seenKind returns the document type under which the highest seen number of a range stands
// in the file. Earlier programs take it for another type and keep it.
func seenKind(kind string) string { return kind + "-seen" }

// lengthPrefix is how the line with the length of the file begins. It has the form of a
// record of an RNC that does not exist, so that earlier programs can read the file.
const lengthPrefix = verbSent + " length 00 0 "

// lengthLine returns the line after the header: the file was so long when the line was
// written, so a shorter one was cut. All such lines have the same size, because the line
// is overwritten, and lie in the first sector of the file, which a disk writes as a whole.
func lengthLine(length int64) string {
	return withChecksum(fmt.Sprintf("%s%019d", lengthPrefix, length))
}

// parseLength returns the length that a line says. ok is false for another line, also for
// one that an earlier program has written as a record.
func parseLength(line string) (length int64, ok bool, err error) {
	if !strings.HasPrefix(line, lengthPrefix) {
		return 0, false, nil
	}
	r, err := parseRecord(line)
	return r.number, err == nil && line+"\n" == lengthLine(r.number), err
}

// withLength returns the content of a file: its header, its length and its records.
func withLength(header, records string) string {
	return header + lengthLine(int64(len(header)+len(lengthLine(0))+len(records))) + records
}

// record is one line of the file.
type record struct {
	verb string
	key
	number int64
}

func (r record) line() string {
	return withChecksum(fmt.Sprintf("%s %s %s %d %d", r.verb, r.rnc, r.kind, r.first, r.number))
}

func parseRecord(line string) (record, error) {
	text, ok := cutChecksum(line)
	words := strings.Split(text, " ")
	if !ok || len(words) != 5 || words[0] != verbSent && words[0] != verbSettled {
		return record{}, ErrDamaged
	}
	first, errFirst := strconv.ParseInt(words[3], 10, 64)
	number, errNumber := strconv.ParseInt(words[4], 10, 64)
	if errors.Join(errFirst, errNumber) != nil {
		return record{}, ErrDamaged
	}
	return record{words[0], key{words[1], words[2], first}, number}, nil
}

// header returns the first line of the file.
func header(name string, inDoubt bool) string {
	state := "whole"
	if inDoubt {
		state = "doubtful"
	}
	return withChecksum(title + " " + name + " " + state)
}

func parseHeader(line, name string) (inDoubt bool, err error) {
	text, ok := cutChecksum(line)
	switch {
	case ok && text == title+" "+name+" whole":
		return false, nil
	case ok && text == title+" "+name+" doubtful":
		return true, nil
	}
	return false, fmt.Errorf("%w: its first line is not the header of %s", ErrDamaged, name)
}

// withChecksum returns a whole line: the text, its checksum and a line break.
func withChecksum(text string) string {
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

// cutChecksum returns the text of a line, and whether its checksum is right.
func cutChecksum(line string) (text string, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return "", false
	}
	return line[:at], withChecksum(line[:at]) == line+"\n"
}

// compact replaces the file with a shorter one of the same content. A process that
// has the old file open notices, before it writes, that the path names another file:
// see lockFile.
func (f *File) compact() error {
	var text strings.Builder
	for o, list := range f.entries {
		for first, e := range list {
			verb := verbSent
			if e.settled {
				verb = verbSettled
			}
			text.WriteString(record{verb, key{o.rnc, o.kind, first}, e.number}.line())
		}
	}
	if err := atomicfile.Replace(f.path, withLength(header(f.name, f.doubtful), text.String())); err != nil {
		return err
	}
	old := f.file
	f.file = nil
	if err := f.lockFile(); err != nil {
		return errors.Join(err, old.Close())
	}
	return old.Close()
}
