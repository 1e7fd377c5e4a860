package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// maxProblems is how many problems one error answer lists.
const maxProblems = 100

const onlyFirstProblems = "only the first 100 problems are listed"

// bodyDecoder reads the members of a small JSON body and collects their
// problems. Invoices have a decoder of their own in package fiscal.
type bodyDecoder struct{ problems fiscal.Problems }

func (d *bodyDecoder) add(field, code, message string) {
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
		list = append(list, fiscal.Problem{Code: fiscal.CodeTooManyErrors, Message: onlyFirstProblems})
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
		d.add("", fiscal.CodeTooManyItems, "has more members or items than this request can have")
		return nil
	}
	return members
}

// object returns the members of an object. It reports members that are not in
// known, and returns nil when n is not an object.
func (d *bodyDecoder) object(n strictjson.Node, known ...string) map[string]strictjson.Node {
	if n.Kind() != strictjson.Object {
		d.add("", fiscal.CodeInvalidType, "must be an object")
		return nil
	}
	found := make(map[string]strictjson.Node)
	for name, value := range n.Members() {
		if slices.Contains(known, name) {
			found[name] = value
		} else {
			d.add(shorten(name), fiscal.CodeUnknownField, "this request has no such member")
		}
	}
	return found
}

// text returns a string that must not be empty or blank.
func (d *bodyDecoder) text(n strictjson.Node, field string) string {
	text := ""
	switch {
	case n.Kind() != strictjson.String:
		d.add(field, fiscal.CodeInvalidType, "must be a string")
	case n.Text() == "":
		d.add(field, fiscal.CodeTooShort, "must have at least 1 character")
	case strings.TrimSpace(n.Text()) == "":
		d.add(field, fiscal.CodeBlank, "must not be only white space")
	default:
		text = n.Text()
	}
	return text
}

// texts returns an array of strings.
func (d *bodyDecoder) texts(n strictjson.Node, field string) []string {
	if n.Kind() != strictjson.Array {
		d.add(field, fiscal.CodeInvalidType, "must be an array of strings")
		return nil
	}
	list := make([]string, 0, min(n.Len(), maxProblems))
	for i, item := range n.Items() {
		list = append(list, d.text(item, field+"."+strconv.Itoa(i)))
	}
	return list
}
