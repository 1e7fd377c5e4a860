package printed

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

const (
	// maxPixels bounds what a logo unpacks to before it is unpacked.
	maxPixels = 8 << 20
	// logoDensity is how many pixels of a logo are kept per millimetre of the
	// place it is given, 300 to the inch.
	logoDensity = 300 / 25.4
)

// The largest place that a logo is given, in millimetres.
const (
	logoWidth  = 60.0
	logoHeight = 18.0
)

// A logo is a picture ready to be printed, w × h millimetres.
type logo struct {
	png  []byte
	w, h float64
}

// CheckLogo tells whether a picture can be printed as a logo.
func CheckLogo(data []byte) error {
	_, err := decodeLogo(data)
	return err
}

// decodeLogo reads a PNG or JPEG of any kind and writes it as an 8-bit PNG on
// white no larger than it is printed, for the writer of the PDF takes only some
// kinds.
func decodeLogo(data []byte) (*logo, error) {
	if len(data) == 0 {
		return nil, nil
	}
	decode, decodeConfig := png.Decode, png.DecodeConfig
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
	case bytes.HasPrefix(data, []byte{0xFF, 0xD8}):
		decode, decodeConfig = jpeg.Decode, jpeg.DecodeConfig
	default:
		return nil, errors.New("want a PNG or a JPEG")
	}
	config, err := decodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPixels/config.Height {
		return nil, fmt.Errorf("%d × %d pixels; want at most %d in all", config.Width, config.Height, maxPixels)
	}
	picture, err := decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	// A picture is never enlarged beyond 96 pixels to the inch, where it would
	// begin to look coarse.
	w, h := float64(config.Width), float64(config.Height)
	scale := min(logoWidth/w, logoHeight/h, 25.4/96)
	l := &logo{w: w * scale, h: h * scale}
	pixels := image.Rect(0, 0,
		max(1, min(config.Width, int(l.w*logoDensity))), max(1, min(config.Height, int(l.h*logoDensity))))
	flat := image.NewRGBA(pixels)
	draw.Draw(flat, pixels, image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(flat, pixels, picture, picture.Bounds(), draw.Over, nil)
	var b bytes.Buffer
	if err := png.Encode(&b, flat); err != nil {
		return nil, err
	}
	l.png = b.Bytes()
	return l, nil
}
