package printed

import (
	"bytes"
	"fmt"
	"strconv"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

const (
	fontFamily = "go"
	logoName   = "logo"
)

// write writes the sheets as a PDF. Dates and the order of objects depend only on
// the document, so that the same page gives the same bytes.
func (p Page) write(sheets []sheet, picture *logo) ([]byte, error) {
	pdf := fpdf.NewCustom(&fpdf.InitType{UnitStr: "mm", Size: fpdf.SizeType{Wd: sheets[0].w, Ht: sheets[0].h}})
	pdf.SetCatalogSort(true)
	pdf.SetCreationDate(p.Document.SignedAt.In(fiscal.Zone()))
	pdf.SetModificationDate(p.Document.SignedAt.In(fiscal.Zone()))
	pdf.SetProducer("fiscalhub", false)
	pdf.SetCreator("fiscalhub", false)
	pdf.SetTitle(p.typeName()+" "+p.Document.ENCF.String(), true)
	pdf.SetAuthor(clean(p.Document.Issuer.LegalName), true)
	pdf.SetSubject("Representación impresa de comprobante fiscal electrónico (e-CF)", true)
	pdf.SetLang("es-DO")
	pdf.SetAutoPageBreak(false, 0)
	pdf.SetMargins(0, 0, 0)
	pdf.AddUTF8FontFromBytes(fontFamily, "", goregular.TTF)
	pdf.AddUTF8FontFromBytes(fontFamily, "B", gobold.TTF)
	options := fpdf.ImageOptions{ImageType: "png"}
	if picture != nil {
		pdf.RegisterImageOptionsReader(logoName, options, bytes.NewReader(picture.png))
	}
	for _, s := range sheets {
		pdf.AddPageFormat("P", fpdf.SizeType{Wd: s.w, Ht: s.h})
		for i := range s.items {
			writeItem(pdf, s.h, &s.items[i], options)
		}
	}
	var b bytes.Buffer
	if err := pdf.Output(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeItem(pdf *fpdf.Fpdf, height float64, i *item, options fpdf.ImageOptions) {
	c := i.style.color
	switch i.kind {
	case drawText:
		weight := ""
		if i.style.bold {
			weight = "B"
		}
		pdf.SetFont(fontFamily, weight, i.style.size)
		pdf.SetTextColor(c.r, c.g, c.b)
		pdf.Text(i.x, i.y, i.text)
	case drawFill:
		pdf.SetFillColor(c.r, c.g, c.b)
		pdf.Rect(i.x, i.y, i.w, i.h, "F")
	case drawFrame:
		pdf.SetDrawColor(c.r, c.g, c.b)
		pdf.SetLineWidth(0.15)
		pdf.Rect(i.x, i.y, i.w, i.h, "D")
	case drawLogo:
		pdf.ImageOptions(logoName, i.x, i.y, i.w, i.h, false, options, 0, "")
	case drawQR:
		writeQR(pdf, height, i)
	}
}

// writeQR draws the modules as one path on an integer grid, so that no thin lines
// appear between them at any resolution.
func writeQR(pdf *fpdf.Fpdf, height float64, i *item) {
	size := len(i.qr)
	module := i.w / float64(size) / millimetre
	b := fmt.Appendf(nil, "q 0 g %.5f 0 0 %.5f %.3f %.3f cm", module, -module, i.x/millimetre, (height-i.y)/millimetre)
	for _, r := range i.qr.runs() {
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(r.x), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(r.y), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(r.n), 10)
		b = append(b, " 1 re"...)
	}
	pdf.RawWriteStr(string(append(b, " f Q\n"...)))
}
