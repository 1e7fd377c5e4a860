package openapi

import (
	"slices"
	"strings"
	"testing"
)

const (
	invoicesPath = "/v1/taxpayers/{taxpayer_id}/invoices"
	xmlPath      = "/v1/taxpayers/{taxpayer_id}/fiscal-documents/{document_id}/xml"
)

// dig returns the object at a path of the document.
func dig(doc object, names ...string) object {
	for _, name := range names {
		doc = get(doc, name)
	}
	return doc
}

func schemaOf(doc object, name string) object {
	return dig(doc, "components", "schemas", name)
}

func member(doc object, schema, name string) object {
	return dig(schemaOf(doc, schema), "properties", name)
}

func add(o object, name string, value any) {
	list, _ := o[name].([]any)
	o[name] = append(slices.Clone(list), value)
}

func drop(o object, name string, value any) {
	o[name] = slices.DeleteFunc(slices.Clone(o[name].([]any)), func(v any) bool { return v == value })
}

func listParameter(doc object, name string) object {
	for _, p := range dig(doc, "paths", invoicesPath, "get")["parameters"].([]any) {
		if p.(object)["name"] == name {
			return p.(object)
		}
	}
	return nil
}

func TestBreakingReportsEachKindOfBreakingChange(t *testing.T) {
	t.Parallel()
	released := tree(t, asJSON(t, source))
	cases := map[string]struct {
		change func(doc object)
		want   string
	}{
		"path removed":      {func(d object) { delete(dig(d, "paths"), xmlPath) }, "path " + xmlPath + ": removed"},
		"operation removed": {func(d object) { delete(dig(d, "paths", invoicesPath), "get") }, "operation removed"},
		"webhook removed":   {func(d object) { delete(dig(d, "webhooks"), "fiscalEvent") }, "webhook fiscalEvent: removed"},
		"parameter removed": {func(d object) {
			op := dig(d, "paths", invoicesPath, "get")
			op["parameters"] = op["parameters"].([]any)[1:]
		}, "query parameter external_id removed"},
		"parameter now required": {func(d object) { listParameter(d, "status")["required"] = true }, "query parameter status is now required"},
		"new required parameter": {func(d object) {
			add(dig(d, "paths", invoicesPath, "get"), "parameters", object{"name": "year", "in": "query", "required": true})
		}, "query parameter year is now required"},
		"parameter type":         {func(d object) { dig(listParameter(d, "limit"), "schema")["type"] = "string" }, "type [integer] became [string]"},
		"parameter limit":        {func(d object) { dig(listParameter(d, "limit"), "schema")["maximum"] = 50.0 }, "maximum 100 became 50"},
		"success status removed": {func(d object) { delete(dig(d, "paths", xmlPath, "get", "responses"), "304") }, "success status 304 removed"},
		"response header removed": {func(d object) {
			delete(dig(d, "paths", invoicesPath, "post", "responses", "202", "headers"), "Location")
		}, "header Location removed"},
		"response header optional": {func(d object) { delete(dig(d, "components", "headers", "RequestId"), "required") }, "header X-Request-Id is no longer required"},
		"media type removed": {func(d object) {
			delete(dig(d, "paths", xmlPath, "get", "responses", "200", "content"), "application/xml")
		}, "media type application/xml removed"},
		"response field removed":  {func(d object) { delete(dig(schemaOf(d, "Invoice"), "properties"), "updated_at") }, ".data.updated_at: removed"},
		"response field optional": {func(d object) { drop(schemaOf(d, "FiscalDocument"), "required", "encf") }, ".data.encf: whether it is required changed"},
		"event field removed":     {func(d object) { delete(dig(schemaOf(d, "FiscalEventData"), "properties"), "sequence") }, "post fiscalEvent.data.sequence: removed"},
		"request field removed":   {func(d object) { delete(dig(schemaOf(d, "Line"), "properties"), "sku") }, ".lines[].sku: removed"},
		"request field required":  {func(d object) { add(schemaOf(d, "InvoiceRequest"), "required", "language") }, "request.language: whether it is required changed"},
		"new required request field": {func(d object) {
			dig(schemaOf(d, "Buyer"), "properties")["segment"] = object{"type": "string"}
			add(schemaOf(d, "Buyer"), "required", "segment")
		}, ".buyer.segment: whether it is required changed"},
		"field type":              {func(d object) { member(d, "Line", "billing_indicator")["type"] = "string" }, "type [number] became [string]"},
		"null no longer accepted": {func(d object) { member(d, "InvoiceRequest", "due_date")["type"] = "string" }, "type [null string] became [string]"},
		"null newly returned":     {func(d object) { schemaOf(d, "Timestamp")["type"] = []any{"string", "null"} }, "type [string] became [null string]"},
		"null dropped": {func(d object) {
			discount := member(d, "Line", "discount")
			discount["oneOf"] = discount["oneOf"].([]any)[:1]
		}, "oneOf of 2 became 1"},
		"status added":          {func(d object) { add(schemaOf(d, "Status"), "enum", "cancelled") }, "value cancelled added to a closed set"},
		"status removed":        {func(d object) { drop(schemaOf(d, "Status"), "enum", "delivered") }, "value delivered removed"},
		"error code added":      {func(d object) { add(schemaOf(d, "ErrorCode"), "enum", "gone") }, "value gone added to a closed set"},
		"error code removed":    {func(d object) { drop(schemaOf(d, "ErrorCode"), "enum", "forbidden") }, "value forbidden removed"},
		"request value removed": {func(d object) { drop(member(d, "InvoiceRequest", "payment_type"), "enum", "credit") }, "value credit removed"},
		"open set closed": {func(d object) {
			code := schemaOf(d, "DetailCode")
			code["enum"] = code["x-extensible-enum"]
			delete(code, "x-extensible-enum")
		}, "restricted to [required"},
		"open value removed":      {func(d object) { drop(schemaOf(d, "DetailCode"), "x-extensible-enum", "blank") }, "value blank removed"},
		"newly restricted":        {func(d object) { member(d, "Tax", "code")["enum"] = []any{"ITBIS"} }, "restricted to [ITBIS]"},
		"maxLength lowered":       {func(d object) { schemaOf(d, "ExternalId")["maxLength"] = 100.0 }, "maxLength 200 became 100"},
		"maxLength introduced":    {func(d object) { member(d, "Buyer", "tax_id")["maxLength"] = 9.0 }, "maxLength <nil> became 9"},
		"minLength raised":        {func(d object) { member(d, "Buyer", "phone")["minLength"] = 7.0 }, "minLength 5 became 7"},
		"maxItems lowered":        {func(d object) { member(d, "InvoiceRequest", "lines")["maxItems"] = 500.0 }, "maxItems 1000 became 500"},
		"minItems introduced":     {func(d object) { member(d, "Line", "taxes")["minItems"] = 1.0 }, "minItems <nil> became 1"},
		"pattern changed":         {func(d object) { schemaOf(d, "Decimal")["pattern"] = "^[0-9]+$" }, "pattern"},
		"constant changed":        {func(d object) { schemaOf(d, "Currency")["const"] = "USD" }, "const DOP became USD"},
		"closed to other members": {func(d object) { schemaOf(d, "Meta")["additionalProperties"] = false }, "other members are now refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := clone(t, released)
			c.change(doc)
			got := strings.Join(breaking(released, doc), "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestBreakingAllowsAdditions(t *testing.T) {
	t.Parallel()
	released := tree(t, asJSON(t, source))
	cases := map[string]func(doc object){
		"nothing":  func(object) {},
		"new path": func(d object) { dig(d, "paths")["/v1/new"] = object{"get": object{}} },
		"new optional parameter": func(d object) {
			add(dig(d, "paths", invoicesPath, "get"), "parameters", object{"name": "year", "in": "query"})
		},
		"new optional member": func(d object) { dig(schemaOf(d, "Buyer"), "properties")["segment"] = object{"type": "string"} },
		"new answer member": func(d object) {
			dig(schemaOf(d, "Invoice"), "properties")["channel"] = object{"type": "string"}
			add(schemaOf(d, "Invoice"), "required", "channel")
		},
		"new header": func(d object) {
			dig(d, "paths", invoicesPath, "post", "responses", "202", "headers")["Sunset"] = object{"schema": object{"type": "string"}}
		},
		"new detail code":   func(d object) { add(schemaOf(d, "DetailCode"), "x-extensible-enum", "invalid_phone") },
		"new kind of event": func(d object) { add(dig(schemaOf(d, "EventFeed"), "properties", "data", "items"), "anyOf", object{}) },
		"set that becomes open": func(d object) {
			kind := member(d, "InboundEvent", "type")
			kind["x-extensible-enum"] = kind["enum"]
			delete(kind, "enum")
		},
		"new error status":          func(d object) { dig(d, "paths", invoicesPath, "get", "responses")["418"] = object{} },
		"looser limit":              func(d object) { member(d, "InvoiceRequest", "notes")["maxLength"] = 4000.0 },
		"limit removed":             func(d object) { delete(member(d, "InvoiceRequest", "notes"), "maxLength") },
		"new request value":         func(d object) { add(member(d, "InvoiceRequest", "language"), "enum", "fr") },
		"member no longer required": func(d object) { drop(schemaOf(d, "Line"), "required", "item_kind") },
		"other description":         func(d object) { dig(d, "info")["description"] = "Other." },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := clone(t, released)
			change(doc)
			for _, got := range breaking(released, doc) {
				t.Error(got)
			}
		})
	}
}
