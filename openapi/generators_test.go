package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Sets of values that may grow are open, so that a generated client accepts a value that
// was added later: every set of event kinds, and the codes of details.
func TestSetsThatMayGrowAreOpen(t *testing.T) {
	t.Parallel()
	doc := tree(t, asJSON(t, source))
	kinds := texts(schemaOf(doc, "EventKind")["x-extensible-enum"])
	details := texts(schemaOf(doc, "DetailCode")["x-extensible-enum"])
	if len(kinds) < 20 || len(details) < 30 {
		t.Fatalf("%d kinds of events and %d detail codes are listed", len(kinds), len(details))
	}
	visit(doc, "", func(at string, o object) {
		for _, value := range texts(o["enum"]) {
			if slices.Contains(kinds, value) {
				t.Errorf("%s is a closed set with the kind of event %s", at, value)
			}
		}
		if values := texts(o["enum"]); len(values) > 1 && slices.Contains(details, values[0]) {
			t.Errorf("%s is a closed set of detail codes", at)
		}
		if o["enum"] != nil && o["x-extensible-enum"] != nil {
			t.Errorf("%s is closed and open", at)
		}
	})
	// An event of a kind that is not listed is an event of the feed.
	forms := references(dig(schemaOf(doc, "EventFeed"), "properties", "data", "items")["anyOf"])
	if last := forms[len(forms)-1]; last != "#/components/schemas/EventEnvelope" {
		t.Errorf("the last form of an event in the feed is %s, want one that every event has", last)
	}
}

// Generators make names of the language from the names of the document. Two names that
// become the same name give code that does not compile.
func TestNamesStayUniqueInGeneratedCode(t *testing.T) {
	t.Parallel()
	doc := tree(t, asJSON(t, source))
	seen := map[string]string{}
	add := func(kind, name string) {
		camel := goName(name)
		if before, ok := seen[camel]; ok {
			t.Errorf("%s %s and %s become the same name %s", kind, name, before, camel)
		}
		seen[camel] = kind + " " + name
	}
	for _, kind := range []string{"schemas", "parameters", "responses"} {
		for _, name := range slices.Sorted(maps.Keys(dig(doc, "components", kind))) {
			add(kind, name)
		}
	}
	visit(doc, "", func(at string, o object) {
		members := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(get(o, "properties"))) {
			camel := goName(name)
			if members[camel] != "" {
				t.Errorf("%s: the members %s and %s become %s", at, name, members[camel], camel)
			}
			members[camel] = name
		}
	})
}

// oapi-codegen leaves out the schemas and parameters that no path refers to, and then
// makes types of webhooks that use them.
func TestPathsUseEveryComponentOfWebhooks(t *testing.T) {
	t.Parallel()
	doc := tree(t, asJSON(t, source))
	used := map[string]bool{}
	collect(doc, get(doc, "paths"), used)
	ofWebhooks := map[string]bool{}
	collect(doc, get(doc, "webhooks"), ofWebhooks)
	for ref := range ofWebhooks {
		if !used[ref] && !strings.HasPrefix(ref, "#/components/responses/") && !strings.HasPrefix(ref, "#/components/examples/") {
			t.Errorf("only webhooks use %s; write it where it is used", ref)
		}
	}
}

// collect adds the references of a value, and those of their targets.
func collect(doc object, v any, found map[string]bool) {
	visit(v, "", func(_ string, o object) {
		ref, ok := o["$ref"].(string)
		if !ok || found[ref] {
			return
		}
		found[ref] = true
		collect(doc, resolve(doc, object{"$ref": ref}), found)
	})
}

// goName joins the words of a name as generators of Go do.
func goName(name string) string {
	var out strings.Builder
	up := true
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
		}
		up = false
		out.WriteRune(r)
	}
	return out.String()
}

// visit calls fn for every object of a value, with its path.
func visit(v any, at string, fn func(at string, o object)) {
	switch v := v.(type) {
	case object:
		fn(at, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			visit(v[name], at+"/"+name, fn)
		}
	case []any:
		for i, item := range v {
			visit(item, fmt.Sprintf("%s/%d", at, i), fn)
		}
	}
}

// references returns the references of a list of schemas.
func references(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		ref, _ := item.(object)["$ref"].(string)
		out = append(out, ref)
	}
	return out
}
