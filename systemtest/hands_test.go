package systemtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// firstNet is the net amount of sale 0 in pesos. Each sale costs one peso more than the
// one before it, so that its total names the sale, also at the authority.
const firstNet = 1000

// saleBody returns the request for sale n.
func saleBody(n int) string {
	net := int64(firstNet + n)
	return strings.NewReplacer(`"quantity": "2"`, `"quantity": "1"`, `"250.00"`, `"`+pesos(net*100)+`"`, `"500.00"`, `"`+pesos(net*100)+`"`,
		`"90.00"`, `"`+pesos(net*18)+`"`, `"590.00"`, `"`+pesos(net*118)+`"`).Replace(invoiceBody(n))
}

// pesos returns an amount in pesos.
func pesos(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// saleOf returns the sale with a total, or -1.
func saleOf(total string) int {
	cents, err := strconv.ParseInt(strings.ReplaceAll(total, ".", ""), 10, 64)
	if err != nil || cents%118 != 0 {
		return -1
	}
	return int(cents/118) - firstNet
}

// hands are what everybody outside of the service has in the hand: answers, pages and
// events of clients, and the documents of the authority.
type hands struct {
	mu     sync.Mutex
	sales  map[string]map[int]string    // by number: the sales under it, and where each was seen first
	codes  map[string]map[string]string // by number: the security codes of its contents
	sights int
}

func newHands() *hands {
	return &hands{sales: map[string]map[int]string{}, codes: map[string]map[string]string{}}
}

// see records that somebody sees a sale under a number. The code is empty where none is
// shown.
func (h *hands) see(encf string, sale int, code, where string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sights++
	if h.sales[encf] == nil {
		h.sales[encf], h.codes[encf] = map[int]string{}, map[string]string{}
	}
	if h.sales[encf][sale] == "" {
		h.sales[encf][sale] = where
	}
	if code != "" && h.codes[encf][code] == "" {
		h.codes[encf][code] = where
	}
}

// last returns the last number of each type that anybody has in the hand.
func (h *hands) last() (numbers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		highest := "E" + string(kind) + "0000000000"
		for encf := range h.sales {
			if strings.HasPrefix(encf, "E"+string(kind)) {
				highest = max(highest, encf)
			}
		}
		numbers = append(numbers, highest)
	}
	return numbers
}

// check reports every number that has two sales or two contents, and returns how many
// there are.
func (h *hands) check(t *testing.T) (violations int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, encf := range slices.Sorted(maps.Keys(h.sales)) {
		if len(h.sales[encf]) > 1 || len(h.codes[encf]) > 1 {
			violations++
			t.Errorf("%s has the sales %v and the contents %v", encf, h.sales[encf], h.codes[encf])
		}
	}
	return violations
}

// What a page says.
var (
	pageNumber = regexp.MustCompile(`\bE3[12][0-9]{10}\b`)
	pageCode   = regexp.MustCompile(`Código de Seguridad:\s*(\S{6})`)
	pageLegend = regexp.MustCompile(`(?s)modalidad\s+de\s+Contingencia`)
)
