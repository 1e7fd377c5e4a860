package capacity

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	plain   = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
	counted = "POST /x HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  5 \r\n\r\nGET /\n"
	chunks  = "POST /fe/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	both    = "POST /fe/x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTRANSFER-encoding: chunked\r\n\r\n0\r\n\r\n"
	inBody  = "POST /x HTTP/1.1\r\nContent-Length: 54\r\n\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	inValue = "GET / HTTP/1.1\r\nX-A: " + "Content-Length: 6" + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	odd     = "POST / HTTP/1.1\r\nContent-Length: 0x5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	bare    = "POST / HTTP/1.1\nContent-Length: 6\nTransfer-Encoding: chunked\n\n0\r\n\r\n"
)

// The result must not depend on how the bytes are divided into reads.
func TestLengthWithChunksIsFoundInEveryRequest(t *testing.T) {
	t.Parallel()
	long := "X-Long: " + strings.Repeat("a", 5000) + "\r\n"
	tests := []struct {
		name, text string
		want       bool
	}{
		{"chunks alone", chunks, false},
		{"both", both, true},
		{"both after other requests", plain + strings.TrimSuffix(counted, "\n") + plain + both, true},
		{"chunks after other requests", plain + strings.TrimSuffix(counted, "\n") + plain + chunks, false},
		{"the names in a body", inBody + chunks, false},
		{"one name in a value", inValue, false},
		{"a length that is no number", odd, true},
		{"lines without a carriage return", bare, true},
		{"empty lines before a request", plain + "\r\n\r\n" + both, true},
		{"a long line before", strings.Replace(both, "Host: a\r\n", long, 1), true},
		{"a long line between", strings.Replace(both, "TRANSFER", long+"TRANSFER", 1), true},
		{"both in the request after the last one", chunks + both, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				var f framing
				for rest := tt.text; rest != ""; {
					n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
					f.read([]byte(rest[:n]))
					rest = rest[n:]
				}
				if f.both != tt.want {
					t.Errorf("both is %v", f.both)
				}
			})
		})
	}
}
