package xmlsig

import "hash"

// A canonical writes elements in canonical form (Canonical XML 1.0, without
// comments).
type canonical struct {
	doc        *Document
	namespaces string // of the root, in canonical form
	blanks     bool   // white space between elements is written
	apex       int32  // the element at the top, which shows what namespaces are in scope
	skip       int32  // the element that is left out, or 0
	buf        []byte
	digest     hash.Hash // takes what is written, when there is one
}

// element writes an element and all in it. The depth of a document is bounded.
func (c *canonical) element(i int32) {
	n := &c.doc.nodes[i]
	c.buf = append(c.buf, '<')
	c.buf = append(c.buf, n.name...)
	c.attributes(i)
	c.buf = append(c.buf, '>')
	if c.doc.leaf(i) {
		c.buf = AppendText(c.buf, n.text)
	} else {
		for child := range c.doc.children(i) {
			if c.blanks {
				c.buf = append(c.buf, c.doc.nodes[child].before...)
			}
			if child != c.skip {
				c.element(child)
			}
		}
		if c.blanks {
			c.buf = append(c.buf, n.text...)
		}
	}
	c.buf = append(c.buf, '<', '/')
	c.buf = append(c.buf, n.name...)
	c.buf = append(c.buf, '>')
	if c.digest != nil && (len(c.buf) >= block || i == c.apex) {
		c.digest.Write(c.buf)
		c.buf = c.buf[:0]
	}
}

// attributes writes the namespaces and the attribute of an element. The profile
// allows one attribute at most, so that there is nothing to sort.
func (c *canonical) attributes(i int32) {
	if i != 0 && i == c.apex {
		c.buf = append(c.buf, ` xmlns="`+nsSignature+`"`...)
	}
	if i == c.apex {
		c.buf = append(c.buf, c.namespaces...)
	}
	if c.apex == 0 {
		return
	}
	for _, a := range c.doc.attributesOf(i) {
		if a.name != "xmlns" {
			c.buf = append(c.buf, ' ')
			c.buf = append(c.buf, a.name...)
			c.buf = append(c.buf, '=', '"')
			c.buf = appendAttribute(c.buf, a.value)
			c.buf = append(c.buf, '"')
		}
	}
}
