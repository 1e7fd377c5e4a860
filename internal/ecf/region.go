package ecf

import (
	_ "embed"
	"slices"
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
	name         string
	key          string // the name in capitals, without accents
	level        string
	province     string // code
	municipality string // code; empty for a province
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
		code, level, province, municipality, name, key := row[0], row[1], row[2], row[3], row[4], row[5]
		t.regions[code] = region{titled(name), key, level, province, municipality}
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

// ProvinceOf returns the code of the province of a municipality or district, and "" for a
// code that is neither.
func ProvinceOf(municipality string) string {
	r := regions().regions[municipality]
	if r.level == levelProvince {
		return ""
	}
	return r.province
}

// A Municipality is a municipality of the authority's table, or a district of one.
type Municipality struct {
	Code, Name string
	Province   string // code
}

// FindMunicipalities returns the municipality or the district with a code, or those with
// a name, whatever its case and accents. Names of districts are not unique; they count
// only when no municipality has the name.
func FindMunicipalities(text string) []Municipality {
	t, key := regions(), fold(text)
	found := func(code string) Municipality {
		return Municipality{code, t.regions[code].name, t.regions[code].province}
	}
	if r, ok := t.regions[key]; ok && r.level != levelProvince {
		return []Municipality{found(key)}
	}
	if code, ok := t.municipalities[key]; ok {
		return []Municipality{found(code)}
	}
	var list []Municipality
	for code, r := range t.regions {
		if r.level == levelDistrict && r.key == key {
			list = append(list, found(code))
		}
	}
	slices.SortFunc(list, func(a, b Municipality) int { return strings.Compare(a.Code, b.Code) })
	return list
}

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

// locate returns the codes of a buyer's city and province, which are names or codes of
// the authority's table. A district counts as its municipality. It returns "" instead of
// guessing: for both when the city is not in the table, and for the municipality when
// the city is in another province than the address says.
func locate(a *fiscal.Address) (municipality, province string) {
	if a.CountryCode != fiscal.DominicanRepublic {
		return "", ""
	}
	t := regions()
	city, stated := fold(a.City), t.regions[fold(a.ProvinceOrState)].province
	if stated == "" {
		stated = t.provinces[fold(a.ProvinceOrState)]
	}
	if city == "SANTO DOMINGO" && stated == capital {
		// The capital is Santo Domingo de Guzmán. The three other municipalities
		// called Santo Domingo are in the province of that name.
		return capitalCity, capital
	}
	municipality, found := t.municipalities[city]
	if r, isCode := t.regions[city]; isCode {
		municipality, found = r.municipality, true
		province = r.province
	} else {
		province = t.regions[municipality].province
	}
	if !found {
		return "", ""
	}
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
// foreign country. It returns nothing that the lines of the address say already,
// and the name of a region instead of its code.
func addressParts(a *fiscal.Address, province string) (parts, more []string) {
	for _, s := range [...]string{clean(a.Line1), clean(a.Line2)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if city := regionText(a.City); city != "" && !says(parts, city) {
		parts = append(parts, city)
	}
	add := func(s string) {
		if s != "" && !says(parts, s) {
			more = append(more, s)
		}
	}
	if province == "" {
		add(regionText(a.ProvinceOrState))
	}
	if a.CountryCode != fiscal.DominicanRepublic {
		add(countryName(a.CountryCode))
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

// regionText returns the name of a region when text is its code, and otherwise the text.
func regionText(text string) string {
	if name := RegionName(fold(text)); name != "" {
		return name
	}
	return clean(text)
}

// AddressNames reports whether an address ends with a place, or names it between
// commas, whatever the case and the accents.
func AddressNames(address, place string) bool { return says([]string{address}, place) }

// says reports whether one of the parts ends with a place, or names it between commas,
// whatever the case and the accents.
func says(parts []string, place string) bool {
	want := fold(place)
	for _, part := range parts {
		for _, piece := range strings.Split(part, ",") {
			if got := strings.TrimRight(fold(piece), "."); got == want || strings.HasSuffix(got, " "+want) {
				return true
			}
		}
	}
	return false
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

// A Province is a province of the authority's table.
type Province struct{ Code, Name string }

// Provinces returns the provinces, by name.
func Provinces() []Province {
	var list []Province
	for code, r := range regions().regions {
		if r.level == levelProvince {
			list = append(list, Province{code, r.name})
		}
	}
	slices.SortFunc(list, func(a, b Province) int { return strings.Compare(a.Name, b.Name) })
	return list
}
