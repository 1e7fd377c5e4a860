package ecf

import (
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A Fault is one way in which a document is not as its schema, or the format
// that the schema stands for, says.
type Fault struct {
	Path string // of the element, counted from 1, as in ECF/DetallesItems/Item[3]/NombreItem
	// Field is that of the creation request which the element comes from, as in
	// lines.2.description, or of the issuer, as in taxpayer.address. It is empty
	// when the element comes from neither.
	Field   string
	Code    string // one of fiscal's Code constants
	Message string // what is expected, as in "NombreItem: must have at most 80 characters"
}

// maxFaults is how many faults are told of one document.
const maxFaults = 100

// Inspect tells all that is wrong with the structure of an e-CF of type 31 or
// 32, which its TipoeCF tells, or of a summary (RFCE): the order, length,
// pattern and obligation of every element, and whether the elements agree with
// one another. What concerns sums and which totals there are has the code
// total_mismatch; the authority accepts such documents with a condition. The
// signature is not looked at and may be absent.
func Inspect(root xmlsig.Element) []Fault {
	in := inspectShape(root)
	if in.kind != 0 && len(in.faults) < in.most {
		agree(in, root)
	}
	return in.faults
}

// An inspector collects the faults of a document.
type inspector struct {
	kind   docKind // 0 when the document is none that is known
	most   int     // of faults
	faults []Fault
	// trail is the way from the root to the element that is looked at. It is
	// spelled out only when there is a fault, which for most documents is never.
	trail []step
}

// A step is one element of a trail.
type step struct {
	spec  *spec
	index int // of a repeated element, from 1; 0 when the element is absent
}

// inspectShape compares a document with its schema.
func inspectShape(root xmlsig.Element) *inspector {
	in := &inspector{most: maxFaults, trail: make([]step, 0, 8)}
	schema := ecfSchema()
	switch root.Name() {
	case "ECF":
		in.kind = kindOf(root)
	case "RFCE":
		in.kind, schema = kindRFCE, rfceSchema()
	default:
		in.report(Fault{cutMarked(root.Name(), maxShownName), "", fiscal.CodeUnknownField, "the document must be an ECF or an RFCE"})
		return in
	}
	if in.kind == 0 {
		in.report(Fault{"ECF/Encabezado/IdDoc/TipoeCF", "ecf_type", fiscal.CodeInvalidEnum, "TipoeCF: must be 31 or 32"})
		return in
	}
	in.element(root, schema, 1)
	return in
}

// kindOf returns the type that an e-CF says it is of or, when that is wrong,
// the one that its number is of, so that the rest can be looked at.
func kindOf(root xmlsig.Element) docKind {
	head := root.Child("Encabezado").Child("IdDoc")
	switch n, _ := readInteger(head.Child("TipoeCF").Text()); n {
	case 31:
		return kind31
	case 32:
		return kind32
	}
	switch number, _ := fiscal.ParseENCF(head.Child("eNCF").Text()); number.Type() {
	case fiscal.FiscalCredit:
		return kind31
	case fiscal.Consumer:
		return kind32
	}
	return 0
}

// element looks at what an element holds.
func (in *inspector) element(e xmlsig.Element, s *spec, index int) {
	in.trail = append(in.trail, step{s, index})
	if s.holds != nil {
		in.children(e, s)
	} else {
		in.text(e, s)
	}
	in.trail = in.trail[:len(in.trail)-1]
}

func (in *inspector) text(e xmlsig.Element, s *spec) {
	if e.HasChildren() {
		in.fault(fiscal.CodeUnknownField, "must hold text, not elements")
		return
	}
	text := e.Text()
	if trimXML(text) == "" {
		in.empty(s)
		return
	}
	if code, want := s.check(text); code != "" {
		in.fault(code, want)
	}
}

// empty tells of an element that says nothing, which the authority refuses even
// where the schema has no objection.
func (in *inspector) empty(s *spec) {
	if s.needed&in.kind != 0 {
		in.fault(s.missing(), "must not be empty")
		return
	}
	in.fault(fiscal.CodeBlank, "must not be empty; an element with nothing to say is left out")
}

// missing is the code of an element that is needed and says nothing.
func (s *spec) missing() string {
	switch {
	case s.most > 1:
		return fiscal.CodeTooFewItems
	case s.on&s.needed == s.on:
		return fiscal.CodeRequired
	}
	return fiscal.CodeRequiredForType
}

// children walks the elements in an element and the list of what may stand
// there side by side, once.
func (in *inspector) children(e xmlsig.Element, s *spec) {
	if !e.HasChildren() {
		in.hollow(e, s)
		return
	}
	current, count := 0, 0 // of s.holds that was last matched, and how often
	signature := false
	for c := range e.Children() {
		if len(in.faults) >= in.most {
			return
		}
		if signature {
			in.unexpected(e, s, "Signature") // it was not the last
			signature = false
		}
		name := c.Name()
		found := current
		for found < len(s.holds) && s.holds[found].name != name {
			found++
		}
		switch {
		case found == len(s.holds) && name == "Signature" && len(in.trail) == 1:
			signature = true
			continue
		case found == len(s.holds) || s.holds[found].on&in.kind == 0:
			in.unexpected(e, s, name)
			continue
		case found > current:
			in.skipped(e, s, current, count, found)
			current, count = found, 0
		}
		count++
		switch k := &s.holds[found]; {
		case count <= k.most:
			in.element(c, k, count)
		case count == k.most+1:
			in.faultAt(k, count, fiscal.CodeTooManyItems, "must stand here at most "+times(k.most))
		}
	}
	in.skipped(e, s, current, count, len(s.holds))
}

// hollow tells of an element that holds none of the elements it is there for:
// by what it lacks, if there is something that it needs.
func (in *inspector) hollow(e xmlsig.Element, s *spec) {
	if trimXML(e.Text()) != "" {
		in.fault(fiscal.CodeUnknownField, "must hold elements, not text")
		return
	}
	before := len(in.faults)
	in.skipped(e, s, 0, 0, len(s.holds))
	if len(in.faults) == before {
		in.empty(s)
	}
}

// skipped tells of the elements from one spec up to another that are needed
// and were not met. Those that stand in another place are told of there.
func (in *inspector) skipped(e xmlsig.Element, s *spec, from, count, to int) {
	for i := from; i < to; i++ {
		k := &s.holds[i]
		if k.needed&in.kind == 0 || i == from && count > 0 || !e.Child(k.name).IsZero() {
			continue
		}
		in.faultAt(k, 0, k.missing(), "is required")
	}
}

// unexpected tells of an element that may not stand where it does.
func (in *inspector) unexpected(e xmlsig.Element, s *spec, name string) {
	for i := range s.holds {
		k := &s.holds[i]
		switch {
		case k.name != name:
		case k.on&in.kind == 0:
			in.faultAt(k, 0, fiscal.CodeNotAllowedForType, "is not an element of "+in.kind.String())
			return
		default:
			in.faultAt(k, 0, fiscal.CodeUnknownField, "must stand "+placeAmong(e, s.holds[i+1:]))
			return
		}
	}
	stranger := &spec{name: cutMarked(name, maxShownName), most: 1}
	in.faultAt(stranger, 0, fiscal.CodeUnknownField, "is not an element of "+s.name)
}

// placeAmong says where an element belongs, by the first that is there of those
// that come after it.
func placeAmong(e xmlsig.Element, after []spec) string {
	for i := range after {
		if !e.Child(after[i].name).IsZero() {
			return "before " + after[i].name
		}
	}
	return "beside the others of its name"
}

// maxShownName is more than any name of the schemas has.
const maxShownName = 60

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// fault tells of the element that is looked at.
func (in *inspector) fault(code, want string) {
	last := in.trail[len(in.trail)-1]
	in.report(Fault{in.path(), in.field(), code, last.spec.name + ": " + want})
}

// faultAt tells of an element in it.
func (in *inspector) faultAt(s *spec, index int, code, want string) {
	in.trail = append(in.trail, step{s, index})
	in.fault(code, want)
	in.trail = in.trail[:len(in.trail)-1]
}

func (in *inspector) report(f Fault) {
	if len(in.faults) < in.most {
		in.faults = append(in.faults, f)
	}
}

// path returns the names from the root.
func (in *inspector) path() string {
	var b []byte
	for i, at := range in.trail {
		if i > 0 {
			b = append(b, '/')
		}
		b = append(b, at.spec.name...)
		if at.spec.most > 1 && at.index > 0 {
			b = append(strconv.AppendInt(append(b, '['), int64(at.index), 10), ']')
		}
	}
	return string(b)
}

// field returns the field of the creation request that the element is made of.
func (in *inspector) field() string {
	before, after, indexed := strings.Cut(in.trail[len(in.trail)-1].spec.field, "#")
	if !indexed {
		return before
	}
	for _, at := range in.trail {
		if at.spec.most > 1 {
			return before + strconv.Itoa(max(at.index, 1)-1) + after
		}
	}
	return before + "0" + after
}
