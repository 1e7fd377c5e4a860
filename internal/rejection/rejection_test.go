package rejection_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
)

func TestEveryCodeHasItsFourTexts(t *testing.T) {
	t.Parallel()
	codes := rejection.Codes()
	if !slices.IsSortedFunc(codes, byNumber) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("the codes are not sorted, or one is there twice: %v", codes)
	}
	for _, code := range codes {
		english, todo, ok := rejection.Explain(code, lang.English)
		spanish, hacer, okSpanish := rejection.Explain(code, lang.Spanish)
		if !ok || !okSpanish {
			t.Errorf("%s has no explanation", code)
		}
		for _, text := range []string{english, todo, spanish, hacer} {
			if len(text) < 20 || !strings.HasSuffix(text, ".") || strings.Contains(text, "%!") {
				t.Errorf("%s: %q is no sentence", code, text)
			}
		}
		if english == spanish || todo == hacer {
			t.Errorf("%s: both languages have the same text", code)
		}
	}
	if _, _, ok := rejection.Explain("1", lang.English); ok {
		t.Error("the code 1, an acceptance, has an explanation")
	}
}

func byNumber(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x - y
}

// The codes that answers of the authority have had, and those of the simulator.
func TestEveryKnownCodeIsExplained(t *testing.T) {
	t.Parallel()
	known := strings.Fields("2 4 64 75 135 145 156 176 260 1385 1920 1934 2020 3205 3243 " +
		"90001 90002 90003 90004 90005 90011 90012 90014 90015 90016 90017 90099")
	if diff := cmp.Diff(known, rejection.Codes()); diff != "" {
		t.Errorf("known codes (-want +got):\n%s", diff)
	}
}

func TestExplanationsFollowTheWordsOfTheAuthority(t *testing.T) {
	t.Parallel()
	stored := []string{"[135] Número de secuencia no autorizada.", "[7777]", "[135]", "notes: cut", "[not closed"}
	explained := rejection.Explained(fiscal.Rejected, stored, lang.Spanish)
	note, ok := rejection.Note("135", lang.Spanish)
	if !ok || !strings.HasPrefix(note, "El código 135 significa: La secuencia") || !strings.Contains(note, "Qué hacer: El operador") {
		t.Errorf("the note is %q", note)
	}
	want := []string{stored[0], stored[1], stored[2], note, stored[3], stored[4]}
	if diff := cmp.Diff(want, explained); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := rejection.Explained(fiscal.Accepted, nil, lang.English); len(got) != 0 {
		t.Errorf("no messages became %v", got)
	}
	unknown := rejection.Explained(fiscal.Rejected, []string{"[7777] x"}, lang.English)
	if len(unknown) != 2 || !strings.Contains(unknown[1], "new external_id and a new Idempotency-Key") {
		t.Errorf("nothing says what to do after an unknown code: %v", unknown)
	}
}

// The pages for integrators have a row for each code, with the words of the table. They
// say once, above the table, how a sale is issued again.
func TestPagesHaveEveryCode(t *testing.T) {
	t.Parallel()
	short := strings.NewReplacer(
		"If the status is accepted_conditional, the document is valid: do not issue the sale again, and correct the cause for the next invoices. If it is rejected, correct the data and create a new invoice with a new external_id and a new Idempotency-Key.", "If the status is `rejected`, issue the sale again.",
		"create a new invoice with a new external_id and a new Idempotency-Key.", "issue the sale again.",
		"Si el estado es accepted_conditional, el comprobante es válido: no emita la venta otra vez y corrija la causa en las próximas facturas. Si es rejected, corrija los datos y cree una factura nueva con un external_id nuevo y un Idempotency-Key nuevo.", "Si el estado es `rejected`, emita la venta otra vez.",
		"cree una factura nueva con un external_id nuevo y un Idempotency-Key nuevo.", "emita la venta otra vez.",
	)
	for page, language := range map[string]lang.Language{
		"../../docs/after-a-rejection.md": lang.English, "../../docs/es/despues-de-un-rechazo.md": lang.Spanish,
	} {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, code := range rejection.Codes() {
			meaning, whatToDo, _ := rejection.Explain(code, language)
			rows = append(rows, "| "+code+" | "+meaning+" | "+short.Replace(whatToDo)+" |\n")
		}
		if want := "|---|---|---|\n" + strings.Join(rows, ""); !strings.HasSuffix(string(content), want) {
			t.Errorf("%s does not end with these rows:\n%s", page, strings.Join(rows, ""))
		}
	}
}

// A person at the page of a document does not write requests, and sees the status.
func TestPeopleReadNoWordsOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, code := range rejection.Codes() {
		for _, status := range []fiscal.Status{fiscal.Rejected, fiscal.AcceptedConditional} {
			for _, in := range []lang.Language{lang.English, lang.Spanish} {
				_, whatToDo, ok := rejection.ExplainToPerson(code, status, in)
				if !ok || whatToDo == "" {
					t.Errorf("code %s: no advice", code)
				}
				for _, word := range []string{"external_id", "Idempotency-Key", "accepted_conditional", "rejected"} {
					if strings.Contains(whatToDo, word) {
						t.Errorf("code %s, %s: the advice has the word %s: %s", code, status, word, whatToDo)
					}
				}
			}
		}
	}
	if _, _, ok := rejection.ExplainToPerson("0", fiscal.Rejected, lang.English); ok {
		t.Error("an unknown code is explained")
	}
}
