package bulk

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// A Map says how the rows of a CSV file become invoices. Its members are paths such as
// external_id, buyer.legal_name or lines.description. A path that begins with "lines."
// belongs to the line of the row; rows that follow each other and have the same
// external_id are the lines of one invoice.
type Map struct {
	Columns map[string]string          `json:"columns"` // path: heading of the column
	Values  map[string]json.RawMessage `json:"values"`  // path: the same value in each invoice or line
}

// ParseMap reads a map. It fails when the map is no JSON of this form, or has no column
// for external_id.
func ParseMap(text []byte) (*Map, error) {
	if _, err := strictjson.Parse(text); err != nil {
		return nil, err
	}
	var m Map
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, lang.Errorf(`expected {"columns": {"external_id": "Heading", …}, "values": {"ecf_type": "32", …}}: %s`,
			`se espera {"columns": {"external_id": "Encabezado", …}, "values": {"ecf_type": "32", …}}: %s`, err)
	}
	if m.Columns["external_id"] == "" {
		return nil, lang.Errorf(`"columns" needs a heading for "external_id": rows with the same external_id are one invoice`,
			`"columns" necesita un encabezado para "external_id": las filas con el mismo external_id son una factura`)
	}
	return &m, nil
}

// ReadCSV reads invoices from CSV with a row of headings. The separator is a comma or,
// as in spreadsheets in Spanish, a semicolon. Totals that the map does not name are
// computed.
func ReadCSV(r io.Reader, m *Map) ([]*Line, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	content := strings.TrimPrefix(string(text), "\ufeff")
	if !utf8.ValidString(content) {
		return nil, notUTF8(content)
	}
	heading, _, _ := strings.Cut(content, "\n")
	in := csv.NewReader(strings.NewReader(content))
	if strings.Count(heading, ";") > strings.Count(heading, ",") {
		in.Comma = ';'
	}
	headings, err := in.Read()
	if err != nil {
		return nil, lang.Errorf("the headings: %s", "los encabezados: %s", err)
	}
	at, err := m.columnsOf(headings)
	if err != nil {
		return nil, err
	}
	var lines []*Line
	var current *csvInvoice
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		number, _ := in.FieldPos(0)
		id := row[at["external_id"]]
		if current == nil || current.externalID != id || id == "" {
			lines = current.appendTo(lines)
			current = &csvInvoice{number: number, externalID: id, m: m}
		}
		current.add(row, at)
	}
	lines = current.appendTo(lines)
	if len(lines) == 0 {
		return nil, errEmpty()
	}
	checkAll(lines)
	return lines, nil
}

// notUTF8 names the first line with bytes that are not UTF-8. Spreadsheets write files in
// another encoding unless they are told.
func notUTF8(content string) error {
	number := 1
	for line := range strings.Lines(content) {
		if !utf8.ValidString(line) {
			break
		}
		number++
	}
	return lang.Errorf("line %d has bytes that are not UTF-8, so its accents would be lost; save the file as CSV UTF-8",
		"la línea %d tiene bytes que no son UTF-8, por lo que se perderían sus acentos; guarde el archivo como CSV UTF-8", number)
}

// columnsOf finds the column of each path.
func (m *Map) columnsOf(headings []string) (map[string]int, error) {
	at := make(map[string]int, len(m.Columns))
	var missing []lang.Message
	for _, path := range slices.Sorted(maps.Keys(m.Columns)) {
		i := slices.IndexFunc(headings, func(h string) bool { return strings.TrimSpace(h) == m.Columns[path] })
		if i < 0 {
			missing = append(missing, lang.Messagef("%q for %s", "%q para %s", m.Columns[path], path))
			continue
		}
		at[path] = i
	}
	if len(missing) > 0 {
		return nil, lang.Errorf("the file has no column %s; its columns are %s", "el archivo no tiene la columna %s; sus columnas son %s",
			lang.Join(missing, ", "), strings.Join(headings, ", "))
	}
	return at, nil
}

// csvInvoice is an invoice that is being read.
type csvInvoice struct {
	number     int // of its first row
	externalID string
	m          *Map
	head       object
	lines      []any
	problem    lang.Message
}

// add adds a row: a line, and members of the invoice, which must be the same in all rows.
func (c *csvInvoice) add(row []string, at map[string]int) {
	head, line := make(object), make(object)
	place := func(path string, value any) {
		if rest, ok := strings.CutPrefix(path, "lines."); ok {
			line.set(strings.Split(rest, "."), value)
			return
		}
		head.set(strings.Split(path, "."), value)
	}
	for path, value := range c.m.Values {
		place(path, value)
	}
	for path, i := range at {
		if cell := strings.TrimSpace(row[i]); cell != "" {
			place(path, cellValue(path, cell))
		}
	}
	if _, ok := line["line_id"]; !ok {
		line["line_id"] = strconv.Itoa(len(c.lines) + 1)
	}
	if c.head == nil {
		c.head = head
	} else if before, now := encode(c.head), encode(head); before != now {
		c.problem = lang.Messagef("the rows of %s differ in columns that belong to the whole invoice",
			"las filas de %s difieren en columnas que pertenecen a toda la factura", c.externalID)
	}
	c.lines = append(c.lines, line)
}

// cellValue returns the value of a cell: a number where the API wants a JSON number, a
// text otherwise.
func cellValue(path, cell string) any {
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "billing_indicator", "unit_code":
		if _, err := strconv.Atoi(cell); err == nil {
			return json.Number(cell)
		}
	}
	return cell
}

// appendTo appends the invoice to the lines. A nil invoice is none.
func (c *csvInvoice) appendTo(lines []*Line) []*Line {
	if c == nil {
		return lines
	}
	request := maps.Clone(c.head)
	request["lines"] = c.lines
	body := withTotals(request)
	return append(lines, &Line{Number: c.number, Body: body, Problem: c.problem})
}

// An object is a JSON object that is being built.
type object map[string]any

// set sets the member at a path. It makes the objects on the way.
func (o object) set(path []string, value any) {
	for len(path) > 1 {
		next, ok := o[path[0]].(object)
		if !ok {
			next = make(object)
			o[path[0]] = next
		}
		o, path = next, path[1:]
	}
	o[path[0]] = value
}

func encode(v any) string {
	text, _ := json.Marshal(v) // texts, numbers and raw JSON that was read: it cannot fail
	return string(text)
}

// withTotals encodes a request. When it declares no totals, the totals of its lines are
// added. For a request whose lines have problems these are zero: the check refuses it for
// its lines, and not for totals that its author need not declare.
func withTotals(request object) []byte {
	if _, ok := request["declared_totals"]; !ok {
		if document, err := strictjson.Parse([]byte(encode(request))); err == nil {
			totals, _ := fiscal.ComputeTotals(fiscal.DecodeRequest(document))
			request["declared_totals"] = totals.Declared()
		}
	}
	return []byte(encode(request))
}
