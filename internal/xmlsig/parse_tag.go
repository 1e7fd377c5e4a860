package xmlsig

import (
	"strings"
	"unicode/utf8"
)

// declaration reads the XML declaration: version 1.0, UTF-8 when it has an
// encoding, and optionally standalone.
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
			return p.fail(at, "the XML declaration has no white space before %s", excerpt(name))
		case name == "version" && step == 0:
			if value != "1.0" {
				return p.fail(at, "XML version %s: must be 1.0", excerpt(value))
			}
			step = 1
		case name == "encoding" && step == 1:
			if !strings.EqualFold(value, "utf-8") {
				return p.fail(at, "encoding %s: must be utf-8", excerpt(value))
			}
			step = 2
		case name == "standalone" && (step == 1 || step == 2):
			if value != "yes" && value != "no" {
				return p.fail(at, "standalone %s: must be yes or no", excerpt(value))
			}
			step = 3
		default:
			return p.fail(at, "%s in the XML declaration: it may have version, encoding and standalone, in this order", excerpt(name))
		}
	}
}

// assignment reads a name, an equals sign and a value in quotes. It does not
// resolve references, which the XML declaration cannot have.
func (p *parser) assignment() (name, value string, err error) {
	name, err = p.name("attribute")
	if err != nil {
		return "", "", err
	}
	p.skipSpace()
	if !strings.HasPrefix(p.s[p.pos:], "=") {
		return "", "", p.fail(p.pos, "attribute %s has no =", excerpt(name))
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
	if i := strings.IndexByte(value, '<'); i >= 0 {
		return "", "", p.fail(p.pos+i, "the value of attribute %s has a <", excerpt(name))
	}
	p.pos += length + 1
	return name, value, nil
}

// name reads the name of an element or an attribute, with at most one prefix.
func (p *parser) name(of string) (string, error) {
	start := p.pos
	for p.pos < len(p.s) && (isNameByte(p.s[p.pos]) || p.s[p.pos] == ':') {
		p.pos++
	}
	name := p.s[start:p.pos]
	prefix, local := splitName(name)
	if !isName(local) || prefix == "" && len(local) < len(name) || prefix != "" && !isName(prefix) {
		return "", p.fail(start, "the name of an %s must be ASCII letters, digits, _, - and ., with at most one prefix; found %s", of, excerpt(firstRune(p.s[start:])+p.s[min(start+1, p.pos):p.pos]))
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

// skipSpace skips white space and returns its length.
func (p *parser) skipSpace() int {
	start := p.pos
	for p.pos < len(p.s) && isSpace(p.s[p.pos]) {
		p.pos++
	}
	return p.pos - start
}
