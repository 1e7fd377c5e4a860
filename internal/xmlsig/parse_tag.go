package xmlsig

import (
	"strings"
	"unicode/utf8"
)

// declaration reads the XML declaration: version 1.0, UTF-8 when it says an
// encoding, standalone or not.
func (p *parser) declaration() error {
	start := p.pos
	p.pos += len("<?xml")
	for step := 0; ; {
		spaces := p.skipSpace()
		if strings.HasPrefix(p.s[p.pos:], "?>") {
			if step == 0 {
				return p.fail(start, "the XML declaration has no version")
			}
			p.pos += 2
			return nil
		}
		at := p.pos
		name, value, err := p.assignment()
		if err != nil {
			return err
		}
		switch {
		case spaces == 0:
			return p.fail(at, "no white space before %s in the XML declaration", excerpt(name))
		case name == "version" && step == 0:
			if value != "1.0" {
				return p.fail(at, "XML version %s where 1.0 is expected", excerpt(value))
			}
			step = 1
		case name == "encoding" && step == 1:
			if !strings.EqualFold(value, "utf-8") {
				return p.fail(at, "encoding %s where utf-8 is expected", excerpt(value))
			}
			step = 2
		case name == "standalone" && (step == 1 || step == 2):
			if value != "yes" && value != "no" {
				return p.fail(at, "standalone %s where yes or no is expected", excerpt(value))
			}
			step = 3
		default:
			return p.fail(at, "%s in the XML declaration, which has version, encoding and standalone in this order", excerpt(name))
		}
	}
}

// attribute reads an attribute and keeps it where it is allowed: namespaces with
// a prefix on the root, and whatever a signature has, which Verify judges.
func (p *parser) attribute(i int32) error {
	at := p.pos
	if err := p.another(at); err != nil {
		return err
	}
	name, value, err := p.assignment()
	if err != nil {
		return err
	}
	if value, err = p.text(value, p.pos-1-len(value)); err != nil {
		return err
	}
	prefix, isPrefixed := strings.CutPrefix(name, "xmlns:")
	switch {
	case i == 0 && isPrefixed:
		return p.namespace(prefix, value, at)
	case i == 0:
		return p.fail(at, "attribute %s on the root, which may have namespaces with a prefix alone", excerpt(name))
	case p.signature == 0:
		return p.fail(at, "attribute %s on element %s; only the root and the signature may have any", excerpt(name), excerpt(p.doc.nodes[i].name))
	case strings.Contains(name, ":"):
		return p.fail(at, "attribute %s has a prefix; no attribute of a signature may", excerpt(name))
	}
	for _, a := range p.doc.attributesOf(i) {
		if a.name == name {
			return p.fail(at, "attribute %s stands twice", excerpt(name))
		}
	}
	p.doc.attributes = append(p.doc.attributes, attribute{i, name, value})
	return nil
}

// namespace keeps a declaration of the root.
func (p *parser) namespace(prefix, uri string, at int) error {
	if len(prefix) >= 3 && strings.EqualFold(prefix[:3], "xml") {
		return p.fail(at, "namespace prefix %s, which XML keeps for itself", excerpt(prefix))
	}
	if !isPlainURI(uri) {
		return p.fail(at, "namespace %s of prefix %s, where an absolute http or urn name in plain letters is expected", excerpt(uri), excerpt(prefix))
	}
	for _, n := range p.doc.namespaces {
		if n.Prefix == prefix {
			return p.fail(at, "namespace prefix %s stands twice", excerpt(prefix))
		}
	}
	p.doc.namespaces = append(p.doc.namespaces, Namespace{prefix, uri})
	return nil
}

// isPlainURI reports whether every canonicalization takes a namespace name as
// absolute: they refuse relative ones, and do not agree on odd ones.
func isPlainURI(uri string) bool {
	if uri == "http://www.w3.org/2000/xmlns/" || uri == "http://www.w3.org/XML/1998/namespace" {
		return false // bound by XML itself, and to no other prefix
	}
	allowed := "-._~/?=" // no &, which libxml2 writes otherwise
	rest, ok := strings.CutPrefix(uri, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "https://")
	}
	if !ok {
		rest, ok = strings.CutPrefix(uri, "urn:")
		allowed += ":"
	}
	if !ok || rest == "" || !isLetter(rest[0]) && !isDigit(rest[0]) {
		return false
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest += fragment
	for i := range len(rest) {
		if c := rest[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte(allowed, c) < 0 {
			return false
		}
	}
	return true
}

// assignment reads a name, an equals sign and a value in quotes, whose references
// are not resolved: the XML declaration can have none. The name may have one
// prefix, for which the caller has better words.
func (p *parser) assignment() (name, value string, err error) {
	start := p.pos
	for p.pos < len(p.s) && (isNameByte(p.s[p.pos]) || p.s[p.pos] == ':') {
		p.pos++
	}
	name = p.s[start:p.pos]
	local := name
	if prefix, after, ok := strings.Cut(name, ":"); ok && isName(prefix) {
		local = after
	}
	if !isName(local) {
		return "", "", p.fail(start, "%s where the name of an attribute is expected", excerpt(firstRune(p.s[start:])))
	}
	p.skipSpace()
	if !strings.HasPrefix(p.s[p.pos:], "=") {
		return "", "", p.fail(p.pos, "no = after attribute %s", excerpt(name))
	}
	p.pos++
	p.skipSpace()
	if p.pos == len(p.s) || p.s[p.pos] != '"' && p.s[p.pos] != '\'' {
		return "", "", p.fail(p.pos, "the value of attribute %s is not in quotes", excerpt(name))
	}
	quote := p.s[p.pos]
	p.pos++
	length := strings.IndexByte(p.s[p.pos:], quote)
	if length < 0 {
		return "", "", p.fail(len(p.s), "the value of attribute %s does not end", excerpt(name))
	}
	value = p.s[p.pos : p.pos+length]
	// XML would turn line ends and tabs into spaces; no value of ours has any.
	if i := strings.IndexAny(value, "<\t\r\n"); i >= 0 {
		return "", "", p.fail(p.pos+i, "%s in the value of attribute %s", excerpt(value[i:i+1]), excerpt(name))
	}
	p.pos += length + 1
	return name, value, nil
}

// name reads the name of an element.
func (p *parser) name() (string, error) {
	start := p.pos
	for p.pos < len(p.s) && isNameByte(p.s[p.pos]) {
		p.pos++
	}
	name := p.s[start:p.pos]
	if !isName(name) {
		return "", p.fail(start, "%s where the name of an element is expected, in letters without accents", excerpt(firstRune(p.s[start:])))
	}
	if p.pos < len(p.s) && p.s[p.pos] == ':' {
		return "", p.fail(start, "element with the prefix %s; neither the content nor the signature may have one", excerpt(name))
	}
	return name, nil
}

func isName(s string) bool {
	return s != "" && (isLetter(s[0]) || s[0] == '_') && !strings.Contains(s, ":")
}

func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.'
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func firstRune(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}

// skipSpace returns how much white space it has passed.
func (p *parser) skipSpace() int {
	start := p.pos
	for p.pos < len(p.s) && isSpace(p.s[p.pos]) {
		p.pos++
	}
	return p.pos - start
}
