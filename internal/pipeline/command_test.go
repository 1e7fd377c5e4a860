package pipeline

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// A request has the same digests whether they are computed apart or not, and a refused
// request has them too.
func TestDigestsOfLargeAndSmallRequests(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, digestApart - 100, digestApart, 4 * digestApart} {
		note := strings.Repeat("x", size)
		sorted := fmt.Sprintf(`{"a":1,"note":"%s"}`, note)
		for _, text := range []string{sorted, fmt.Sprintf(`{ "note": "%s", "a": 1.0 }`, note)} {
			document, err := strictjson.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			c, err := NewCommand([]byte(text), document, "reject")
			if err == nil {
				t.Error("a text that is no invoice is accepted")
			}
			if want := sha256.Sum256([]byte(text)); !bytes.Equal(c.RawDigest, want[:]) {
				t.Errorf("%d bytes: the digest of the request is wrong", size)
			}
			if want := sha256.Sum256([]byte(sorted + "\x00reject")); !bytes.Equal(c.Fingerprint, want[:]) {
				t.Errorf("%d bytes: the digest of the canonical request is wrong", size)
			}
		}
	}
}
