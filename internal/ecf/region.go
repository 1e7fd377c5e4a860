package ecf

import (
	_ "embed"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

//go:embed provinces.csv
var regionsCSV string

// A region is a province, a municipality or a district of the authority's table.
type region struct {
	name     string
	level    string
	province string // code
}

const (
	levelProvince     = "province"
	levelMunicipality = "municipality"
	levelDistrict     = "district"
)

// regionTable is the authority's table of regions, by code and by name. The names
// of provinces are unique, and so are the names of municipalities.
type regionTable struct {
	regions        map[string]region
	provinces      map[string]string
	municipalities map[string]string
}

var regions = sync.OnceValue(func() *regionTable {
	t := &regionTable{make(map[string]region), make(map[string]string), make(map[string]string)}
	for _, row := range table(regionsCSV) {
		code, level, province, name, key := row[0], row[1], row[2], row[4], row[5]
		t.regions[code] = region{titled(name), level, province}
		switch level {
		case levelProvince:
			t.provinces[key] = code
		case levelMunicipality:
			t.municipalities[key] = code
		}
	}
	return t
})

// RegionName returns the name of a province, municipality or district, and "" for
// a code that is not in the authority's table.
func RegionName(code string) string { return regions().regions[code].name }

// titled writes a name of the table, which is in capitals, in title case.
func titled(name string) string {
	words := strings.Fields(strings.ToLower(name))
	for i, word := range words {
		switch word {
		case "de", "del", "la", "las", "el", "los", "y":
			if i > 0 {
				continue
			}
		}
		first := offset(word, 1)
		words[i] = strings.ToUpper(word[:first]) + word[first:]
	}
	return strings.Join(words, " ")
}

// locate returns the codes of a buyer's city and province. It returns "" instead
// of guessing: for both when the city is not in the table, and for the
// municipality when the city is in another province than the address says.
func locate(a *fiscal.Address) (municipality, province string) {
	if a.CountryCode != fiscal.DominicanRepublic {
		return "", ""
	}
	t := regions()
	city, stated := fold(a.City), t.provinces[fold(a.ProvinceOrState)]
	if city == "SANTO DOMINGO" && stated == capital {
		// The capital is Santo Domingo de Guzmán. The three other municipalities
		// called Santo Domingo are in the province of that name.
		return capitalCity, capital
	}
	municipality, found := t.municipalities[city]
	if !found {
		return "", ""
	}
	province = t.regions[municipality].province
	if stated != "" && stated != province {
		return "", stated
	}
	return municipality, province
}

const (
	capital     = "010000" // Distrito Nacional
	capitalCity = "010100" // Santo Domingo de Guzmán
)

// addressParts returns the parts of a buyer's address: the lines and the city, and
// then what is added when there is room, the province without a code and the
// foreign country.
func addressParts(a *fiscal.Address, province string) (parts, more []string) {
	for _, s := range [...]string{clean(a.Line1), clean(a.Line2), clean(a.City)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if s := clean(a.ProvinceOrState); province == "" && s != "" {
		more = append(more, s)
	}
	if a.CountryCode != fiscal.DominicanRepublic {
		more = append(more, countryName(a.CountryCode))
	}
	return parts, more
}

// addressText joins a buyer's address to at most maxAddress characters.
func addressText(a *fiscal.Address, province string) string {
	parts, more := addressParts(a, province)
	text := cut(strings.Join(parts, ", "), maxAddress)
	for _, s := range more {
		if fits(text+", "+s, maxAddress) {
			text += ", " + s
		}
	}
	return text
}

// fullAddress joins a buyer's address without a limit.
func fullAddress(a *fiscal.Address, province string) string {
	parts, more := addressParts(a, province)
	return strings.Join(append(parts, more...), ", ")
}

// countryName returns the Spanish name of a country, or the code when no name is
// known.
func countryName(code string) string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return code
	}
	if name := display.Regions(language.Spanish).Name(region); name != "" {
		return name
	}
	return code
}
