// Package bulk sends many invoices from a file to a service. It checks them first,
// sends them with bounded concurrency, and keeps a journal, so that an interrupted run
// can go on without a second invoice.
package bulk

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// maxLine is the size in bytes of the longest line of a file. The service takes a
// request of at most 1 MiB.
const maxLine = 4 << 20

// A Line is one invoice of a file.
type Line struct {
	Number     int // of the line in the file, or of the element in an array; the first one is 1
	ExternalID string
	Body       []byte       // the request
	Problem    lang.Message // why the invoice cannot be sent; zero when it can
}

// Key returns the idempotency key of the invoice. It depends only on the request, so that
// the same file makes each invoice once, however often it is sent.
func (l *Line) Key() string {
	sum := sha256.Sum256(l.Body)
	return "send-" + hex.EncodeToString(sum[:20])
}

// Read reads a file of requests: one JSON object a line, or one JSON array of objects.
// It also checks each request as the service does. It fails when the file has neither
// form.
func Read(r io.Reader) ([]*Line, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := firstByte(in)
	if errors.Is(err, io.EOF) {
		return nil, errEmpty()
	}
	if err != nil {
		return nil, err
	}
	var lines []*Line
	switch first {
	case '[':
		lines, err = readArray(in)
	case '{':
		lines, err = readLines(in)
	default:
		return nil, lang.Errorf("the file is no JSON: expected one invoice in each line, or an array of invoices",
			"el archivo no es JSON: se espera una factura en cada línea, o un arreglo de facturas")
	}
	if err != nil {
		return nil, err
	}
	checkAll(lines)
	return lines, nil
}

// firstByte returns the first byte that is no white space, without consuming it. It
// skips a byte order mark.
func firstByte(in *bufio.Reader) (byte, error) {
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = in.Discard(3) // they were read already
	}
	for n := 1; ; n++ {
		seen, err := in.Peek(n)
		if err != nil {
			return 0, err
		}
		switch c := seen[n-1]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c, nil
		}
	}
}

func errEmpty() error {
	return lang.Errorf("the file has no invoice", "el archivo no tiene facturas")
}

func readLines(in *bufio.Reader) (lines []*Line, err error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for number := 1; scanner.Scan(); number++ {
		if body := bytes.TrimSpace(scanner.Bytes()); len(body) > 0 {
			lines = append(lines, &Line{Number: number, Body: bytes.Clone(body)})
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return nil, lang.Errorf("a line is longer than %d MiB: write one invoice in each line, without line breaks inside",
			"una línea tiene más de %d MiB: escriba una factura en cada línea, sin saltos de línea dentro de ella", maxLine>>20)
	}
	return lines, scanner.Err()
}

func readArray(in io.Reader) (lines []*Line, err error) {
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for number := 1; d.More(); number++ {
		var body json.RawMessage
		if err := d.Decode(&body); err != nil {
			return nil, lang.Errorf("invoice %d of the array: %s", "factura %d del arreglo: %s", number, err)
		}
		lines = append(lines, &Line{Number: number, Body: body})
	}
	if _, err := d.Token(); err != nil {
		return nil, lang.Errorf("the array does not end: %s", "el arreglo no termina: %s", err)
	}
	return lines, nil
}

// checkAll sets the external id and the problem of each line.
func checkAll(lines []*Line) {
	seen := make(map[string]int, len(lines))
	for _, l := range lines {
		l.check()
		if l.ExternalID == "" {
			continue
		}
		if first, ok := seen[l.ExternalID]; ok && l.Problem.IsZero() {
			l.Problem = lang.Messagef("external_id: line %d has the same external_id; every invoice needs its own",
				"external_id: la línea %d tiene el mismo external_id; cada factura necesita el suyo", first)
			continue
		}
		seen[l.ExternalID] = l.Number
	}
}

func (l *Line) check() {
	document, err := strictjson.Parse(l.Body)
	if err != nil {
		l.Problem = lang.OfError(err)
		return
	}
	var named struct {
		ExternalID string `json:"external_id"`
	}
	_ = json.Unmarshal(l.Body, &named) // a problem of the member is reported below
	l.ExternalID = named.ExternalID
	_, err = fiscal.New(fiscal.DecodeRequest(document))
	var problems fiscal.Problems
	switch {
	case errors.As(err, &problems):
		all := make([]lang.Message, len(problems))
		for i, p := range problems {
			all[i] = lang.Messagef("%s: %s", "%s: %s", p.Field, p.Message)
		}
		l.Problem = lang.Join(all, "; ")
	case err != nil:
		l.Problem = lang.OfError(err)
	}
}
