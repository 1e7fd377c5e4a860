package api

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func listQuery(raw string) (query, error) {
	r := &http.Request{URL: &url.URL{RawQuery: raw}}
	return readQuery(r, "external_id", "status", "cursor", "limit")
}

func TestReadQueryDecodesOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw  string
		want query
	}{
		{"", query{}},
		{"external_id=a+b", query{"external_id": "a b"}},
		{"external_id=a%2Bb", query{"external_id": "a+b"}},
		{"external_id=%2541", query{"external_id": "%41"}},
		{"external_id=a%26limit%3D5", query{"external_id": "a&limit=5"}},
		{"external_id=a=b", query{"external_id": "a=b"}},
		{"%65xternal_id=a", query{"external_id": "a"}},
		{"external_id=%F0%9F%A7%BE&limit=5", query{"external_id": "🧾", "limit": "5"}},
		{"limit=5&", query{"limit": "5"}}, {"&&limit=5&&status=accepted&", query{"limit": "5", "status": "accepted"}}, {"&", query{}},
	} {
		got, err := listQuery(tt.raw)
		if err != nil || !maps.Equal(got, tt.want) {
			t.Errorf("%q: got %q, %v, want %q", tt.raw, got, err, tt.want)
		}
	}
}

func TestAnswersShortenUnknownNames(t *testing.T) {
	t.Parallel()
	_, err := listQuery(strings.Repeat("é", 1000) + "=1")
	var f *apiError
	if !errors.As(err, &f) || utf8.RuneCountInString(f.details[0].Field) > 64 || !utf8.ValidString(f.details[0].Field) {
		t.Errorf("got %+v", err)
	}
}

// No query makes readQuery panic. What it accepts is plain text under known
// names, equal to the result of the standard library, and gives a filter within
// its limits.
func TestReadQueryOfAnyText(t *testing.T) {
	t.Parallel()
	a := &API{cursors: func() cursor.Keys { return cursor.Keys{bytes.Repeat([]byte{1}, 32)} }}
	scope := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "t"}
	id := uuid.MustParse("01999999-1111-7222-8333-444444444444")
	good := a.cursors().Make(id, invoiceList(scope, store.InvoiceFilter{}))
	parts := rapid.OneOf(rapid.SampledFrom([]string{
		"", "&", "=", "limit=5", "limit=05", "limit=5&limit=5", "external_id=%00", "external_id=%ff", "a;b", "%", "cursor=" + good,
		"cursor=" + good + "%0a", "status=accepted&external_id=a+b", "limit=+1", "limit=%EF%BC%91", "external_id=\xff", strings.Repeat("&", 100),
	}), rapid.String(), rapid.StringMatching(`(external_id|status|limit|cursor)=[a-z0-9%+&;=]*`))
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(parts, 1, 4).Draw(t, "parts"), "&")
		q, err := listQuery(raw)
		if err != nil {
			var refused *apiError
			if !errors.As(err, &refused) || refused.status != http.StatusBadRequest || len(refused.details) == 0 || len(refused.details) > 101 {
				t.Fatalf("%q: %+v", raw, err)
			}
			return
		}
		standard, err := url.ParseQuery(raw)
		if err != nil || len(standard) != len(q) {
			t.Fatalf("%q: got %q, the standard library %q, %v", raw, q, standard, err)
		}
		for name, value := range q {
			if !slices.Equal(standard[name], []string{value}) || value == "" || !utf8.ValidString(value) || strings.ContainsAny(value, "\x00\n\r\t") {
				t.Errorf("%q: %s is %q, the standard library has %q", raw, name, value, standard[name])
			}
		}
		filter, page, err := a.invoiceFilter(scope, q)
		if err != nil {
			return
		}
		if page.limit < 1 || page.limit > 100 || utf8.RuneCountInString(filter.ExternalID) > 200 || page.before != "" && page.before != id.String() {
			t.Errorf("%q: %+v, %+v", raw, filter, page)
		}
		if _, known := fiscal.ParseStatus(string(filter.Status)); filter.Status != "" && !known {
			t.Errorf("%q: %+v", raw, filter)
		}
	})
}
