package strictjson_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

func TestParseRefusesAmbiguousBodies(t *testing.T) {
	t.Parallel()
	utf16le := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(`{"a":1}`)) {
		utf16le = append(utf16le, byte(u), byte(u>>8))
	}
	tests := []struct {
		name, body, reason string
		offset             int64
	}{
		{"nothing at all", "", "empty", 0},
		{"white space only", " \t\r\n", "empty", 4},
		{"a byte order mark", "\xef\xbb\xbf{}", "byte order mark", 0},
		{"UTF-16", string(utf16le), "invalid", 0},
		{"a letter after the value", `{}x`, "invalid", 2},
		{"two values", `{} {}`, "more text", 3},
		{"two numbers", `1 2`, "more text", 2},
		{"a closing bracket after the value", `{}]`, "invalid", 2},
		{"a trailing comma in an array", `[1,]`, "invalid", 2},
		{"a trailing comma in an object", `{"a":1,}`, "invalid", 6},
		{"a comment", `{/* */}`, "invalid", 1},
		{"NaN", `{"a":NaN}`, "invalid", 5},
		{"an unfinished object", `{"a":1`, "ends too early", 6},
		{"an unfinished string", `"abc`, "ends too early", 4},
		{"single quotes", `{'a':1}`, "invalid", 1},
		{"a leading zero", `[01]`, "invalid", 2},
		{"a plus sign", `[+1]`, "invalid", 1},
		{"a colon for a comma", `[1:2]`, "invalid", 2},
		{"a name without a value", `{"a"}`, "invalid", 4},
		{"a repeated member at the top", `{"a":1,"b":2,"a":3}`, `"a" occurs twice`, 13},
		{"a repeated member deep inside", `{"lines":[0,1,2,{"taxes":[{"code":1,"code":2}]}]}`, `"code" occurs twice in one object within "/lines/3/taxes/0"`, 36},
		{"a repeated member in disguise", `{"a":1,"\u0061":2}`, `"a" occurs twice`, 7},
		{"a byte that is not UTF-8", "[\"\xff\"]", "UTF-8", 2},
		{"an overlong encoding", "[\"\xc0\xaf\"]", "UTF-8", 2},
		{"an encoded surrogate", "[\"\xed\xa0\x80\"]", "UTF-8", 2},
		{"a lone high surrogate escape", `["\ud800"]`, "surrogate", 2},
		{"a lone low surrogate escape", `["\udc00x"]`, "surrogate", 2},
		{"a raw control character in a string", "[\"\x01\"]", "invalid", 2},
		{"seventeen levels", strings.Repeat("[", 17) + strings.Repeat("]", 17), "deeper", 16},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, err := strictjson.Parse([]byte(tt.body))
			var syntax *strictjson.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("Parse(%q) = %v, %v; want a *SyntaxError", tt.body, doc, err)
			}
			if !strings.Contains(syntax.Reason.String(), tt.reason) || syntax.Offset != tt.offset {
				t.Errorf("Parse(%q): %v, want %q at %d", tt.body, err, tt.reason, tt.offset)
			}
			if strings.ContainsAny(err.Error(), "\r\n") || strings.Contains(err.Error(), "jsontext") {
				t.Errorf("message %q has a line break or the name of the library", err)
			}
		})
	}
}

func TestParseNeverEchoesLongValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 500)
	for _, body := range []string{
		`{"` + long + `":1,"` + long + `":2}`,
		`{"` + long + `":[1,}`,
		`{"` + long + `":{"` + long + `":1,"` + long + `":2}}`,
	} {
		_, err := strictjson.Parse([]byte(body))
		if err == nil {
			t.Fatal("a broken body was accepted")
		}
		if strings.Contains(err.Error(), strings.Repeat("é", 65)) || !utf8.ValidString(err.Error()) {
			t.Errorf("message repeats too much: %q", err)
		}
	}
}

// This test is not parallel, because it measures allocations: a parser that follows the
// brackets makes one for each.
func TestManyBracketsAreRefusedAtOnce(t *testing.T) {
	body := []byte(strings.Repeat("[", 100_000))
	if _, err := strictjson.Parse(body); err == nil {
		t.Fatal("100,000 brackets were accepted")
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = strictjson.Parse(body) }); n > 20 {
		t.Errorf("refusing 100,000 brackets made %v allocations", n)
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`null`, `true`, ` false `, `0`, `-0`, `1e400`, `""`, `"\ud83d\ude00"`, `[]`, `{}`, "\n{\t}\r ",
		strings.Repeat("[", 16) + strings.Repeat("]", 16),
		`{"a":1,"A":2,"":3," ":4}`,
	} {
		if _, err := strictjson.Parse([]byte(body)); err != nil {
			t.Errorf("Parse(%s): %v", body, err)
		}
	}
}

// plain converts a node to Go values, so that trees can be compared.
func plain(n strictjson.Node) any {
	switch n.Kind() {
	case strictjson.Array:
		list := []any{}
		for i, item := range n.Items() {
			if i != len(list) {
				return "wrong index"
			}
			list = append(list, plain(item))
		}
		return list
	case strictjson.Object:
		m := map[string]any{}
		for name, v := range n.Members() {
			m[name] = plain(v)
		}
		return m
	case strictjson.String:
		return "s:" + n.Text()
	default:
		return n.Kind().String() + ":" + n.Text()
	}
}

func TestNodesAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	doc, err := strictjson.Parse([]byte(` { "a" : [ 1 , [ ] , { } , "x\ny" ] ,"\u0062":{"c":null,"d":{"e":true}}, "": -1.50 } `))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": []any{"number:1", []any{}, map[string]any{}, "s:x\ny"},
		"b": map[string]any{"c": "null:null", "d": map[string]any{"e": "boolean:true"}},
		"":  "number:-1.50",
	}
	if diff := cmp.Diff(want, plain(doc.Root())); diff != "" {
		t.Errorf("tree differs (-want +got):\n%s", diff)
	}
	if got := doc.Root().Len(); got != 3 {
		t.Errorf("the root has %d members, want 3", got)
	}
	for name, v := range doc.Root().Members() {
		if name == "a" {
			if got := v.Text(); got != `[ 1 , [ ] , { } , "x\ny" ]` || v.Len() != 4 {
				t.Errorf("a is %s with %d elements", got, v.Len())
			}
			for range v.Items() {
				break // the loop may end early
			}
			for range v.Members() {
				t.Error("an array has members")
			}
			break
		}
	}
	for range doc.Root().Items() {
		t.Error("an object has elements")
	}
}
