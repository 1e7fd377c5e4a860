package fence

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// A statement about one range says nothing about a later one of the same type.
func TestStatedNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		stated      []string
		first, last int64
		highest     int64
		ok          bool
	}{
		{"nothing", nil, 1, 100, 0, false},
		{"another type", []string{"E320000000005"}, 1, 100, 0, false},
		{"a number of the range", []string{"E310000000005"}, 1, 100, 5, true},
		{"two numbers of the range", []string{"E310000000007", "E310000000005"}, 1, 100, 7, true},
		{"none of the type", []string{"E310000000000"}, 101, 200, 0, true},
		{"the number before the first one", []string{"E310000000100"}, 101, 200, 0, true},
		{"a number of an earlier range", []string{"E310000000005"}, 101, 200, 0, false},
		{"a number of a later range", []string{"E310000000150"}, 1, 100, 100, true},
		{"numbers of both ranges", []string{"E310000000150", "E310000000005"}, 1, 100, 5, true},
		{"numbers of both ranges, the lower first", []string{"E310000000005", "E310000000150"}, 1, 100, 5, true},
	} {
		var all []Stated
		for _, text := range tt.stated {
			one, ok := ParseStated(text)
			if !ok {
				t.Fatalf("%s is not read", text)
			}
			all = append(all, one)
		}
		highest, ok := statedOf(all, store.NumberRange{Type: fiscal.FiscalCredit, First: tt.first, Last: tt.last})
		if highest != tt.highest || ok != tt.ok {
			t.Errorf("%s: %d, %t; want %d, %t", tt.name, highest, ok, tt.highest, tt.ok)
		}
	}
	for _, text := range []string{"", "12", "E3100000001", "E990000000001", "e310000000001", "E31000000000x"} {
		if one, ok := ParseStated(text); ok {
			t.Errorf("%q is read as %+v", text, one)
		}
	}
}
