package main

import (
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

type ecfCmd struct {
	Sign   ecfSignCmd   `cmd:"" help:"Build and sign one document from a creation request. The signed XML goes to standard output."`
	Verify ecfVerifyCmd `cmd:"" help:"Verify the signature of a document, and show who signed it."`
	Print  ecfPrintCmd  `cmd:"" help:"Make the printed representation of a signed document, a PDF."`
}

// signedFile is a signed document. Its content is read only from the part that
// the signature covers.
type signedFile struct {
	verified *xmlsig.Verified
	document *ecf.Document
	code     ecf.SecurityCode
}

// verifyFile reads a signed document. It fails when the signature is not valid.
func verifyFile(raw []byte) (*signedFile, error) {
	verified, err := xmlsig.Verify(raw, xmlsig.InvoiceLimits())
	if err != nil {
		return nil, err
	}
	document, code, err := ecf.Read(verified)
	if err != nil {
		return nil, err
	}
	return &signedFile{verified, document, code}, nil
}

// stamp returns the stamp address of the document in an environment.
func (s *signedFile) stamp(environment string) (ecf.Stamp, error) {
	return s.document.Stamp(s.code, ecf.AuthorityOf(fiscal.Environment(environment)))
}
