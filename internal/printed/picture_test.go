package printed

import (
	"bytes"
	"fmt"
	"image"
	imagecolor "image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// pictureFolder has the reference pictures, which docs/printed.md shows.
const pictureFolder = "../../docs/pictures"

// A picture is a page of a PDF in the documentation.
type picture struct {
	page   Page
	format Format
	number int
}

// pictures returns the reference pictures by name.
func pictures(t testing.TB) map[string]picture {
	t.Helper()
	in := func(p Page, language string) Page {
		p.Language = language
		return p
	}
	one := fullPage(t, shopLines(t, 1)...)
	forty := fullPage(t, shopLines(t, 40)...)
	thousand := fullPage(t, shopLines(t, 1000)...)
	till := shopReceipt(t)
	return map[string]picture{
		"letter-1-line":           {one, Letter, 1},
		"letter-1-line-english":   {in(one, "en"), Letter, 1},
		"letter-40-lines-1":       {forty, Letter, 1},
		"letter-40-lines-2":       {forty, Letter, 2},
		"letter-1000-lines-first": {thousand, Letter, 1},
		"letter-1000-lines-last":  {thousand, Letter, len(sheetsOf(t, thousand))},
		"receipt-80mm":            {till, Receipt, 1},
		"receipt-80mm-english":    {in(till, "en"), Receipt, 1},
		"receipt-58mm":            {till, Receipt58, 1},
		"receipt-58mm-english":    {in(till, "en"), Receipt58, 1},
	}
}

// shopReceipt is a purchase at a till.
func shopReceipt(t testing.TB) Page {
	t.Helper()
	d := sample(t, fiscal.Consumer, shopLines(t, 8)[4:]...)
	d.Issuer.Branch = "Sucursal Naco"
	d.Buyer = ecf.Buyer{LegalName: "María Altagracia Núñez", TaxID: "00112345678"}
	p := page(t, d, "uab+yh")
	p.Logo = logoPNG(t, 600, 200)
	p.Extra.Notes = "¡Gracias por su compra!"
	return p
}

func sheetsOf(t testing.TB, p Page) []sheet {
	t.Helper()
	logo, err := decodeLogo(p.Logo)
	if err != nil {
		t.Fatal(err)
	}
	sheets, err := p.layout(Letter, logo)
	if err != nil {
		t.Fatal(err)
	}
	return sheets
}

// The test compares pages with pictures that a person has looked at. With -update it
// writes the pictures.
func TestPagesLookLikeTheirPictures(t *testing.T) {
	t.Parallel()
	for name, p := range pictures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := rasterize(t, render(t, p.page, p.format), p.number)
			path := filepath.Join(pictureFolder, name+".png")
			if *update {
				writePicture(t, path, got)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if difference := compare(want, got); difference != "" {
				t.Errorf("%s: %s; look at the page, and write the picture with -update when it is right", path, difference)
			}
		})
	}
}

// rasterize returns a page of a PDF as an image.
func rasterize(t testing.TB, pdf []byte, page int) image.Image {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page")
	n := fmt.Sprint(page)
	output(t, "pdftoppm", pdf, "-png", "-r", "84", "-f", n, "-l", n, "-singlefile", "-", file)
	data, err := os.ReadFile(file + ".png")
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// writePicture writes an image with few colours, so that the file is small.
func writePicture(t testing.TB, path string, m image.Image) {
	t.Helper()
	const step = 17 // 16 levels of each colour
	var colors imagecolor.Palette
	indexes := make(map[imagecolor.RGBA]uint8)
	small := image.NewPaletted(m.Bounds(), nil)
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			r, g, b, _ := m.At(x, y).RGBA()
			level := func(v uint32) uint8 { return uint8((v>>8 + step/2) / step * step) }
			c := imagecolor.RGBA{level(r), level(g), level(b), 255}
			i, known := indexes[c]
			if !known {
				if len(colors) == 256 {
					i = uint8(colors.Index(c))
				} else {
					i, colors = uint8(len(colors)), append(colors, c)
				}
				indexes[c] = i
			}
			small.SetColorIndex(x, y, i)
		}
	}
	small.Palette = colors
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compare describes how two pictures differ, or returns "". It compares the mean
// brightness of small squares, because versions of the program that draws the page
// smooth edges differently.
func compare(want, got image.Image) string {
	const square, tolerance, most = 4, 40, 0.01
	a, b := want.Bounds(), got.Bounds()
	if a.Dx()-b.Dx() > 1 || b.Dx()-a.Dx() > 1 || a.Dy()-b.Dy() > 1 || b.Dy()-a.Dy() > 1 {
		return fmt.Sprintf("the page is %d × %d pixels, and the picture %d × %d", b.Dx(), b.Dy(), a.Dx(), a.Dy())
	}
	squares, differ := 0, 0
	for y := 0; y+square <= min(a.Dy(), b.Dy()); y += square {
		for x := 0; x+square <= min(a.Dx(), b.Dx()); x += square {
			squares++
			if d := brightness(want, x, y, square) - brightness(got, x, y, square); d > tolerance || d < -tolerance {
				differ++
			}
		}
	}
	if float64(differ) > most*float64(squares) {
		return fmt.Sprintf("%d of %d squares differ", differ, squares)
	}
	return ""
}

// brightness returns the mean brightness of a square, from 0 to 255.
func brightness(m image.Image, x, y, size int) int {
	sum := 0
	for dy := range size {
		for dx := range size {
			r, g, b, _ := m.At(m.Bounds().Min.X+x+dx, m.Bounds().Min.Y+y+dy).RGBA()
			sum += int(r>>8) + int(g>>8) + int(b>>8)
		}
	}
	return sum / (3 * size * size)
}
