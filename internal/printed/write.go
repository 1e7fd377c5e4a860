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
	w := writer{pdf: pdf, options: options, alone: len(sheets) == 1}
	for _, s := range sheets {
		w.page(s)
	}
	var b bytes.Buffer
	if err := pdf.Output(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// A writer writes items to a PDF. It remembers the style of the last item, because
// most items have the style of the one before, and the commands for a style take
// more space and time than those for a short text.
type writer struct {
	pdf     *fpdf.Fpdf
	options fpdf.ImageOptions // of the logo
	style   style             // without its colour
	color   color
	h       float64 // of the page
	alone   bool    // the page is the only one
	qr      fpdf.Template
}

// page writes a sheet as a new page.
func (w *writer) page(s sheet) {
	w.pdf.AddPageFormat("P", fpdf.SizeType{Wd: s.w, Ht: s.h})
	w.h = s.h
	w.setColor(black(), true)
	w.style = style{} // a new page has no font
	for i := range s.items {
		w.item(&s.items[i])
	}
}

// setColor sets the colour of fills and texts: with one colour for both, the library
// adds no colour to each text.
func (w *writer) setColor(c color, always bool) {
	if c == w.color && !always {
		return
	}
	w.color = c
	w.pdf.SetTextColor(c.r, c.g, c.b)
	w.pdf.SetFillColor(c.r, c.g, c.b)
}

func (w *writer) item(i *item) {
	pdf := w.pdf
	c := i.style.color
	switch i.kind {
	case drawText:
		if font := i.style.colored(black()); font != w.style {
			w.style = font
			weight := ""
			if font.bold {
				weight = "B"
			}
			pdf.SetFont(fontFamily, weight, font.size)
		}
		w.setColor(c, false)
		pdf.Text(i.x, i.y, i.text)
	case drawFill:
		w.setColor(c, false)
		pdf.Rect(i.x, i.y, i.w, i.h, "F")
	case drawFrame:
		pdf.SetDrawColor(c.r, c.g, c.b)
		pdf.SetLineWidth(0.15)
		pdf.Rect(i.x, i.y, i.w, i.h, "D")
	case drawLogo:
		pdf.ImageOptions(logoName, i.x, i.y, i.w, i.h, false, w.options, 0, "")
	case drawQR:
		w.drawQR(i)
	}
}

// drawQR draws the QR code. The pages of a document share one drawing, because its
// commands are longer than those of all texts of a page.
func (w *writer) drawQR(i *item) {
	if w.alone {
		w.pdf.RawWriteStr(qrPath(i, i.x, w.h-i.y))
		return
	}
	if w.qr == nil {
		w.qr = w.pdf.CreateTemplateCustom(fpdf.PointType{}, fpdf.SizeType{Wd: i.w, Ht: i.h}, func(t *fpdf.Tpl) {
			t.RawWriteStr(qrPath(i, 0, i.h))
		})
	}
	w.pdf.UseTemplateScaled(w.qr, fpdf.PointType{X: i.x, Y: i.y}, fpdf.SizeType{Wd: i.w, Ht: i.h})
}

// qrPath returns the commands that draw a QR code below and right of a point, given
// from the lower left corner. It draws the modules as one path on an integer grid, so
// that no thin lines appear between them at any resolution.
func qrPath(i *item, x, y float64) string {
	module := i.w / float64(len(i.qr)) / millimetre
	b := fmt.Appendf(nil, "q 0 g %.5f 0 0 %.5f %.3f %.3f cm", module, -module, x/millimetre, y/millimetre)
	for _, r := range i.qr.runs() {
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(r.x), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(r.y), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(r.n), 10)
		b = append(b, " 1 re"...)
	}
	return string(append(b, " f Q\n"...))
}
