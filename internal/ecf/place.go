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
var placesCSV string

// A place is a province, a municipality or a district of the authority's table.
type place struct {
	name     string
	level    string
	province string // code
}

const (
	levelProvince     = "province"
	levelMunicipality = "municipality"
	levelDistrict     = "district"
)

// placeTable is the authority's table of places, by code and by name. The names
// of provinces are unique, and so are those of municipalities.
type placeTable struct {
	places         map[string]place
	provinces      map[string]string
	municipalities map[string]string
}

var places = sync.OnceValue(func() *placeTable {
	t := &placeTable{make(map[string]place), make(map[string]string), make(map[string]string)}
	for _, row := range table(placesCSV) {
		code, level, province, name, key := row[0], row[1], row[2], row[4], row[5]
		t.places[code] = place{titled(name), level, province}
		switch level {
		case levelProvince:
			t.provinces[key] = code
		case levelMunicipality:
			t.municipalities[key] = code
		}
	}
	return t
})

// PlaceName returns the name of a province, municipality or district, and
// nothing for a code that is not in the authority's table.
func PlaceName(code string) string { return places().places[code].name }

// titled writes a name of the table, which is all capitals, as people do.
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

// dominican is the country whose places have codes.
const dominican = "DO"

// locate finds the codes of a buyer's city and province. They are left out
// rather than guessed: a city that is not in the table, or that is one of
// several, leaves out both; one that is in another province than the address
// says leaves the province alone.
func locate(a *fiscal.Address) (municipality, province string) {
	if a.CountryCode != dominican {
		return "", ""
	}
	t := places()
	city, stated := fold(a.City), t.provinces[fold(a.ProvinceOrState)]
	if city == "SANTO DOMINGO" && stated == capital {
		// The province of that name has three municipalities of that name, each
		// with a direction; the capital is the fourth.
		return capitalCity, capital
	}
	municipality, found := t.municipalities[city]
	if !found {
		return "", ""
	}
	province = t.places[municipality].province
	if stated != "" && stated != province {
		return "", stated
	}
	return municipality, province
}

const (
	capital     = "010000" // Distrito Nacional
	capitalCity = "010100" // Santo Domingo de Guzmán
)

// addressText joins a buyer's address to at most 100 characters. What has no
// code and no element of its own is added when there is room.
func addressText(a *fiscal.Address, province string) string {
	const most = 100
	var parts []string
	for _, s := range [...]string{clean(a.Line1), clean(a.Line2), clean(a.City)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	text := cut(strings.Join(parts, ", "), most)
	add := func(s string) {
		if s != "" && fits(text+", "+s, most) {
			text += ", " + s
		}
	}
	if province == "" {
		add(clean(a.ProvinceOrState))
	}
	if a.CountryCode != dominican {
		add(countryName(a.CountryCode))
	}
	return text
}

// countryName returns the Spanish name of a country, or its code when it has
// none.
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
