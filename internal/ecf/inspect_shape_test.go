package ecf

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A change alters the shape of a document.
type change struct {
	name  string
	apply func(r *rand.Rand, parent *tree, i int)
}

// The first changes are made to every element; all of them are made at random.
const everywhere = 5

func changes() []change {
	return []change{
		{"drop", func(_ *rand.Rand, p *tree, i int) { p.kids = slices.Delete(p.kids, i, i+1) }},
		{"duplicate", func(_ *rand.Rand, p *tree, i int) { p.kids = slices.Insert(p.kids, i, p.kids[i].clone()) }},
		{"swap with the next", func(_ *rand.Rand, p *tree, i int) {
			next := (i + 1) % len(p.kids)
			p.kids[i], p.kids[next] = p.kids[next], p.kids[i]
		}},
		{"rename", func(_ *rand.Rand, p *tree, i int) { p.kids[i].name += "x" }},
		{"text instead of elements, or elements instead of text", func(_ *rand.Rand, p *tree, i int) {
			e := p.kids[i]
			if len(e.kids) > 0 {
				e.kids, e.text = nil, "Texto"
			} else {
				e.kids, e.text = []*tree{{name: "Texto", text: "1"}}, ""
			}
		}},
		{"lower case", func(_ *rand.Rand, p *tree, i int) { p.kids[i].name = "e" + p.kids[i].name[1:] }},
		{"move", func(r *rand.Rand, p *tree, i int) {
			e := p.kids[i]
			p.kids = slices.Delete(p.kids, i, i+1)
			p.kids = slices.Insert(p.kids, r.IntN(len(p.kids)+1), e)
		}},
		{"take from elsewhere", func(r *rand.Rand, p *tree, i int) {
			names := []string{"FechaVencimientoSecuencia", "IdentificadorExtranjero", "Retencion", "Mineria", "ITBIS1", "TotalITBISRetenido", "FechaHoraFirma", "NumeroLinea", "MontoTotal"}
			p.kids = slices.Insert(p.kids, i, &tree{name: names[r.IntN(len(names))], text: "1"})
		}},
		{"drop half", func(r *rand.Rand, p *tree, _ int) {
			p.kids = slices.DeleteFunc(p.kids, func(*tree) bool { return r.IntN(2) == 0 })
		}},
		{"repeat", func(_ *rand.Rand, p *tree, i int) {
			e := p.kids[i]
			for range []int{1, 2, 3, 5, 7, 12, 20}[len(e.name)%7] {
				p.kids = slices.Insert(p.kids, i, e.clone())
			}
		}},
	}
}

func TestEveryShapeIsJudgedAsByTheSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range []docKind{kind31, kind32, kindRFCE} {
		j := newJudge(t, kind)
		full, least := grow(schemaOf(kind), kind, true), grow(schemaOf(kind), kind, false)
		r := rand.New(rand.NewPCG(31, 32))
		var docs [][]byte
		var names []string
		add := func(name string, t *tree) { docs, names = append(docs, t.xml()), append(names, name) }
		add("full", full)
		add("least", least)
		if kind == kind32 {
			full.prune()
		}
		for at, e := range full.all() {
			for i := range e.kids {
				for _, c := range changes()[:everywhere] {
					m := full.clone()
					c.apply(r, m.all()[at], i)
					add(c.name+" "+e.name+"/"+e.kids[i].name, m)
				}
			}
		}
		for range 600 { // several changes at once
			m := full.clone()
			var done []string
			for range 1 + r.IntN(4) {
				holders := slices.DeleteFunc(m.all(), func(e *tree) bool { return len(e.kids) == 0 })
				if len(holders) == 0 {
					break
				}
				p := holders[r.IntN(len(holders))]
				c := changes()[r.IntN(len(changes()))]
				i := r.IntN(len(p.kids))
				done = append(done, c.name+" "+p.name+"/"+p.kids[i].name)
				c.apply(r, p, i)
			}
			add(strings.Join(done, ", "), m)
		}
		addCounts(schemaOf(kind), grow(schemaOf(kind), kind, true), kind, add)
		for i, bad := range j.lines(t, docs) {
			faults := shapeFaults(t, docs[i], kind)
			own, theirs := len(faults) > 0, len(bad) > 0
			if own && i == 0 {
				t.Errorf("%s: the full document is refused: %v", kind.name(), faults)
			}
			if own == theirs || own && !slices.ContainsFunc(faults, func(f Fault) bool {
				return !strings.Contains(f.Message.String(), "must not be empty") && f.Code != "too_few_items"
			}) {
				continue // we refuse empty sections on purpose
			}
			t.Errorf("%s: %s: refused by us %v, by the schema %v %v", kind.name(), names[i], own, theirs, faults)
		}
	}
}

// addCounts makes documents with exactly as many of each repeated element as
// there may be, and one more.
func addCounts(s *spec, full *tree, kind docKind, add func(string, *tree)) {
	var visit func(s *spec, path []int)
	visit = func(s *spec, path []int) {
		at := 0
		for i := range s.holds {
			k := &s.holds[i]
			if k.on&kind == 0 {
				continue
			}
			if k.most > 1 {
				for _, n := range []int{k.most, k.most + 1} {
					m := full.clone()
					p := m
					for _, step := range path {
						p = p.kids[step]
					}
					one := grow(k, kind, false)
					if k.holds != nil && len(one.kids) == 0 {
						one = grow(k, kind, true)
					}
					p.kids = nil
					for range n {
						p.kids = append(p.kids, one)
					}
					add(fmt.Sprintf("%d of %s", n, k.name), m)
				}
			}
			visit(k, append(slices.Clone(path), at))
			at++
		}
	}
	visit(s, nil)
}

// An xsdElement is an element declaration of a schema, with those inside it.
type xsdElement struct {
	Name string       `xml:"name,attr"`
	Min  string       `xml:"minOccurs,attr"`
	Max  string       `xml:"maxOccurs,attr"`
	Kids []xsdElement `xml:"complexType>sequence>element"`
}

// The tables must have every element: documents built from the tables cannot show
// a missing one.
func TestTablesHaveEveryElementOfTheSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range []docKind{kind31, kind32, kindRFCE} {
		file, err := os.ReadFile(newJudge(t, kind).schema)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Elements []xsdElement `xml:"element"`
		}
		if err := xml.Unmarshal([]byte(strings.TrimPrefix(string(file), "\ufeff")), &schema); err != nil {
			t.Fatal(err)
		}
		got, want := outline(schemaOf(kind), kind, ""), schema.Elements[0].outline(kind, "")
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s: element %d: table has %q, schema %q", kind.name(), i, got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
				break
			}
		}
	}
}

func outline(s *spec, kind docKind, above string) []string {
	path := above + s.name
	list := []string{fmt.Sprintf("%s %v..%d", path, s.needed&kind != 0 || above == "", s.most)}
	for i := range s.holds {
		if s.holds[i].on&kind != 0 {
			list = append(list, outline(&s.holds[i], kind, path+"/")...)
		}
	}
	return list
}

func (x xsdElement) outline(kind docKind, above string) []string {
	path := above + x.Name
	most, err := strconv.Atoi(x.Max)
	if err != nil {
		most = 1
	}
	// A repeated element is required, because its section would otherwise be empty.
	list := []string{fmt.Sprintf("%s %v..%d", path, x.Min != "0" || kind == kindRFCE && most > 1, most)}
	for _, k := range x.Kids {
		list = append(list, k.outline(kind, path+"/")...)
	}
	return list
}
