package fiscal

import (
	"strings"
	"testing"
)

func TestCutKeepsSixtyFourCharacters(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "abc", strings.Repeat("é", 64), strings.Repeat("x", 64)} {
		if cut(s) != s {
			t.Errorf("cut(%q) = %q", s, cut(s))
		}
	}
	for _, s := range []string{strings.Repeat("é", 65), strings.Repeat("x", 1000)} {
		if got := []rune(cut(s)); len(got) != 64 || got[63] != '…' {
			t.Errorf("cut of %d bytes is %q", len(s), string(got))
		}
	}
}
