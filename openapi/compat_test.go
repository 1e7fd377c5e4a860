package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestNoBreakingChange compares the document with the last released one. A
// breaking change needs a new path prefix, not a new baseline.
//
// Only a release replaces the baseline:
//
//	cp openapi/openapi.yaml openapi/released.yaml
//
// in the commit that sets the version and adds its entry to the changelog.
func TestNoBreakingChange(t *testing.T) {
	t.Parallel()
	released, err := os.ReadFile("released.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range breaking(tree(t, asJSON(t, released)), tree(t, asJSON(t, source))) {
		t.Error(change)
	}
}

type object = map[string]any

// comparison compares two documents, item by item of the older one.
type comparison struct {
	old, new object
	changes  []string
}

// breaking lists the changes that would break a client of the older document.
func breaking(old, new object) []string {
	c := &comparison{old: old, new: new}
	c.items("path", get(old, "paths"), get(new, "paths"), c.operation)
	c.items("webhook", get(old, "webhooks"), get(new, "webhooks"), c.webhook)
	return c.changes
}

func (c *comparison) report(format string, args ...any) {
	c.changes = append(c.changes, fmt.Sprintf(format, args...))
}

func (c *comparison) items(kind string, old, new object, each func(at string, oldItem, newItem, old, new object)) {
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if new[name] == nil {
			c.report("%s %s: removed", kind, name)
			continue
		}
		oldItem, newItem := get(old, name), get(new, name)
		for _, method := range []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"} {
			if oldItem[method] == nil {
				continue
			}
			at := method + " " + name
			if newItem[method] == nil {
				c.report("%s: operation removed", at)
				continue
			}
			each(at, oldItem, newItem, get(oldItem, method), get(newItem, method))
		}
	}
}

// operation compares an operation that the client calls. It must not require more
// from the client, and must not return less.
func (c *comparison) operation(at string, oldItem, newItem, old, new object) {
	c.parameters(at, c.params(c.old, oldItem, old), c.params(c.new, newItem, new))
	oldBody, newBody := resolve(c.old, get(old, "requestBody")), resolve(c.new, get(new, "requestBody"))
	if newBody["required"] == true && oldBody["required"] != true {
		c.report("%s: request body is now required", at)
	}
	c.content(at+" request", get(oldBody, "content"), get(newBody, "content"), true)
	oldAnswers, newAnswers := get(old, "responses"), get(new, "responses")
	for _, status := range slices.Sorted(maps.Keys(oldAnswers)) {
		if newAnswers[status] == nil {
			// An error that no longer happens breaks no client.
			if status < "400" {
				c.report("%s: success status %s removed", at, status)
			}
			continue
		}
		c.response(at+" "+status, resolve(c.old, get(oldAnswers, status)), resolve(c.new, get(newAnswers, status)))
	}
}

// webhook compares a request that the client serves. The client reads its body.
func (c *comparison) webhook(at string, _, _, old, new object) {
	oldBody, newBody := resolve(c.old, get(old, "requestBody")), resolve(c.new, get(new, "requestBody"))
	c.content(at, get(oldBody, "content"), get(newBody, "content"), false)
}

func (c *comparison) params(doc, item, op object) object {
	out := object{}
	for _, list := range []any{item["parameters"], op["parameters"]} {
		entries, _ := list.([]any)
		for _, entry := range entries {
			p := resolve(doc, entry.(object))
			out[fmt.Sprintf("%s parameter %s", p["in"], p["name"])] = p
		}
	}
	return out
}

func (c *comparison) parameters(at string, old, new object) {
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if new[name] == nil {
			c.report("%s: %s removed", at, name)
			continue
		}
		c.schema(at+" "+name, get(get(old, name), "schema"), get(get(new, name), "schema"), true)
	}
	for _, name := range slices.Sorted(maps.Keys(new)) {
		if get(new, name)["required"] == true && get(old, name)["required"] != true {
			c.report("%s: %s is now required", at, name)
		}
	}
}

func (c *comparison) response(at string, old, new object) {
	for _, name := range slices.Sorted(maps.Keys(get(old, "headers"))) {
		if get(new, "headers")[name] == nil {
			c.report("%s: header %s removed", at, name)
			continue
		}
		oldHeader := resolve(c.old, get(get(old, "headers"), name))
		newHeader := resolve(c.new, get(get(new, "headers"), name))
		if oldHeader["required"] == true && newHeader["required"] != true {
			c.report("%s: header %s is no longer required", at, name)
		}
		c.schema(at+" header "+name, get(oldHeader, "schema"), get(newHeader, "schema"), false)
	}
	c.content(at, get(old, "content"), get(new, "content"), false)
}

func (c *comparison) content(at string, old, new object, request bool) {
	for _, mediaType := range slices.Sorted(maps.Keys(old)) {
		if new[mediaType] == nil {
			c.report("%s: media type %s removed", at, mediaType)
			continue
		}
		c.schema(at, get(get(old, mediaType), "schema"), get(get(new, mediaType), "schema"), request)
	}
}

