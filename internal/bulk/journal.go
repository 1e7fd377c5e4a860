package bulk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Result is what became of one line.
type Result struct {
	Line       int    `json:"line"`
	ExternalID string `json:"external_id"`
	Status     string `json:"status"` // of the invoice; "refused" or "not_sent" when there is none
	InvoiceID  string `json:"invoice_id"`
	Error      string `json:"error"`
}

// Statuses of a line without an invoice.
const (
	Refused = "refused"  // the service or the check before it refused the invoice
	NotSent = "not_sent" // the run ended before it was sent
)

// entry is one line of the journal.
type entry struct {
	Key string `json:"key"`
	Result
}

// header is the first line of the journal.
type header struct {
	Service  string `json:"service"`
	Taxpayer string `json:"taxpayer"`
}

// ErrOtherJournal says that a journal belongs to another service or taxpayer.
var ErrOtherJournal = lang.Errorf("the journal belongs to another service or taxpayer", "el diario es de otro servicio o contribuyente")

// A Journal remembers which invoices the service has taken. It is a convenience: without
// it, each invoice is sent once more with the same idempotency key, and the
// service answers as the first time.
type Journal struct {
	mu      sync.Mutex
	file    *os.File
	entries map[string]Result // by key
}

// OpenJournal opens a journal, or makes one. A line that was cut by a crash is dropped.
func OpenJournal(path, service, taxpayer string) (*Journal, error) {
	j := &Journal{entries: make(map[string]Result)}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := content[:bytes.LastIndexByte(content, '\n')+1]
	if err := j.load(whole, header{service, taxpayer}); err != nil {
		return nil, lang.Errorf("%s: %s", "%s: %s", path, err)
	}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := j.file.Truncate(int64(len(whole))); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	if _, err := j.file.Seek(int64(len(whole)), 0); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	if len(whole) == 0 {
		if err := j.write(header{service, taxpayer}); err != nil {
			return nil, errors.Join(err, j.file.Close())
		}
	}
	return j, nil
}

func (j *Journal) load(content []byte, want header) error {
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return nil
	}
	var found header
	if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
		return lang.Errorf("this is no journal: %s", "esto no es un diario: %s", err)
	}
	if found != want {
		return lang.Errorf("%s: %s of %s", "%s: %s de %s", ErrOtherJournal, found.Taxpayer, found.Service)
	}
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return lang.Errorf("this is no journal: %s", "esto no es un diario: %s", err)
		}
		j.entries[e.Key] = e.Result
	}
	return lines.Err()
}

// Result returns what the journal knows of a line. The line may stand elsewhere in the
// file now.
func (j *Journal) Result(l *Line) (Result, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.entries[l.Key()]
	r.Line, r.ExternalID = l.Number, l.ExternalID
	return r, ok
}

// Add remembers the result of a line.
func (j *Journal) Add(l *Line, r Result) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries[l.Key()] = r
	return j.write(entry{l.Key(), r})
}

func (j *Journal) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
