package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A schemaElement is an element of a document: its name, how often it may occur, and its
// text or its children in their order.
type schemaElement struct {
	name     string
	min, max int
	check    func(string) bool // checks the text; nil for an element with children
	children []*schemaElement
}

// schemas are the schemas of documents, by root and type. They are the simulator's own,
// see the package comment.
type schemas map[string]*schemaElement

func newSchemas() schemas {
	return schemas{
		"ECF31": parseSchema("ECF", ecfSchema, "31"), "ECF32": parseSchema("ECF", ecfSchema, "32"),
		"RFCE": parseSchema("RFCE", rfceSchema, "32"),
		"ECF":  parseSchema("ECF", commonSchema, ""),
	}
}

// parseSchema reads a schema: one line for each element. The indentation is its level.
// Then come its name, how often it occurs (1, ? or min..max) and the type of its text. An
// @ at the end names the only document type that has it.
func parseSchema(root, schema, documentType string) *schemaElement {
	path := []*schemaElement{{name: root}}
	for line := range strings.SplitSeq(strings.Trim(schema, "\n"), "\n") {
		fields := strings.Fields(line)
		if last := fields[len(fields)-1]; last[0] == '@' {
			if last[1:] != documentType {
				continue
			}
			fields = fields[:len(fields)-1]
		}
		e := &schemaElement{name: fields[0], min: 1, max: 1}
		if least, most, several := strings.Cut(fields[1], ".."); several {
			e.min, _ = strconv.Atoi(least) // the schemas are constants of this package
			e.max, _ = strconv.Atoi(most)
		} else if least == "?" {
			e.min = 0
		}
		if len(fields) > 2 {
			e.check = textType(fields[2])
		}
		depth := len(line) - len(strings.TrimLeft(line, " ")) + 1
		parent := path[depth-1]
		parent.children = append(parent.children, e)
		path = append(path[:depth], e)
	}
	return path[0]
}

// check returns the errors in the structure of a document, at most maxFindings.
func (s schemas) check(root xmlsig.Element, kind string) []string {
	want := s["ECF"+kind]
	if root.Name() == "RFCE" {
		want = s["RFCE"]
	}
	loose := want == nil
	if loose {
		want = s["ECF"]
	}
	c := schemaValidator{allowUnknown: loose}
	c.element(root, want)
	return c.found
}

// maxFindings is how many errors of one document are reported.
const maxFindings = 20

type schemaValidator struct {
	found        []string
	allowUnknown bool // unknown elements may occur anywhere
}

