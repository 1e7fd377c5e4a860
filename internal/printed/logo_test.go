package printed

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	imagecolor "image/color"
	"image/jpeg"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func encodePNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// logoPNG returns a sun over waves, on a transparent background.
func logoPNG(t testing.TB, w, h int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	size := float64(h)
	for y := range h {
		for x := range w {
			dx, dy := float64(x)-size/2, float64(y)-size/2
			wave := 0.62*size + 0.05*size*math.Sin(float64(x)/size*9)
			switch {
			case math.Hypot(dx, dy) < size*0.46 && float64(y) < wave-0.06*size:
				m.Set(x, y, imagecolor.NRGBA{236, 156, 42, 255})
			case float64(y) > wave && float64(y) < wave+0.11*size, float64(y) > wave+0.2*size && float64(y) < wave+0.31*size:
				m.Set(x, y, imagecolor.NRGBA{24, 92, 140, 255})
			}
		}
	}
	return encodePNG(t, m)
}

// interlaced returns an interlaced PNG of one pixel; only its header differs from
// that of a plain one.
func interlaced(t testing.TB) []byte {
	t.Helper()
	data := encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 1, 1)))
	data[28] = 1
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

func TestLogosOfEveryKindAreDecoded(t *testing.T) {
	t.Parallel()
	box := image.Rect(0, 0, 64, 32)
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewYCbCr(box, image.YCbCrSubsampleRatio420), nil); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"transparent":  logoPNG(t, 600, 200),
		"16 bits":      encodePNG(t, image.NewNRGBA64(box)),
		"grey":         encodePNG(t, image.NewGray(box)),
		"16-bit grey":  encodePNG(t, image.NewGray16(box)),
		"palette":      encodePNG(t, image.NewPaletted(box, imagecolor.Palette{imagecolor.Transparent, imagecolor.Black})),
		"JPEG":         photo.Bytes(),
		"interlaced":   interlaced(t),
		"one pixel":    encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 1, 1))),
		"very wide":    encodePNG(t, image.NewGray(image.Rect(0, 0, 5000, 1))),
		"very tall":    encodePNG(t, image.NewGray(image.Rect(0, 0, 1, 5000))),
		"large enough": encodePNG(t, image.NewGray(image.Rect(0, 0, 900, 700))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := decodeLogo(data)
			if err != nil {
				t.Fatal(err)
			}
			if l.w > logoWidth+1e-9 || l.h > logoHeight+1e-9 || l.w <= 0 || l.h <= 0 {
				t.Errorf("%f × %f mm", l.w, l.h)
			}
			config, err := png.DecodeConfig(bytes.NewReader(l.png))
			if err != nil || config.ColorModel != imagecolor.RGBAModel && config.ColorModel != imagecolor.NRGBAModel ||
				float64(config.Width) > math.Ceil(logoWidth*logoDensity) {
				t.Errorf("%+v, %v", config, err)
			}
		})
	}
}

func TestInvalidLogosAreRefused(t *testing.T) {
	t.Parallel()
	good := logoPNG(t, 60, 20)
	huge := bytes.Clone(good)
	copy(huge[16:], "\x00\x01\x00\x00\x00\x01\x00\x00") // 65,536 × 65,536
	for name, data := range map[string][]byte{
		"text":          []byte("not a picture"),
		"SVG":           []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"),
		"only a mark":   good[:8],
		"cut off":       good[:len(good)/2],
		"cut off JPEG":  {0xFF, 0xD8, 0xFF},
		"huge":          huge,
		"two bytes off": append([]byte{0, 0}, good...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := page(t, sample(t, fiscal.Consumer, line(t, fiscal.Taxed18, "Café", "2", "125")), "abcdef")
			p.Logo = data
			if _, err := p.Render(Letter); err == nil || !strings.HasPrefix(err.Error(), "printed: logo: ") {
				t.Errorf("err is %v", err)
			}
		})
	}
}
