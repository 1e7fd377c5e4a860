package fiscal_test

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const maxBody = 1 << 20

// fill repeats an item between two texts until the body has the largest size. The
// item may contain #, which becomes its number.
func fill(before, item, separator, after string) []byte {
	var b strings.Builder
	b.WriteString(before)
	for i := 0; ; i++ {
		next := strings.ReplaceAll(item, "#", strconv.Itoa(i))
		if i > 0 {
			next = separator + next
		}
		if b.Len()+len(next)+len(after) > maxBody {
			break
		}
		b.WriteString(next)
	}
	b.WriteString(after)
	return []byte(b.String())
}

// hostileBodies are bodies of the largest size whose shape needs much memory.
func hostileBodies() map[string][]byte {
	tax := `{"code":"ITBIS","label":"x","rate_percent":"18"}`
	line := `{"line_id":"1","description":"d","item_kind":"product","quantity":"1","unit_price":"1","discount":null,"taxes":[` +
		strings.Repeat(tax+",", 11) + tax + `]}`
	return map[string][]byte{
		"lines that are numbers":         fill(`{"lines":[`, `1`, `,`, `]}`),
		"lines that are arrays":          fill(`{"lines":[`, `[[[1,1,1]]]`, `,`, `]}`),
		"lines that are empty objects":   fill(`{"lines":[`, `{}`, `,`, `]}`),
		"strings with escapes":           fill(`{"lines":[`, `"\n"`, `,`, `]}`),
		"one string of escapes":          fill(`{"notes":"`, `\u0041`, ``, `"}`),
		"unknown members":                fill(`{`, `"member#":1`, `,`, `}`),
		"unknown members with escapes":   fill(`{`, `"\n#":1`, `,`, `}`),
		"unknown members in many lines":  fill(`{"lines":[`, `{"a":1,"b":2,"c":3}`, `,`, `]}`),
		"lists below the limit of items": fill(`{"lines":[`, `[`+strings.Repeat("1,", 1000)+`1]`, `,`, `]}`),
		"taxes that are numbers":         fill(`{"lines":[{"taxes":[`, `1`, `,`, `]}]}`),
		"a name of a megabyte":           fill(`{"`, `a`, ``, `":1}`),
		"complete lines":                 fill(`{"lines":[`, line, `,`, `]}`),
	}
}

// allocated returns how many bytes a function allocates. Tests that use it are not
// parallel.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A creation may take 8 MiB, of which its body takes one.
func TestEveryBodyIsJudgedInEightMiB(t *testing.T) {
	for name, body := range hostileBodies() {
		var problems fiscal.Problems
		took := allocated(func() {
			document, err := strictjson.Parse(body)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			document.Canonical()
			_, err = fiscal.New(fiscal.DecodeRequest(document))
			if !errors.As(err, &problems) {
				t.Errorf("%s: accepted: %v", name, err)
			}
		})
		if took > 7<<20 {
			t.Errorf("%s: %.1f MiB, want at most 7", name, float64(took)/(1<<20))
		}
		if len(problems) > 101 {
			t.Errorf("%s: %d problems, want at most 100 and one that says so", name, len(problems))
		}
	}
}
