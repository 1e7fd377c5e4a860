package xmlsig

import (
	"bytes"
	"strings"
)

// Compact returns the signed document that v was read from in canonical form, with
// its signature, which still matches. The result has nothing that the document can be
// padded with and the signature does not cover: no XML declaration, no white space that
// v ignores, and no white space in or between the parts of the signature after
// SignedInfo. It fails with ErrSignature when v was not read from raw.
func (v *Verified) Compact(raw []byte, limits Limits) ([]byte, error) {
	d, err := Parse(raw, limits)
	if err != nil {
		return nil, err
	}
	s, err := d.signature()
	if err != nil {
		return nil, err
	}
	d.stripSignature(s)
	c := canonicalizer{doc: d, blanks: !v.Indented}
	c.write()
	again, err := Verify(c.buf, limits)
	if err != nil {
		return nil, err
	}
	if again.Value != v.Value || !bytes.Equal(again.Certificate.Raw, v.Certificate.Raw) {
		return nil, refuse(ErrSignature, "the document is not the one that was verified")
	}
	return c.buf, nil
}

// stripSignature removes the white space of a signature that is not signed: all of it
// outside of SignedInfo.
func (d *Document) stripSignature(s *signature) {
	from, to := s.info+1, d.nodes[s.info].end // the inside of SignedInfo
	for i := s.at + 1; i < d.nodes[s.at].end; i++ {
		if i >= from && i < to {
			continue
		}
		n := &d.nodes[i]
		n.before = ""
		switch {
		case i == s.info:
		case !d.leaf(i):
			n.text = ""
		case localName(n.name) == "SignatureValue" || localName(n.name) == "X509Certificate":
			n.text = strings.Join(strings.Fields(n.text), "")
		}
	}
	d.nodes[s.at].text = "" // before its end tag
}
