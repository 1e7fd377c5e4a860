package console

import (
	"fmt"
	"html/template"
	"strings"

	"rsc.io/qr"
)

// qrCode returns a QR code as a picture, black on white in every theme.
func qrCode(text, label string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", fmt.Errorf("console: QR code: %w", err)
	}
	const quiet = 4 // modules around the code, which a reader needs
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	size := code.Size + 2*quiet
	return template.HTML(fmt.Sprintf(`<svg class="qr" viewBox="0 0 %[1]d %[1]d" role="img" aria-label="%[2]s" shape-rendering="crispEdges">`+ //nolint:gosec // escaped
		`<rect width="%[1]d" height="%[1]d" fill="#fff"/><path fill="#000" d="%[3]s"/></svg>`, size, template.HTMLEscapeString(label), path.String())), nil
}
