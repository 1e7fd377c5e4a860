package xmlsig

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// The algorithms. Our signatures use all but the last.
const (
	algCanonical = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	algSignature = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	algEnveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
	algDigest    = "http://www.w3.org/2001/04/xmlenc#sha256"
	algExclusive = nsExclusive
)

// The parts of a signature around its digest, value and certificate. In the
// document, SignedInfo inherits its namespace from Signature; its canonical form,
// which is signed, has every namespace declaration in scope.
const (
	signatureOpen = `<Signature xmlns="` + nsSignature + `">`
	infoOpen      = `<SignedInfo>`
	infoBody      = `<CanonicalizationMethod Algorithm="` + algCanonical + `"></CanonicalizationMethod>` +
		`<SignatureMethod Algorithm="` + algSignature + `"></SignatureMethod>` +
		`<Reference URI=""><Transforms><Transform Algorithm="` + algEnveloped + `"></Transform></Transforms>` +
		`<DigestMethod Algorithm="` + algDigest + `"></DigestMethod><DigestValue>`
	infoClose      = `</DigestValue></Reference></SignedInfo>`
	valueOpen      = `<SignatureValue>`
	valueClose     = `</SignatureValue><KeyInfo><X509Data><X509Certificate>`
	signatureClose = `</X509Certificate></X509Data></KeyInfo></Signature>`

	signatureSize = 4 << 10 // about the size of a signature with its certificate
)

// Sign ends the document with a signature as the last child of its root. It
// returns the document and the text of its SignatureValue. It fails when the key
// cannot sign.
func (w *Writer) Sign(id *Identity) (document []byte, value string, err error) {
	body := len(w.buf)
	w.end()
	w.digest.Write(w.buf[w.digested:])
	w.buf = w.buf[:body]
	return id.seal(w.buf, w.root, w.namespaces, w.digest.Sum(nil))
}

// seal appends the signature and the end tag of the root to a document.
func (id *Identity) seal(document []byte, root, namespaces string, digest []byte) ([]byte, string, error) {
	info := make([]byte, 0, 1<<10)
	info = append(info, `<SignedInfo xmlns="`+nsSignature+`"`...)
	info = append(info, namespaces...)
	info = append(info, '>')
	body := len(info)
	info = append(info, infoBody...)
	info = base64.StdEncoding.AppendEncode(info, digest)
	info = append(info, infoClose...)

	sum := sha256.Sum256(info)
	signature, err := id.key.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return nil, "", fmt.Errorf("xmlsig: sign: %w", err)
	}
	document = append(document, signatureOpen+infoOpen...)
	document = append(document, info[body:]...)
	document = append(document, valueOpen...)
	start := len(document)
	document = base64.StdEncoding.AppendEncode(document, signature)
	value := string(document[start:])
	document = append(document, valueClose...)
	document = append(document, id.encoded...)
	document = append(document, signatureClose+"</"...)
	document = append(document, root...)
	return append(document, '>'), value, nil
}
