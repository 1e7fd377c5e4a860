package ecf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A tree is a document that a test changes.
type tree struct {
	name, text string
	leaf       *spec // nil for an element with children
	kids       []*tree
}

// grow returns a document with all the elements of a kind, or only the required
// ones.
func grow(s *spec, kind docKind, all bool) *tree {
	t := &tree{name: s.name}
	if s.holds == nil {
		t.leaf, t.text = s, valueFor(s, kind)
		return t
	}
	for i := range s.holds {
		if k := &s.holds[i]; k.on&kind != 0 && (all || k.needed&kind != 0) {
			t.kids = append(t.kids, grow(k, kind, all))
		}
	}
	return t
}

// valueFor returns a value that the table accepts.
func valueFor(s *spec, kind docKind) string {
	candidates := []string{
		"Texto de prueba", "1.0", "1", "31", "32", "2", "01", "001", "$", "D", "CT", "USD", "01-03-2026", "01-03-2026 10:00:00",
		"010100", "809-555-0112", "ana@palma.do", "199000013", "E310000000001", "k7Qx+2", "Texto", "Ana",
	}
	if kind != kind31 && s.name == "TipoeCF" {
		return "32"
	}
	for _, c := range candidates {
		if code, _ := s.check(c); code == "" {
			return c
		}
	}
	panic("no value for " + s.name)
}

func (t *tree) clone() *tree {
	c := *t
	c.kids = make([]*tree, len(t.kids))
	for i, k := range t.kids {
		c.kids[i] = k.clone()
	}
	return &c
}

// all returns every element of the document, the root first.
func (t *tree) all() []*tree { return t.collect(make([]*tree, 0, 300)) }

func (t *tree) collect(list []*tree) []*tree {
	list = append(list, t)
	for _, k := range t.kids {
		list = k.collect(list)
	}
	return list
}

// xml writes each element on a line of its own, in the order of all, and a
// signature at the end, which the schemas ask for.
func (t *tree) xml() []byte {
	var b bytes.Buffer
	var write func(*tree, bool)
	write = func(t *tree, root bool) {
		b.WriteString("<" + t.name + ">")
		b.WriteString(escapes.Replace(t.text))
		for _, k := range t.kids {
			b.WriteString("\n")
			write(k, false)
		}
		if root {
			b.WriteString("\n" + `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/>`)
		}
		b.WriteString("</" + t.name + ">")
	}
	write(t, true)
	return b.Bytes()
}

// escapes keeps every element on one line.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", "&#10;")

func schemaOf(kind docKind) *spec {
	if kind == kindRFCE {
		return rfceSchema()
	}
	return ecfSchema()
}

// shapeFaults checks a document as one of a kind, without regard to its TipoeCF.
func shapeFaults(t testing.TB, xml []byte, kind docKind) []Fault {
	t.Helper()
	doc, err := xmlsig.Parse(xml, xmlsig.Limits{Bytes: 64 << 20, Nodes: 1 << 20, Depth: 32})
	if err != nil {
		t.Fatal(err)
	}
	in := &inspector{kind: kind, most: 1 << 20}
	in.element(doc.Root(), schemaOf(kind), 1)
	return in.faults
}

// A judge validates documents with the authority's schema of a kind and xmllint.
type judge struct {
	schema string
	dir    string
}

func newJudge(t *testing.T, kind docKind) *judge {
	t.Helper()
	folder := needtest.Schemas(t)
	needtest.Program(t, "xmllint")
	name := map[docKind]string{kind31: "patched/ecf-31.xsd", kind32: "ecf-32.xsd", kindRFCE: "patched/rfce-32.xsd"}[kind]
	return &judge{schema: filepath.Join(folder, filepath.FromSlash(name)), dir: t.TempDir()}
}

// lines returns, for each document, the lines that the schema refuses.
func (j *judge) lines(t *testing.T, docs [][]byte) []map[int]bool {
	t.Helper()
	found := make([]map[int]bool, len(docs))
	for start := 0; start < len(docs); start += 400 {
		args := []string{"--noout", "--schema", j.schema}
		for i := start; i < min(start+400, len(docs)); i++ {
			found[i] = map[int]bool{}
			name := strconv.Itoa(i) + ".xml"
			if err := os.WriteFile(filepath.Join(j.dir, name), docs[i], 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, name)
		}
		cmd := exec.CommandContext(t.Context(), "xmllint", args...)
		cmd.Dir = j.dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: some document is not valid
			t.Fatalf("xmllint: %v\n%.2000s", err, out)
		}
		for text := range strings.Lines(string(out)) { // as in 12.xml:7: element Item: Schemas validity error : …
			parts := strings.SplitN(text, ":", 4)
			if len(parts) < 4 || !strings.HasPrefix(parts[3], " Schemas validity error") {
				continue
			}
			i, _ := strconv.Atoi(strings.TrimSuffix(parts[0], ".xml"))
			line, _ := strconv.Atoi(parts[1])
			found[i][line] = true
		}
	}
	return found
}

