package ecf

import (
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A Fault is one violation of the schema of a document, or of the rules of the
// e-CF format that a schema cannot express.
type Fault struct {
	Path string // of the element, counted from 1, as in ECF/DetallesItems/Item[3]/NombreItem
	// Field is the field of the creation request that the element comes from, as
	// in lines.2.description, or the field of the issuer, as in taxpayer.address.
	// It is empty when the element comes from neither.
	Field   string
	Code    string       // one of the Code constants of package fiscal
	Message lang.Message // as in "NombreItem: must have at most 80 characters"
}

// maxFaults is the largest number of faults that Inspect returns.
const maxFaults = 100

// Inspect returns the faults in the structure of an e-CF of type 31 or 32 (by its
// TipoeCF) or of a summary (RFCE). It checks the order, length, pattern and
// presence of every element, and whether the elements agree with one another.
// Wrong sums, and totals that are missing or superfluous, have the code
// total_mismatch; the authority accepts such documents conditionally. Inspect
// ignores the signature, which may be absent.
func Inspect(root xmlsig.Element) []Fault {
	in := inspectShape(root)
	if in.kind != 0 && len(in.faults) < in.most {
		agree(in, root)
	}
	return in.faults
}

// An inspector collects the faults of a document.
type inspector struct {
	kind   docKind // 0 when the document is of no known kind
	most   int     // the largest number of faults
	faults []Fault
	// trail is the path from the root to the current element. Its text is built
	// only for a fault, which most documents never have.
	trail []step
}

// A step is one element of a trail.
type step struct {
	spec  *spec
	index int // of a repeated element, counted from 1; 0 when the element is absent
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
		in.report(Fault{cutMarked(root.Name(), maxShownName), "", fiscal.CodeUnknownField, lang.Messagef(
			"the document must be an ECF or an RFCE", "el documento debe ser un ECF o un RFCE")})
		return in
	}
	if in.kind == 0 {
		in.report(Fault{"ECF/Encabezado/IdDoc/TipoeCF", "ecf_type", fiscal.CodeInvalidEnum, named("TipoeCF", lang.Messagef("must be 31 or 32", "debe ser 31 o 32"))})
		return in
	}
	in.element(root, schema, 1)
	return in
}

// kindOf returns the kind that the TipoeCF of a document states. When TipoeCF is
// wrong, it returns the kind of the e-NCF, so that the rest can be checked.
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

// element checks the content of an element.
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
		in.fault(fiscal.CodeUnknownField, lang.Messagef("must hold text, not elements", "debe tener texto, no elementos"))
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

// empty reports an empty element, which the authority refuses even where the
// schema allows it.
func (in *inspector) empty(s *spec) {
	if s.needed&in.kind != 0 {
		in.fault(s.missing(), lang.Messagef("must not be empty", "no debe estar vacío"))
		return
	}
	in.fault(fiscal.CodeBlank, lang.Messagef("must not be empty; leave the element out", "no debe estar vacío; omita el elemento"))
}

// missing returns the code for a required element that is absent or empty.
func (s *spec) missing() string {
	switch {
	case s.most > 1:
		return fiscal.CodeTooFewItems
	case s.on&s.needed == s.on:
		return fiscal.CodeRequired
	}
	return fiscal.CodeRequiredForType
}

// children compares the children of an element with the list of the schema, in
// one pass over both.
func (in *inspector) children(e xmlsig.Element, s *spec) {
	if !e.HasChildren() {
		in.hollow(e, s)
		return
	}
	current, count := 0, 0 // the index in s.holds that matched last, and how often it matched
	signature := false
	for c := range e.Children() {
		if len(in.faults) >= in.most {
			return
		}
		if signature {
			in.unexpected(e, s, "Signature") // another element follows it
			signature = false
		}
		name := c.Name()
		found := current
		for found < len(s.holds) && s.holds[found].name != name {
			found++
		}
		switch {
		case found == len(s.holds) && c.IsSignature() && len(in.trail) == 1:
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
			in.faultAt(k, count, fiscal.CodeTooManyItems, atMostTimes(k.most))
		}
	}
	in.skipped(e, s, current, count, len(s.holds))
}

// hollow reports an element that should have children and has none. It reports
// the required children, or the element itself when none is required.
func (in *inspector) hollow(e xmlsig.Element, s *spec) {
	if trimXML(e.Text()) != "" {
		in.fault(fiscal.CodeUnknownField, lang.Messagef("must hold elements, not text", "debe tener elementos, no texto"))
		return
	}
	before := len(in.faults)
	in.skipped(e, s, 0, 0, len(s.holds))
	if len(in.faults) == before {
		in.empty(s)
	}
}

// skipped reports the required elements between two positions of the schema that
// the document lacks. An element in the wrong position is reported where it is.
func (in *inspector) skipped(e xmlsig.Element, s *spec, from, count, to int) {
	for i := from; i < to; i++ {
		k := &s.holds[i]
		if k.needed&in.kind == 0 || i == from && count > 0 || !e.Child(k.name).IsZero() {
			continue
		}
		in.faultAt(k, 0, k.missing(), lang.Messagef("is required", "es obligatorio"))
	}
}

// unexpected reports an element that is not allowed in its position.
func (in *inspector) unexpected(e xmlsig.Element, s *spec, name string) {
	for i := range s.holds {
		k := &s.holds[i]
		switch {
		case k.name != name:
		case k.on&in.kind == 0:
			in.faultAt(k, 0, fiscal.CodeNotAllowedForType, notAnElement(in.kind.name()))
			return
		default:
			in.faultAt(k, 0, fiscal.CodeUnknownField, position(e, s.holds[i+1:]))
			return
		}
	}
	stranger := &spec{name: cutMarked(name, maxShownName), most: 1}
	in.faultAt(stranger, 0, fiscal.CodeUnknownField, notAnElement(lang.Literal(s.name)))
}

// position describes where an element belongs: before the first element present
// of those that follow it in the schema.
func position(e xmlsig.Element, after []spec) lang.Message {
	for i := range after {
		if !e.Child(after[i].name).IsZero() {
			return lang.Messagef("must come before %s", "debe ir antes de %s", after[i].name)
		}
	}
	return lang.Messagef("must come next to the others of its name", "debe ir junto a los demás de su nombre")
}

// maxShownName is longer than any name in the schemas.
const maxShownName = 60

func atMostTimes(n int) lang.Message {
	if n == 1 {
		return lang.Messagef("must occur at most once", "debe aparecer una sola vez")
	}
	return lang.Messagef("must occur at most %d times", "debe aparecer un máximo de %d veces", n)
}

func notAnElement(of lang.Message) lang.Message {
	return lang.Messagef("is not an element of %s", "no es un elemento de %s", of)
}

// named puts the name of an element before what is wrong with it.
func named(element string, wrong lang.Message) lang.Message {
	return lang.Messagef("%s: %s", "%s: %s", element, wrong)
}

// fault reports the current element.
func (in *inspector) fault(code string, want lang.Message) {
	last := in.trail[len(in.trail)-1]
	in.report(Fault{in.path(), in.field(), code, named(last.spec.name, want)})
}

// faultAt reports a child of the current element.
func (in *inspector) faultAt(s *spec, index int, code string, want lang.Message) {
	in.trail = append(in.trail, step{s, index})
	in.fault(code, want)
	in.trail = in.trail[:len(in.trail)-1]
}

func (in *inspector) report(f Fault) {
	if len(in.faults) < in.most {
		in.faults = append(in.faults, f)
	}
}

// path returns the path of the current element.
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

// field returns the field of the creation request that the current element comes
// from.
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
