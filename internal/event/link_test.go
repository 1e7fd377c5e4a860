package event

import "testing"

func TestAbsoluteChangesTheLinkOnly(t *testing.T) {
	t.Parallel()
	const base = "https://invoices.example"
	tests := []struct{ name, body, want string }{
		{"a link", `{"data":{"total":"1.00","links":{"self":"/v1/a"}}}`, `{"data":{"total":"1.00","links":{"self":"https://invoices.example/v1/a"}}}`},
		{"no link", `{"data":{"object":"taxpayer"}}`, `{"data":{"object":"taxpayer"}}`},
		{"an absolute link", `{"links":{"self":"https://a/v1/b"}}`, `{"links":{"self":"https://a/v1/b"}}`},
		{"a string that looks like a link", `{"external_id":"\"links\":{\"self\":\"/v1/","links":{"self":"/v1/a"}}`,
			`{"external_id":"\"links\":{\"self\":\"/v1/","links":{"self":"https://invoices.example/v1/a"}}`},
		{"two links: only the first changes", `{"links":{"self":"/v1/a"},"more":{"links":{"self":"/v1/b"}}}`,
			`{"links":{"self":"https://invoices.example/v1/a"},"more":{"links":{"self":"/v1/b"}}}`},
		{"blanks and escapes do not change", `{"a": "\u003c<é", "links":{"self":"/v1/a"} }`, `{"a": "\u003c<é", "links":{"self":"https://invoices.example/v1/a"} }`},
		{"an empty body", ``, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := []byte(tt.body)
			if got := string(Absolute(body, base)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if string(body) != tt.body {
				t.Errorf("Absolute changed its argument to %s", body)
			}
		})
	}
}
