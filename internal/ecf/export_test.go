package ecf

import "github.com/fiscalhub/fiscalhub/internal/xmlsig"

// Complete returns the document as Read returns it, with its lines.
func (d *Draft) Complete() *Document {
	whole := d.Document
	for i := range d.lines {
		whole.Lines = append(whole.Lines, newLine(&d.lines[i]))
	}
	return &whole
}

// Tree returns the document that Check looks at.
func (d *Draft) Tree() (*xmlsig.Document, error) { return d.tree().Document() }

// Summaries return the summary as XML and as the document that Check looks at.
func (d *Draft) Summaries() ([]byte, *xmlsig.Document, error) {
	code := SecurityCode{"AAAAAA"}
	built, err := d.emitSummary(xmlsig.NewDocumentWriter("RFCE", 1), code).Document()
	return d.emitSummary(xmlsig.NewWriter("RFCE", 1), code).Unsigned(), built, err
}
