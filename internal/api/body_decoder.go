package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// maxProblems is how many problems one error answer lists.
const maxProblems = 100

func onlyFirstProblems() lang.Message {
	return lang.Messagef("only the first %d problems are listed", "la lista tiene solo los primeros %d problemas", maxProblems)
}

// bodyDecoder reads the members of a small JSON body and collects their
// problems. Invoices have a decoder of their own in package fiscal.
type bodyDecoder struct{ problems fiscal.Problems }

func (d *bodyDecoder) add(field, code string, message lang.Message) {
	if len(d.problems) <= maxProblems { // one more than are listed: err then says that there are more
		d.problems = append(d.problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
}

// err returns the collected problems, sorted by member, or nil when there are
// none.
func (d *bodyDecoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	more := len(d.problems) > maxProblems
	list := d.problems[:min(len(d.problems), maxProblems)]
	slices.SortStableFunc(list, func(a, b fiscal.Problem) int { return cmp.Compare(topMember(a.Field), topMember(b.Field)) })
	if more {
		list = append(list, fiscal.Problem{Code: fiscal.CodeTooManyErrors, Message: onlyFirstProblems()})
	}
	return invalid(list...)
}

func topMember(field string) string {
	name, _, _ := strings.Cut(field, ".")
	return name
}

// document returns the members of the object that a body is. It reports members
// that are not in known, and returns nil when the body is not an object or has too
// many members.
func (d *bodyDecoder) document(body *strictjson.Document, known ...string) map[string]strictjson.Node {
	members := d.object(body.Root(), known...)
	if body.Truncated() {
		d.add("", fiscal.CodeTooManyItems, lang.Messagef(
			"has more members or items than this request can have",
			"tiene más campos o elementos de los que esta solicitud puede tener"))
		return nil
	}
	return members
}

// object returns the members of an object. It reports members that are not in
// known, and returns nil when n is not an object.
func (d *bodyDecoder) object(n strictjson.Node, known ...string) map[string]strictjson.Node {
	if n.Kind() != strictjson.Object {
		d.add("", fiscal.CodeInvalidType, lang.Messagef("must be an object", "debe ser un objeto"))
		return nil
	}
	found := make(map[string]strictjson.Node)
	for name, value := range n.Members() {
		if slices.Contains(known, name) {
			found[name] = value
		} else {
			d.add(shorten(name), fiscal.CodeUnknownField, fiscal.UnknownMember(name, known))
		}
	}
	return found
}

// text returns a string that must not be empty or blank.
func (d *bodyDecoder) text(n strictjson.Node, field string) string {
	text := ""
	switch {
	case n.Kind() != strictjson.String:
		d.add(field, fiscal.CodeInvalidType, lang.Messagef("must be a string", "debe ser un texto entre comillas"))
	case n.Text() == "":
		d.add(field, fiscal.CodeTooShort, lang.Messagef("must have at least 1 character", "debe tener por lo menos 1 carácter"))
	case strings.TrimSpace(n.Text()) == "":
		d.add(field, fiscal.CodeBlank, lang.Messagef("must not be blank", "no debe estar en blanco"))
	default:
		text = n.Text()
	}
	return text
}

// texts returns an array of strings.
func (d *bodyDecoder) texts(n strictjson.Node, field string) []string {
	if n.Kind() != strictjson.Array {
		d.add(field, fiscal.CodeInvalidType, lang.Messagef("must be an array of strings", "debe ser una lista de textos"))
		return nil
	}
	list := make([]string, 0, min(n.Len(), maxProblems))
	for i, item := range n.Items() {
		list = append(list, d.text(item, field+"."+strconv.Itoa(i)))
	}
	return list
}
