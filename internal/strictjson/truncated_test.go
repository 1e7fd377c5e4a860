package strictjson_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// list returns n texts, each made from its number.
func list(n int, text func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = text(i)
	}
	return strings.Join(all, ",")
}

func item(value string) func(int) string { return func(int) string { return value } }
func named(i int) string                 { return `"m` + strconv.Itoa(i) + `":[1,{"a":2}]` }

// visit walks over all values that a document shows and counts them.
func visit(n strictjson.Node) int {
	count := 1
	for _, v := range n.Items() {
		count += visit(v)
	}
	for _, v := range n.Members() {
		count += visit(v)
	}
	return count
}

func TestLargeDocumentsAreTruncated(t *testing.T) {
	t.Parallel()
	thousand := "[" + list(1000, item("1")) + "]"
	tests := []struct {
		name, body string
		length     int // of the root
		truncated  bool
	}{
		{"as many members as are kept", "{" + list(strictjson.MaxMembers, named) + "}", strictjson.MaxMembers, false},
		{"one member more", "{" + list(strictjson.MaxMembers+1, named) + "}", strictjson.MaxMembers + 1, true},
		{"as many items as are kept", "[" + list(strictjson.MaxItems, item(`{"a":[]}`)) + "]", strictjson.MaxItems, false},
		{"one item more", "[" + list(strictjson.MaxItems+1, item(`{"a":[]}`)) + "]", strictjson.MaxItems + 1, true},
		{"many short lists", "[" + list(200, item(thousand)) + "]", 200, true},
		{"many members in a deep object", `[{"a":{` + list(5000, named) + `}},7]`, 2, true},
		{"many short objects", "[" + list(1000, item("{"+list(100, named)+"}")) + "]", 1000, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			document, err := strictjson.Parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := document.Root().Len(); got != tt.length || document.Truncated() != tt.truncated {
				t.Errorf("length %d and truncated %v, want %d and %v", got, document.Truncated(), tt.length, tt.truncated)
			}
			if n := visit(document.Root()); n > 128<<10 {
				t.Errorf("the document shows %d values", n)
			}
			// What a truncated document shows is a document, too.
			again, err := strictjson.Parse(document.Canonical())
			if err != nil || again.Truncated() || visit(again.Root()) != visit(document.Root()) {
				t.Errorf("the canonical form shows other values: %v", err)
			}
		})
	}
}

// Parse checks the syntax of the values that it does not keep.
func TestSyntaxOfTruncatedDocumentsIsChecked(t *testing.T) {
	t.Parallel()
	members, items := list(2000, named), list(2000, item("[1]"))
	for name, body := range map[string]string{
		"no end":               "[" + items,
		"a comma at the end":   "{" + members + ",}",
		"text after the value": "[" + items + "] 1",
		"a byte that is no UTF-8 in a skipped value": "[" + items + ",\"\xff\"]",
		"too deep in a skipped value":                "[" + items + "," + strings.Repeat("[", 16) + strings.Repeat("]", 16) + "]",
		"a repeated name in a skipped value":         "[" + items + `,{"a":1,"a":2}]`,
	} {
		_, err := strictjson.Parse([]byte(body))
		var syntax *strictjson.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s: %v, want a *SyntaxError", name, err)
		}
	}
}