func (c *schemaValidator) fail(format string, args ...any) {
	if len(c.found) < maxFindings {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (c *schemaValidator) element(e xmlsig.Element, want *schemaElement) {
	if want.check != nil {
		if text := e.Text(); e.HasChildren() || !want.check(text) {
			c.fail("The '%s' element is invalid - The value %q is invalid.", want.name, text)
		}
		return
	}
	if !e.HasChildren() {
		c.fail("The element '%s' is empty.", want.name)
		return
	}
	at, count := 0, 0
	for child := range e.Children() {
		next := at
		for next < len(want.children) && want.children[next].name != child.Name() {
			next++
		}
		if next == len(want.children) {
			if !c.allowUnknown {
				c.fail("The element '%s' has invalid child element '%s'.", want.name, child.Name())
				return
			}
			c.notEmpty(child)
			continue
		}
		if next != at {
			c.missing(want, at, next, count)
			at, count = next, 0
		}
		count++
		if count > want.children[at].max {
			c.fail("The element '%s' has too many child elements '%s'.", want.name, child.Name())
			return
		}
		c.element(child, want.children[at])
	}
	c.missing(want, at, len(want.children), count)
}

// missing reports the required elements between two positions that are missing. count is
// how many of the first one there were.
func (c *schemaValidator) missing(want *schemaElement, from, to, count int) {
	for i := from; i < to; i++ {
		if e := want.children[i]; count < e.min {
			c.fail("The element '%s' has incomplete content: '%s' is expected.", want.name, e.name)
		}
		count = 0
	}
}

func (c *schemaValidator) notEmpty(e xmlsig.Element) {
	if !e.HasChildren() && e.Text() == "" {
		c.fail("The element '%s' is empty.", e.Name())
	}
	for child := range e.Children() {
		c.notEmpty(child)
	}
}

// numberType returns the check of a type of number, or nil for another type.
func numberType(name string) func(string) bool {
	switch name {
	case "amount":
		return func(s string) bool { return isDecimal(s, 16, 2, false) }
	case "positive":
		return func(s string) bool { return isDecimal(s, 16, 2, false) && strings.Trim(s, "0.") != "" }
	case "signed":
		return func(s string) bool { return isDecimal(strings.TrimLeft(s, "+-"), 16, 2, false) }
	case "exact": // of summaries: no decimals or two
		return func(s string) bool { return isDecimal(s, 16, 2, true) }
	case "price":
		return func(s string) bool { return isDecimal(s, 16, 4, false) }
	case "thousandths":
		return func(s string) bool { return isDecimal(s, 16, 3, false) }
	case "percent":
		return func(s string) bool { return isDecimal(s, 3, 2, false) && strings.Trim(s, "0.") != "" }
	case "rate":
		return func(s string) bool { return isDecimal(s, 3, 4, false) && strings.Trim(s, "0.") != "" }
	}
	return nil
}

// textType returns the check of a type of text.
func textType(kind string) func(string) bool {
	name, argument, _ := strings.Cut(kind, ":")
	if check := numberType(name); check != nil {
		return check
	}
	n, _ := strconv.Atoi(argument) // not used if there is no argument
	switch name {
	case "text":
		return func(s string) bool { return strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= n }
	case "int":
		return func(s string) bool { return isDigits(s) && len(s) <= n }
	case "enum":
		allowed := strings.Split(argument, ",")
		return func(s string) bool { return slices.Contains(allowed, s) }
	case "upto":
		return func(s string) bool {
			v, err := strconv.Atoi(s)
			return err == nil && isDigits(s) && v >= 1 && v <= n
		}
	case "rnc":
		return isRNC
	case "encf":
		return func(s string) bool {
			return len(s) == 13 && strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
		}
	case "date":
		return func(s string) bool { _, ok := parseDay(s); return ok }
	case "datetime":
		return func(s string) bool { _, err := time.Parse(timeLayout, s); return err == nil }
	case "phone":
		return func(s string) bool {
			return len(s) == 12 && s[3] == '-' && s[7] == '-' && isDigits(s[:3]+s[4:7]+s[8:])
		}
	case "mail":
		return isMail
	case "municipality":
		return func(s string) bool { return len(s) == 6 && isDigits(s) }
	case "tax":
		return func(s string) bool { return len(s) == 3 && isDigits(s) && s >= "001" && s <= "039" }
	case "alphanumeric":
		return func(s string) bool {
			return s != "" && utf8.RuneCountInString(s) <= n && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ' ' }) < 0
		}
	case "code":
		return func(s string) bool { return utf8.RuneCountInString(s) == 6 }
	}
	return func(s string) bool { return s != "" }
}

// isDecimal reports whether a number has at most the given numbers of digits before and
// after the point. If exact, it must have none or exactly that many after the point.
func isDecimal(s string, before, after int, exact bool) bool {
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole) || len(whole) > before {
		return false
	}
	return !point || isDigits(fraction) && len(fraction) <= after && (!exact || len(fraction) == after)
}

func isMail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	word := func(s, separators string) bool {
		ok, last := false, false
		for _, r := range s {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				ok, last = true, true
			case strings.ContainsRune(separators, r) && last:
				last = false
			default:
				return false
			}
		}
		return ok && last
	}
	return ok && utf8.RuneCountInString(s) <= 80 && word(local, "-+.") && word(domain, "-.") && strings.Contains(domain, ".")
}
