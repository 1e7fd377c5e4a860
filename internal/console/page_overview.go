package console

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const overviewLive = "/console/overview/live"

func (c *Console) overviewPages() []page {
	return []page{
		get("/console/", everyone(), c.showOverview),
		live(overviewLive, c.documentReaders(), c.updateOverview),
	}
}

// overviewView is the data of the first page: what is true today for the viewer.
type overviewView struct {
	Day       fiscal.Date
	Total     int64
	Statuses  []statusCount
	Attention []attentionView
	Hours     chart
	Days      chart
	Verdicts  []verdictRow
	Authority stateView
	Sandbox   bool
	Indexing  bool // the counts lack documents that existed before the index
}

// statusCount is how many documents of today have a status.
type statusCount struct {
	Status  fiscal.Status
	Count   int64
	Address string // of their list
}

// attentionView is something that needs a person.
type attentionView struct {
	Tone    tone
	Title   string
	Do      string
	Address string // empty: the viewer may not see the page
	At      overview.Attention
}

// verdictRow is how long documents waited for their verdict in a span.
type verdictRow struct {
	Label       string
	Documents   int64
	Median, P99 string
}

// stateView is a state in one word, with a sentence.
type stateView struct {
	Tone  tone
	Word  string
	Text  string
	Facts []fact
}

// fact is a name with a value: a text, a number, an instant or an identifier.
type fact struct {
	Name  string
	Value any
}

// identifier is a text that is shown letter by letter.
type identifier string

func (c *Console) showOverview(x *request) error {
	if !c.mayUse(x.viewer.Role(), http.MethodGet, overviewLive) {
		return x.redirect(keysAddress) // the first page that the person sees
	}
	shown, at, err := x.overview()
	if err != nil {
		return err
	}
	return x.render("overview", x.text("nav.overview"), struct {
		Live template.HTML
		Day  fiscal.Date
	}{shown.element(overviewLive), fiscal.DateOf(at)})
}

func (c *Console) updateOverview(x *request) error {
	shown, _, err := x.overview()
	if err != nil {
		return err
	}
	x.writeFragment(shown)
	return nil
}

// maxOverviewFragments is how many rendered overviews are in memory.
const maxOverviewFragments = 64

// overviewFragments keeps the rendered overviews of the last two seconds. Viewers of the
// same taxpayers with the same role and language see the same page, and to render it costs
// more than to read its figures.
type overviewFragments struct {
	mu  sync.Mutex
	all map[overviewKey]rendered
}

// overviewKey names all that a rendered overview depends on.
type overviewKey struct {
	at        time.Time // when the figures were read
	taxpayers string
	role      store.Role
	language  lang.Language
}

func (f *overviewFragments) get(key overviewKey) (rendered, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shown, ok := f.all[key]
	return shown, ok
}

func (f *overviewFragments) put(key overviewKey, shown rendered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil || len(f.all) >= maxOverviewFragments {
		f.all = map[overviewKey]rendered{}
	}
	f.all[key] = shown
}

// overview returns the part of the first page that updates itself, and when its figures
// were read.
func (x *request) overview() (shown rendered, at time.Time, err error) {
	within := x.viewer.Within()
	o, err := x.console.overviews.Overview(x.Context(), within)
	if err != nil {
		return shown, at, err
	}
	key := overviewKey{o.At, strings.Join(within.Taxpayers, " "), x.viewer.Role(), x.language}
	shown, ok := x.console.fragments.get(key)
	if !ok {
		if shown, err = x.executeFragment("overview-live", x.overviewView(o)); err != nil {
			return shown, at, err
		}
		x.console.fragments.put(key, shown)
	}
	return shown, o.At, nil
}

