package ecf

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestLocateFindsNamesAndCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, city, state, municipality, province string
	}{
		{"a name", "Baní", "Peravia", "170100", "170000"},
		{"a name without a province", "bani", "", "170100", "170000"},
		{"a municipality's code", "170100", "", "170100", "170000"},
		{"a district's code", "170203", "", "170200", "170000"},
		{"a district's code and its province", "170203", "Peravia", "170200", "170000"},
		{"a district's code and the code of its province", "170203", "170000", "170200", "170000"},
		{"a district of a municipality with an irregular code", "030102", "", "030001", "030000"},
		{"a province's code", "170000", "", "", "170000"},
		{"a code in another province", "170203", "Azua", "", "020000"},
		{"an unknown code", "999999", "Azua", "", ""},
		{"an unknown name", "Macondo", "Azua", "", ""},
		{"the capital", "Santo Domingo", "Distrito Nacional", "010100", "010000"},
		{"an ambiguous name", "Santo Domingo", "", "", ""},
	} {
		municipality, province := locate(&fiscal.Address{City: c.city, ProvinceOrState: c.state, CountryCode: "DO"})
		if municipality != c.municipality || province != c.province {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, municipality, province, c.municipality, c.province)
		}
	}
}

func TestAddressTextAddsNothingTwice(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]fiscal.Address{
		"Av. Duarte 5, Baní":             {Line1: "Av. Duarte 5", City: "Baní"},
		"Av. Duarte 6, Baní":             {Line1: "Av. Duarte 6, Baní", City: "BANI"},
		"Av. Duarte 7, Baní.":            {Line1: "Av. Duarte 7, Baní.", City: "Baní"},
		"Calle 8, Ensanche, Baní":        {Line1: "Calle 8", Line2: "Ensanche, Baní", City: "Baní"},
		"Calle Baní 9, Azua":             {Line1: "Calle Baní 9", City: "Azua"},
		"Calle 10, Santana":              {Line1: "Calle 10", City: "170203"},
		"Calle 11, Macondo, Azua":        {Line1: "Calle 11", City: "Macondo", ProvinceOrState: "Azua"},
		"Calle 12, Azua, Macondo":        {Line1: "Calle 12, Azua", City: "Macondo", ProvinceOrState: "Azua"},
		"5th Avenue, Nueva York, NY":     {Line1: "5th Avenue", City: "Nueva York", ProvinceOrState: "NY"},
		"Calle 13 sector Los Mina, Este": {Line1: "Calle 13 sector Los Mina", City: "Este"},
	} {
		a.CountryCode = "DO"
		if got := addressText(&a, ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFindMunicipalities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Municipality{
		"bani":     {{"170100", "Baní", "170000"}},
		" 170203 ": {{"170203", "Santana", "170000"}},
		"170000":   nil, // a province
		"Macondo":  nil,
	} {
		if diff := cmp.Diff(want, FindMunicipalities(text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
	if several := FindMunicipalities("Santana"); len(several) < 2 {
		t.Errorf("Santana: %v", several)
	}
}
