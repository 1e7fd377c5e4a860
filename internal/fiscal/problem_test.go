package fiscal

import (
	"slices"
	"testing"
)

func TestPathsAreInOrder(t *testing.T) {
	t.Parallel()
	want := []string{"", "0", "2", "10", "1a", "9a", "a", "a.b", "lines", "lines.2", "lines.2.taxes", "lines.2.taxes.0.code", "lines.2.taxes.10.code", "lines.10.quantity", "lines.x", "lines2"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, comparePaths)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
