package simulator

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// An element is a place in a document: what stands there, how often, in which
// order.
type element struct {
	name     string
	min, max int
	check    func(string) bool // of text; nil for one that holds elements
	children []*element
}

// A structure is what documents must look like, by root and type.
type structure map[string]*element

func newStructure() structure {
	return structure{
		"ECF31": compile("ECF", ecfLayout, "31"), "ECF32": compile("ECF", ecfLayout, "32"),
		"RFCE": compile("RFCE", rfceLayout, "32"),
		"ECF":  compile("ECF", commonLayout, ""),
	}
}

// compile reads a layout: a line for each element, a blank for each level, then
// its name, how often it stands (1, ?, or least..most) and the kind of its text;
// @ names the one type of document that has it.
func compile(root, layout, kind string) *element {
	path := []*element{{name: root}}
	for line := range strings.SplitSeq(strings.Trim(layout, "\n"), "\n") {
		fields := strings.Fields(line)
		if last := fields[len(fields)-1]; last[0] == '@' {
			if last[1:] != kind {
				continue
			}
			fields = fields[:len(fields)-1]
		}
		e := &element{name: fields[0], min: 1, max: 1}
		switch least, most, _ := strings.Cut(fields[1], ".."); least {
		case "?":
			e.min = 0
		case "1":
		default:
			e.min, _ = strconv.Atoi(least) // the layouts are of this package
			e.max, _ = strconv.Atoi(most)
		}
		if _, most, ok := strings.Cut(fields[1], ".."); ok {
			e.max, _ = strconv.Atoi(most)
		}
		if len(fields) > 2 {
			e.check = textCheck(fields[2])
		}
		depth := len(line) - len(strings.TrimLeft(line, " ")) + 1
		parent := path[depth-1]
		parent.children = append(parent.children, e)
		path = append(path[:depth], e)
	}
	return path[0]
}

// check tells everything that is wrong with the structure of a document.
func (s structure) check(root xmlsig.Element, kind string) []string {
	want := s["ECF"+kind]
	if root.Name() == "RFCE" {
		want = s["RFCE"]
	}
	loose := want == nil
	if loose {
		want = s["ECF"]
	}
	c := checker{loose: loose}
	c.element(root, want)
	return c.found
}

// maxFindings is how many a validator tells before it gives up.
const maxFindings = 20

type checker struct {
	found []string
	loose bool // elements that are not known may stand anywhere
}

func (c *checker) fail(format string, args ...any) {
	if len(c.found) < maxFindings {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (c *checker) element(e xmlsig.Element, want *element) {
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
			if !c.loose {
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

// missing tells which elements from one place up to another were to be there.
// count is how many stood at the first.
func (c *checker) missing(want *element, from, to, count int) {
	for i := from; i < to; i++ {
		if e := want.children[i]; count < e.min {
			c.fail("The element '%s' has incomplete content: '%s' is expected.", want.name, e.name)
		}
		count = 0
	}
}

func (c *checker) notEmpty(e xmlsig.Element) {
	if !e.HasChildren() && e.Text() == "" {
		c.fail("The element '%s' is empty.", e.Name())
	}
	for child := range e.Children() {
		c.notEmpty(child)
	}
}

// textCheck is the check of a kind of text.
func textCheck(kind string) func(string) bool {
	name, argument, _ := strings.Cut(kind, ":")
	n, _ := strconv.Atoi(argument) // where there is none it is not used
	switch name {
	case "text":
		return func(s string) bool { return strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= n }
	case "int":
		return func(s string) bool { return digits(s) && len(s) <= n }
	case "one":
		allowed := strings.Split(argument, ",")
		return func(s string) bool {
			for _, a := range allowed {
				if s == a {
					return true
				}
			}
			return false
		}
	case "upto":
		return func(s string) bool {
			v, err := strconv.Atoi(s)
			return err == nil && digits(s) && v >= 1 && v <= n
		}
	case "amount":
		return func(s string) bool { return decimal(s, 16, 2, false) }
	case "positive":
		return func(s string) bool { return decimal(s, 16, 2, false) && strings.Trim(s, "0.") != "" }
	case "signed":
		return func(s string) bool { return decimal(strings.TrimLeft(s, "+-"), 16, 2, false) }
	case "exact": // as in the summary: no decimals or two
		return func(s string) bool { return decimal(s, 16, 2, true) }
	case "price":
		return func(s string) bool { return decimal(s, 16, 4, false) }
	case "thousandths":
		return func(s string) bool { return decimal(s, 16, 3, false) }
	case "percent":
		return func(s string) bool { return decimal(s, 3, 2, false) && strings.Trim(s, "0.") != "" }
	case "rate":
		return func(s string) bool { return decimal(s, 3, 4, false) && strings.Trim(s, "0.") != "" }
	case "rnc":
		return isRNC
	case "encf":
		return func(s string) bool {
			return len(s) == 13 && strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
		}
	case "date":
		return func(s string) bool { _, ok := day(s); return ok }
	case "moment":
		return func(s string) bool { _, err := time.Parse("02-01-2006 15:04:05", s); return err == nil }
	case "phone":
		return func(s string) bool {
			return len(s) == 12 && s[3] == '-' && s[7] == '-' && digits(s[:3]+s[4:7]+s[8:])
		}
	case "mail":
		return isMail
	case "place":
		return func(s string) bool { return len(s) == 6 && digits(s) }
	case "tax":
		return func(s string) bool { return len(s) == 3 && digits(s) && s >= "001" && s <= "039" }
	case "words":
		return func(s string) bool {
			return s != "" && utf8.RuneCountInString(s) <= n && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ' ' }) < 0
		}
	case "six":
		return func(s string) bool { return utf8.RuneCountInString(s) == 6 }
	}
	return func(s string) bool { return s != "" }
}

// decimal tells whether a number has at most so many digits before and after the
// point; or, exactly, none or so many after it.
func decimal(s string, before, after int, exact bool) bool {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || len(whole) > before {
		return false
	}
	return !point || digits(fraction) && len(fraction) <= after && (!exact || len(fraction) == after)
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
