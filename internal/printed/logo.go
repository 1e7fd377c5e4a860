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
	// maxPixels is the largest number of pixels of a logo. It is checked before
	// the logo is decoded, to bound the memory.
	maxPixels = 8 << 20
	// logoDensity is the resolution of a printed logo in pixels per millimetre:
	// 300 per inch.
	logoDensity = 300 / 25.4
)

// The largest size of a printed logo, in millimetres.
const (
	logoWidth  = 60.0
	logoHeight = 18.0
)

// A logo is an image that is ready to be printed, w × h millimetres.
type logo struct {
	png  []byte
	w, h float64
}

// CheckLogo returns an error when an image cannot be printed as a logo.
func CheckLogo(data []byte) error {
	_, err := decodeLogo(data)
	return err
}

// decodeLogo decodes a PNG or JPEG image and encodes it as an 8-bit PNG on a white
// background in the size that is printed, because the PDF library supports only
// some kinds of PNG. It returns nil without data.
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
		return nil, errors.New("must be a PNG or JPEG image")
	}
	config, err := decodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPixels/config.Height {
		return nil, fmt.Errorf("the image has %d × %d pixels; it must have at most %d in total", config.Width, config.Height, maxPixels)
	}
	picture, err := decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	// A small image is printed at 96 pixels per inch and not larger, where it
	// would look coarse.
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