// A stricter rule is one by which the table refuses, on purpose, a value that the
// schema accepts.
type stricter struct {
	why     string
	applies func(name, value string) bool
}

var (
	likeDate    = regexp.MustCompile(`^\s*(\S{1,2}-\d\d?-\S{4})( \d+:\d+:\d+)?\s*$`)
	ownNumber   = regexp.MustCompile(`^E3[12]\d{9}[1-9]$`)
	smallNumber = regexp.MustCompile(`^(GradosAlcohol|TipoCambio|Tasa.*|.*Porcentaje|ValorDescuentooRecargo)$`)
	otherDigits = regexp.MustCompile(`[^\x00-\x7f]`)
)

// deliberate lists the rules that are stricter than the schemas for one value.
var deliberate = []stricter{
	{"an element that is empty or blank is refused by the authority", func(_, v string) bool { return strings.TrimSpace(v) == "" }},
	{"the types issued and read here are 31 and 32 alone", func(n, v string) bool { return n == "TipoeCF" && (v == "33" || v == "47") }},
	{"an e-NCF is E, 31 or 32 and ten digits, not any 13 letters and digits", func(n, v string) bool {
		return n == "eNCF" && !ownNumber.MatchString(v)
	}},
	{"a date is one of the calendar, written in the digits of ASCII; the summary's pattern even takes a $", func(n, v string) bool {
		date := likeDate.FindStringSubmatch(v)
		if !strings.HasPrefix(n, "Fecha") || date == nil {
			return false
		}
		_, err := time.Parse("2-1-2006", date[1])
		return err != nil
	}},
	{"digits are those of ASCII", func(n, v string) bool { return strings.HasPrefix(n, "Telefono") && otherDigits.MatchString(v) }},
	{"an unescaped point in a pattern lets a digit stand for it: numbers have the integer digits that the pattern means", func(n, v string) bool {
		whole, _, _ := strings.Cut(strings.TrimLeft(v, "+-"), ".")
		return isDigits(whole, len(whole)) && (len(whole) > 16 || len(whole) > 3 && smallNumber.MatchString(n))
	}},
	{`\w takes symbols and other numbers in XML Schema, and not in .NET, which the authority runs`, func(n, v string) bool {
		return (n == "TerminoPago" || strings.HasPrefix(n, "Correo")) && strings.ContainsAny(v, "$+<=>^`|~²½€")
	}},
}

// values are the values that every element is given in turn.
func values() []string {
	v := strings.Fields(`0 1 2 3 4 5 6 7 8 9 10 16 18 31 32 33 47 62 63 99 100 999 1000 1001 9999 10000 12345 123456 1234567
		-1 +1 -0 +0 00 01 06 07 000 001 0001 039 040 0062 0063 0000000000001 0.00 0.0 0.01 0.001 0.0001 1.0 1. .5 1.5 1.25 1.255 1.2555
		1.25555 01.0 +1.0 -1.0 1.00 1.000 10.0 999.99 999.999 1000.00 12.3456 123.4567 1234.5 -5.25 +5.25 -5.255 1e3 1,5 1,000.00 1.2.3 -- -
		E310000000001 e310000000001 E320000000001 E330000000001 E310000000000 E31000000001 E3100000000012 ABCDEFGHIJKLM
		199000013 1990000131 19900001312 199000013123 19900001x CT AH OT ct $ % D R d E USD DOP EUR CHY CNY
		809-555-0112 809-5550112 809-555-01123 8095-55-0112 ٨٠٩-555-0112 010100 010000 010199 999999 10100
		01-03-2026 1-3-2026 31-02-2026 29-02-2024 29-02-2023 29-02-2100 29-02-2000 30-04-2026 31-04-2026 32-01-2026 00-01-2026 0-1-2026 01-13-2026 01-00-2026 01-03-1899
		01-03-1900 01-03-2099 01-03-2100 2026-03-01 01/03/2026 1$-03-2026 01-03-26 001-03-2026 01-03-20٢٦ 01-03-2026x
		a@b.do ana.maria@palma-clara.com.do a+b@c.d a++b@c.d a$b@c.do a_b@c.do a@b @b.do a@.do a@b..do a@b.do. .a@b.do a@b@c.do a.@b.do ñandú@caña.do a@b-c.do a²@b.do
		días 30% 30_dias 30-dias A+B costo=5 ½mes 5€ x² Ana,José Ana.José Ana1 Ñoño ü k7Qx+2 k7Qx+ k7Qx+23 ñandú6`)
	v = append(v, "", " ", "   ", " 1 ", " 1.00 ", " 01 ", " 199000013 ", " 01-03-2026 ", "\t01-03-2026\n", "01-03-2026 ", " USD", "30 días", "30\u00a0días", "Ana José", "a b@c.do", "      ", "a\nb\tcd",
		"01-03-2026 10:00:00", "1-3-2026 10:00:00", "01-03-2026 1:2:3", "01-03-2026 24:00:00", "01-03-2026 23:60:00", "01-03-2026 23:59:60", "01-03-2026  1:00:00",
		"31-02-2026 10:00:00", "01-03-2026T10:00:00", "01-03-2026 10:00", " 01-03-2026 10:00:00", "01-03-2026 10:00:001", "01-03-2026 10:00:00 ")
	for _, n := range []int{15, 16, 17, 18, 19, 20, 21} {
		digits := strings.Repeat("9", n)
		v = append(v, digits, digits+".9", digits+".99", digits+".999", digits+".9999", "-"+digits+".99", strings.Repeat("0", n)+".01", strings.Repeat("0", n))
	}
	for _, n := range []int{2, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 19, 20, 21, 25, 26, 28, 29, 35, 36, 40, 41, 45, 46, 50, 51, 60, 61, 75, 76, 80, 81, 100, 101, 150, 151, 250, 251, 1000, 1001} {
		v = append(v, strings.Repeat("ñ", n), strings.Repeat("x", n))
	}
	for _, n := range []int{80, 81} { // with its length in characters, not bytes
		v = append(v, strings.Repeat("é", n-5)+"@b.do")
	}
	return v
}