func (c *comparison) schema(at string, old, new object, request bool) {
	oldRef, _ := old["$ref"].(string)
	old, new = resolve(c.old, old), resolve(c.new, new)
	if !reflect.DeepEqual(types(old), types(new)) {
		c.report("%s: type %v became %v", at, types(old), types(new))
	}
	for _, keyword := range []string{"const", "pattern", "format", "multipleOf", "not"} {
		if !reflect.DeepEqual(old[keyword], new[keyword]) {
			c.report("%s: %s %v became %v", at, keyword, old[keyword], new[keyword])
		}
	}
	c.limits(at, old, new)
	c.enum(at, old, new, strings.HasSuffix(oldRef, "/Status") || strings.HasSuffix(oldRef, "/ErrorCode"))
	c.members(at, old, new, request)
	if old["items"] != nil || new["items"] != nil {
		c.schema(at+"[]", get(old, "items"), get(new, "items"), request)
	}
	for _, keyword := range []string{"allOf", "oneOf", "anyOf"} {
		oldParts, _ := old[keyword].([]any)
		newParts, _ := new[keyword].([]any)
		// A new kind of event is a new form of an event in the feed.
		added := keyword == "anyOf" && !request && len(newParts) > len(oldParts)
		if len(oldParts) != len(newParts) && !added {
			c.report("%s: %s of %d became %d", at, keyword, len(oldParts), len(newParts))
			continue
		}
		for i := range oldParts {
			c.schema(at, oldParts[i].(object), newParts[i].(object), request)
		}
	}
}

// limits reports tighter limits in requests and answers, because both use the same
// schemas.
func (c *comparison) limits(at string, old, new object) {
	for keyword, tighter := range map[string]int{
		"maxLength": -1, "maxItems": -1, "maximum": -1, "maxProperties": -1, "exclusiveMaximum": -1,
		"minLength": 1, "minItems": 1, "minimum": 1, "minProperties": 1, "exclusiveMinimum": 1,
	} {
		after, limited := new[keyword].(float64)
		before, wasLimited := old[keyword].(float64)
		if limited && (!wasLimited || cmp.Compare(after, before) == tighter) {
			c.report("%s: %s %v became %v", at, keyword, old[keyword], after)
		}
	}
	if new["uniqueItems"] == true && old["uniqueItems"] != true {
		c.report("%s: items must now be unique", at)
	}
}

// enum allows new values, except in the closed sets: status and error code. A set may
// become open (x-extensible-enum), but an open set must not become closed.
func (c *comparison) enum(at string, old, new object, closed bool) {
	before, wasListed := old["enum"].([]any)
	after, listed := new["enum"].([]any)
	if open, ok := new["x-extensible-enum"].([]any); ok && !closed {
		after = open
	}
	if open, ok := old["x-extensible-enum"].([]any); ok {
		before = open
	}
	if listed && !wasListed {
		c.report("%s: restricted to %v", at, after)
		return
	}
	for _, value := range before {
		if !slices.Contains(after, value) {
			c.report("%s: value %v removed", at, value)
		}
	}
	for _, value := range after {
		if closed && !slices.Contains(before, value) {
			c.report("%s: value %v added to a closed set", at, value)
		}
	}
}

func (c *comparison) members(at string, old, new object, request bool) {
	before, after := get(old, "properties"), get(new, "properties")
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == nil {
			c.report("%s.%s: removed", at, name)
			continue
		}
		c.schema(at+"."+name, get(before, name), get(after, name), request)
	}
	required, wasRequired := texts(new["required"]), texts(old["required"])
	if !request { // an answer may have more required members, not fewer
		required, wasRequired = wasRequired, required
	}
	for _, name := range required {
		if !slices.Contains(wasRequired, name) {
			c.report("%s.%s: whether it is required changed", at, name)
		}
	}
	if new["additionalProperties"] == false && old["additionalProperties"] != false {
		c.report("%s: other members are now refused", at)
	}
}

func get(o object, name string) object {
	member, _ := o[name].(object)
	return member
}

// resolve follows a reference. Members beside the reference, which 3.1 allows,
// replace the members of its target.
func resolve(doc, o object) object {
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	target := doc
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		target = get(target, name)
	}
	merged := maps.Clone(resolve(doc, target))
	for name, value := range o {
		if name != "$ref" {
			merged[name] = value
		}
	}
	return merged
}

func types(schema object) []string {
	if one, ok := schema["type"].(string); ok {
		return []string{one}
	}
	return slices.Sorted(slices.Values(texts(schema["type"])))
}

func texts(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// clone returns a deep copy that a test may change.
func clone(t *testing.T, doc object) object {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return tree(t, text)
}
