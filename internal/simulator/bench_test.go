package simulator_test

import (
	"net/http"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// BenchmarkReception posts signed invoices over HTTP, one after another.
func BenchmarkReception(b *testing.B) {
	for _, lean := range []bool{false, true} {
		name := "full"
		if lean {
			name = "lean"
		}
		b.Run(name, func(b *testing.B) {
			e := newEnv(b, func(o *simulator.Options) { o.Config.Lean = lean }).login()
			raws := make([][]byte, b.N)
			for n := range raws {
				raws[n] = e.sign(invoice, encf31(n+1))
			}
			b.ResetTimer()
			for n, raw := range raws {
				if a := e.upload(reception, issuer+encf31(n+1)+".xml", raw); a.status != http.StatusOK {
					b.Fatal(a.status, a.body)
				}
			}
		})
	}
}
