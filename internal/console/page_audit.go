package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	auditAddress = "/console/audit"
	auditRows    = 50 // of one page
)

func (c *Console) auditPages() []page {
	return []page{get(auditAddress, overseers(), c.showAudit)}
}

// auditView is the data of the page of the audit log.
type auditView struct {
	Form     *form
	Entries  []auditEntry
	Filtered bool
	Newest   string // address of the first page; empty on the first page
	Older    string // address of the next page; empty on the last page
	Verify   string // address that verifies the log
	Verified *auditResult
}

// auditEntry is an entry with its changed fields.
type auditEntry struct {
	audit.Entry
	Fields []auditField
}

type auditField struct{ Name, Before, After string }

// auditResult is the result of a verification.
type auditResult struct {
	Valid       bool
	Entries     int64
	Checkpoints int
	WrongMark   bool  // a checkpoint is wrong, and no entry
	Wrong       int64 // number of the first wrong entry, which may be 0
	Problem     string
}

// showAudit shows the audit log, the newest entry first. The filters are in the query
// string: actor (a part), object (a part of the object or of the action), from, to (dates of
// the country); before is the cursor.
func (c *Console) showAudit(x *request) error {
	query := x.URL.Query()
	f := newForm(query)
	filter := store.AuditFilter{ActorPart: f.Value("actor")}
	if object := f.Value("object"); wholeObject.MatchString(object) {
		filter.Object = object
	} else {
		filter.ObjectPart = object
	}
	filter.Since = x.dayField(f, "from", 0)
	filter.Until = x.dayField(f, "to", 1)
	before, err := strconv.ParseInt(query.Get("before"), 10, 64)
	if err != nil || before <= 0 {
		before = math.MaxInt64
	}
	view := auditView{Form: f, Filtered: filter != store.AuditFilter{}, Verify: auditLink(query, "verify", "1")}
	if before != math.MaxInt64 {
		view.Newest = auditLink(query, "before", "")
	}
	if !f.ok() {
		return x.renderStatus(http.StatusUnprocessableEntity, "audit", x.text("nav.audit"), view)
	}
	entries, err := c.o.Store.AuditEntriesBefore(x.Context(), filter, before, auditRows+1)
	if err != nil {
		return err
	}
	if len(entries) > auditRows {
		entries = entries[:auditRows]
		view.Older = auditLink(query, "before", strconv.FormatInt(entries[auditRows-1].Seq, 10))
	}
	for _, e := range entries {
		view.Entries = append(view.Entries, auditEntry{e, auditFields(e)})
	}
	if query.Get("verify") != "" {
		if view.Verified, err = c.verifyAudit(x); err != nil {
			return err
		}
	}
	return x.render("audit", x.text("nav.audit"), view)
}

// wholeObject is an object with a whole id, which an index finds.
var wholeObject = regexp.MustCompile(`^[a-z_]+:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// auditLink returns the address of the page with one parameter changed; an empty value
// removes it.
func auditLink(query url.Values, name, value string) string {
	change := map[string]string{"verify": ""}
	change[name] = value
	return linkWith(auditAddress, query, change)
}

// dayField returns the beginning of the day in a field, and of a later day with an offset.
// It records an error at the field when that is no date.
func (x *request) dayField(f *form, name string, offset int) time.Time {
	text := f.Value(name)
	if text == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, text, fiscal.Zone())
	if err != nil {
		f.fail(name, x.text("audit.wrong_date"))
		return time.Time{}
	}
	return day.AddDate(0, 0, offset)
}

// auditFields returns the changed fields of an entry, by name.
func auditFields(e audit.Entry) []auditField {
	var before, after map[string]any
	_ = json.Unmarshal([]byte(e.Before), &before) // an entry that was tampered with has no fields
	_ = json.Unmarshal([]byte(e.After), &after)
	names := make(map[string]bool)
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	var fields []auditField
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := auditValue(before[name]), auditValue(after[name])
		if was != "" || is != "" {
			fields = append(fields, auditField{name, was, is})
		}
	}
	return fields
}

func auditValue(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// verifyAudit verifies the whole log and its checkpoints.
func (c *Console) verifyAudit(x *request) (*auditResult, error) {
	last, checkpoints, err := c.o.Keyring.VerifyAudit(x.Context())
	result := &auditResult{Entries: last.Seq, Checkpoints: checkpoints}
	var broken *audit.BrokenError
	switch {
	case errors.Is(err, audit.ErrCheckpoint):
		result.WrongMark, result.Problem = true, lang.ErrorText(err, x.language)
	case errors.As(err, &broken):
		result.Wrong, result.Problem = broken.Seq, broken.Problem.In(x.language)
	case err != nil:
		return nil, err
	default:
		result.Valid = true
	}
	return result, nil
}
