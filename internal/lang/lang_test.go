package lang

import "testing"

func TestFromHeader(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		header string
		want   Language
	}{
		{"", English},
		{"es", Spanish},
		{"es-DO", Spanish},
		{"es-419,es;q=0.9,en;q=0.8", Spanish},
		{"en-US,en;q=0.9,es;q=0.8", English},
		{"en;q=0.2, es;q=0.7", Spanish},
		{"fr, es;q=0.5", Spanish},
		{"fr", English},
		{"es;q=0, fr", English},
		{"*", English},
		{";;;", English},
		{"es;q=oops", English},
	} {
		if got := FromHeader(test.header, English); got != test.want {
			t.Errorf("FromHeader(%q) = %s, want %s", test.header, got, test.want)
		}
	}
	if got := FromHeader("fr", Spanish); got != Spanish {
		t.Errorf("FromHeader(fr) with the fallback es = %s", got)
	}
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		all, messages, lang string
		want                Language
	}{
		{"", "", "", English},
		{"", "", "es_DO.UTF-8", Spanish},
		{"", "", "C.UTF-8", English},
		{"", "es_ES@euro", "en_US.UTF-8", Spanish},
		{"C", "es_DO.UTF-8", "es_DO.UTF-8", English},
		{"es", "en_US", "en_US", Spanish},
	} {
		values := map[string]string{"LC_ALL": test.all, "LC_MESSAGES": test.messages, "LANG": test.lang}
		if got := FromEnvironment(func(name string) string { return values[name] }); got != test.want {
			t.Errorf("FromEnvironment(%v) = %s, want %s", values, got, test.want)
		}
	}
}
