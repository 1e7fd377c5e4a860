package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// maxProblems is how many problems of a body are told.
const maxProblems = 100

// shape collects what is wrong with the shape of a small body.
type shape struct{ problems fiscal.Problems }

func (s *shape) add(field, code, message string) {
	if len(s.problems) <= maxProblems { // one more tells that there are more
		s.problems = append(s.problems, fiscal.Problem{Field: field, Code: code, Message: message})
	}
}

// err is what was collected, by the names of the members.
func (s *shape) err() error {
	if len(s.problems) == 0 {
		return nil
	}
	more := len(s.problems) > maxProblems
	list := s.problems[:min(len(s.problems), maxProblems)]
	slices.SortStableFunc(list, func(a, b fiscal.Problem) int { return cmp.Compare(top(a.Field), top(b.Field)) })
	if more {
		list = append(list, fiscal.Problem{Code: fiscal.CodeTooManyErrors, Message: "only the first problems are listed"})
	}
	return invalid(list...)
}

func top(field string) string {
	name, _, _ := strings.Cut(field, ".")
	return name
}

// object returns the members of an object that has no others than those named.
func (s *shape) object(n strictjson.Node, known ...string) map[string]strictjson.Node {
	if n.Kind() != strictjson.Object {
		s.add("", fiscal.CodeInvalidType, "want an object")
		return nil
	}
	found := make(map[string]strictjson.Node)
	for name, value := range n.Members() {
		if slices.Contains(known, name) {
			found[name] = value
		} else {
			s.add(cut(name), fiscal.CodeUnknownField, "this request has no such member")
		}
	}
	return found
}

// text is a member that must be a text, of one character at least.
func (s *shape) text(n strictjson.Node, field string) string {
	text := ""
	switch {
	case n.Kind() != strictjson.String:
		s.add(field, fiscal.CodeInvalidType, "want a string")
	case n.Text() == "":
		s.add(field, fiscal.CodeTooShort, "want at least 1 character")
	case strings.TrimSpace(n.Text()) == "":
		s.add(field, fiscal.CodeBlank, "want more than white space")
	default:
		text = n.Text()
	}
	return text
}

// texts is a member that must be a list of texts.
func (s *shape) texts(n strictjson.Node, field string) []string {
	if n.Kind() != strictjson.Array {
		s.add(field, fiscal.CodeInvalidType, "want an array of strings")
		return nil
	}
	list := make([]string, 0, min(n.Len(), maxProblems))
	for i, item := range n.Items() {
		list = append(list, s.text(item, field+"."+strconv.Itoa(i)))
	}
	return list
}
