package printed

import (
	"fmt"
	"testing"
)

// BenchmarkRender measures the printing of a whole document.
func BenchmarkRender(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n, " lines"), func(b *testing.B) {
			p := fullPage(b, shopLines(b, n)...)
			p.Logo = nil
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Render(Letter); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