// overviewView returns the data of the first page.
func (x *request) overviewView(o overview.Overview) overviewView {
	v := overviewView{
		Day: fiscal.DateOf(o.At), Sandbox: x.console.o.Environment == fiscal.Sandbox, Indexing: o.Index.Started && !o.Index.Complete,
		Hours: x.newChart("hours", o.Hours, "15:04"), Days: x.newChart("days", o.Days, "02/01"), Authority: x.authorityState(o.Authority),
		Verdicts: []verdictRow{x.verdictRow("overview.last_day", o.Verdicts.Day), x.verdictRow("overview.last_month", o.Verdicts.Month)},
	}
	for _, status := range fiscal.Statuses() {
		filter := url.Values{"status": {string(status)}, "from": {v.Day.String()}}
		v.Statuses = append(v.Statuses, statusCount{status, o.Today[status], documentsAddress + "?" + filter.Encode()})
		v.Total += o.Today[status]
	}
	for _, a := range o.Attention {
		v.Attention = append(v.Attention, x.attention(a))
	}
	return v
}

func (x *request) verdictRow(label string, v overview.VerdictTime) verdictRow {
	return verdictRow{x.text(label), v.Documents, shortDuration(v.Median), shortDuration(v.P99)}
}

// attention returns an item that needs a person, with a link if the viewer may see where
// it leads.
func (x *request) attention(a overview.Attention) attentionView {
	v := attentionView{Tone: attentionTone(a.Kind), At: a, Do: x.text("attention." + string(a.Kind) + ".do")}
	v.Title = x.count(a.Count, a.AtLeast, "attention."+string(a.Kind))
	if x.console.mayUse(x.viewer.Role(), http.MethodGet, a.Path) {
		v.Address = a.Address()
	}
	return v
}

func attentionTone(k overview.Kind) tone {
	switch k {
	case overview.Deadlines, overview.Fences, overview.Rejections, overview.FailedValidations:
		return bad
	case overview.UnknownOutcomes, overview.Overdue, overview.LowRanges, overview.EndingCertificates, overview.EndingCredentials, overview.FailingEndpoints:
	}
	return warn
}

// count writes a number with a noun, as the function count of templates. atLeast says that
// there are more.
func (x *request) count(n int64, atLeast bool, key string) string {
	if n == 1 && !atLeast {
		return x.text(key + ".one")
	}
	shown, _ := number(n) // an integer is a number
	if atLeast {
		shown += "+"
	}
	return x.text(key+".many", shown)
}

// authorityState says whether the service reaches the authority.
func (x *request) authorityState(a overview.Authority) stateView {
	if x.console.o.Environment == fiscal.Sandbox {
		return stateView{Tone: neutral, Word: x.text("authority_state.sandbox"), Text: x.text("authority_state.sandbox_text")}
	}
	var failing []string
	for service, open := range a.Circuits {
		if open {
			failing = append(failing, service)
		}
	}
	slices.Sort(failing)
	v := stateView{Tone: good, Word: x.text("word.answers"), Text: x.text("authority_state.up_text")}
	switch {
	case a.InContingency():
		v = stateView{Tone: bad, Word: x.text("authority_state.contingency"), Text: x.text("authority_state.contingency_text")}
		v.Facts = append(v.Facts, fact{x.text("word.since"), a.Contingency.StartedAt})
	case !a.Contact.FailingSince.IsZero():
		v = stateView{Tone: warn, Word: x.text("authority_state.failing"), Text: x.text("authority_state.failing_text")}
		v.Facts = append(v.Facts, fact{x.text("word.since"), a.Contact.FailingSince})
	case len(failing) > 0:
		v = stateView{Tone: warn, Word: x.text("authority_state.partly"), Text: x.text("authority_state.partly_text", strings.Join(failing, ", "))}
	case a.Contact.AnsweredAt.IsZero():
		v = stateView{Tone: neutral, Word: x.text("authority_state.never"), Text: x.text("authority_state.never_text")}
	}
	if !a.Contact.AnsweredAt.IsZero() {
		v.Facts = append(v.Facts, fact{x.text("word.last_answer"), a.Contact.AnsweredAt})
	}
	return v
}
