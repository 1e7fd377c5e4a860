package xmlsig

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The text is normalized as XML 1.0 describes it in sections 2.11 and 3.3.3.
func TestLineEndsAndSpacesAreNormalized(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("a\r\n\t ñ"))).Draw(t, "text")
		lines := strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
		if got := normalizeLines(s); got != lines {
			t.Errorf("lines of %q: %q, want %q", s, got, lines)
		}
		spaces := strings.NewReplacer("\n", " ", "\t", " ").Replace(lines)
		if got := normalizeSpaces(s); got != spaces {
			t.Errorf("spaces of %q: %q, want %q", s, got, spaces)
		}
	})
}