func TestEveryValueIsJudgedAsByTheSchemas(t *testing.T) {
	t.Parallel()
	used := make([]bool, len(deliberate))
	for _, kind := range []docKind{kind31, kind32, kindRFCE} {
		j := newJudge(t, kind)
		base := grow(schemaOf(kind), kind, true)
		if kind == kind32 {
			base.prune()
		}
		pool, paths := values(), base.paths("")
		docs := make([][]byte, len(pool))
		trees := make([]*tree, len(pool))
		for i, v := range pool {
			trees[i] = base.clone()
			for _, e := range trees[i].all() {
				// xmllint takes long for the regions, which have a test of their own.
				isPlace := strings.HasPrefix(e.name, "Municipio") || strings.HasPrefix(e.name, "Provincia")
				if e.leaf != nil && (!isPlace || len(v) == 6 || len(v) < 2) {
					e.text = v
				}
			}
			docs[i] = trees[i].xml()
		}
		for i, bad := range j.lines(t, docs) {
			own := map[string]bool{}
			for _, f := range shapeFaults(t, docs[i], kind) {
				own[strings.ReplaceAll(f.Path, "[1]", "")] = true
			}
			for line, e := range trees[i].all() {
				if e.leaf == nil {
					continue
				}
				refused, theirs := own[paths[line]], bad[line+1]
				if refused == theirs {
					continue
				}
				rule := slices.IndexFunc(deliberate, func(d stricter) bool { return d.applies(e.name, e.text) })
				if refused && rule >= 0 {
					used[rule] = true
				} else {
					t.Errorf("%s: %s %q: refused by us %v, by the schema %v", kind.name(), paths[line], e.text, refused, theirs)
				}
			}
		}
	}
	for i, d := range deliberate {
		if !used[i] {
			t.Errorf("no value shows that %s", d.why)
		}
	}
}

// prune removes the sections that are equal in types 31 and 32, so that they are
// judged once.
func (t *tree) prune() {
	shared := []string{"InformacionesAdicionales", "Transporte", "OtraMoneda", "Subtotales", "DescuentosORecargos", "Paginacion", "InformacionReferencia"}
	t.kids = slices.DeleteFunc(t.kids, func(k *tree) bool { return slices.Contains(shared, k.name) })
	for _, k := range t.kids {
		k.prune()
	}
}

// paths returns the path of every element, in the order of all.
func (t *tree) paths(above string) []string {
	path := above + t.name
	list := []string{path}
	for _, k := range t.kids {
		list = append(list, k.paths(path+"/")...)
	}
	return list
}

func TestEveryRegionIsJudgedAsByTheSchemas(t *testing.T) {
	t.Parallel()
	j := newJudge(t, kind31)
	base := grow(ecfSchema(), kind31, true)
	base.kids = slices.DeleteFunc(base.kids, func(k *tree) bool {
		return k.name != "Encabezado" && k.name != "DetallesItems" && k.name != "FechaHoraFirma"
	})
	var codes []string
	for code := range regions().regions {
		codes = append(codes, code)
	}
	if len(codes) != 582 {
		t.Errorf("the table has %d regions, want 582", len(codes))
	}
	slices.Sort(codes)
	for n := range 400 { // neighbouring codes, most of which do not exist
		codes = append(codes, fmt.Sprintf("%06d", n*100+7))
	}
	all := base.all()
	at := slices.IndexFunc(all, func(e *tree) bool { return e.name == "Municipio" })
	docs := make([][]byte, len(codes))
	for i, code := range codes {
		all[at].text = code
		docs[i] = base.xml()
	}
	for i, bad := range j.lines(t, docs) {
		if own := len(shapeFaults(t, docs[i], kind31)) > 0; own != (len(bad) > 0) {
			t.Errorf("region %s: refused by us %v, by the schema %v", codes[i], own, len(bad) > 0)
		}
	}
}
