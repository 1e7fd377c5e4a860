package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// sharedTables are the tables without the columns environment and taxpayer_id, and
// why their rows do not belong to one taxpayer in one environment.
func sharedTables() map[string]string {
	return map[string]string{
		"audit_checkpoints": "the audit log belongs to the whole database",
		"audit_head":        "the audit log belongs to the whole database",
		"authority_contact": "all nodes of an environment reach the authority, or none",
		"comparisons":       "all nodes of an environment share one budget of questions",
		"console_addresses": "the console of an environment shows all its taxpayers",
		"contingencies":     "a contingency concerns all taxpayers of an environment",
		"database_identity": "the name of the whole database",
		"index_walks":       "the indexer serves all taxpayers and environments",
		"nodes":             "a node serves all taxpayers of its environment",
		"rate_windows":      "the name of a bucket contains the credential",
		"recovery_codes":    "a person may work for several taxpayers",
		"schema_migrations": "the schema belongs to the whole database",
		"schema_versions":   "the schema belongs to the whole database",
		"secrets":           "keys of the service itself",
		"sign_in_failures":  "counted before a person is known",
		"suspensions":       "the subject contains the credential, the taxpayer or the environment",
		"taxpayers":         "a taxpayer is the same in all environments; its id is the scope",
		"timelines":         "all nodes of an environment work on one timeline",
		"used_seeds":        "a client uses a seed before it is authenticated",
		"user_links":        "a person may work for several taxpayers",
		"user_sessions":     "a person may work for several taxpayers",
		"user_taxpayers":    "which taxpayers a person works for, in the environments of the person",
		"users":             "a person may work for several taxpayers",
	}
}

// unscoped says why a function may read or write the rows of several taxpayers.
type unscoped struct {
	environment bool // its statements must still have environment = $n
	reason      string
}

// unscopedFunctions are the exceptions to the rule of TestStatementsAreScoped, by
// receiver and name.
func unscopedFunctions() map[string]unscoped {
	return map[string]unscoped{
		// The operator, with the command line: no integrator can call these.
		"reader.AllEndpoints":       {false, "operator: list all endpoints, and rotate the master key"},
		"reader.AuditEntries":       {false, "operator: read the audit log of all taxpayers"},
		"reader.AuditEntriesBefore": {false, "operators and auditors: read the audit log of all taxpayers"},
		"reader.AnyDocument":        {false, "operator: find a document by its id alone"},
		"reader.AnyEndpoint":        {false, "operator: find an endpoint by its id alone"},
		"reader.AnySource":          {false, "operator: find a source by its id alone"},
		"reader.BuyerSigners":       {false, "operator: list the signers of the buyers of all taxpayers"},
		"reader.UnknownSigners":     {false, "operator: list the unknown signers of responses to all taxpayers"},
		"reader.Certificates":       {false, "operator: list all certificates, and rotate the master key"},
		"reader.Credential":         {false, "operator: find a credential by its id alone"},
		"reader.Credentials":        {false, "operator: list all credentials"},
		"Store.ImportJobs":          {false, "benchmarks: adds jobs to the scope of its arguments"},
		"reader.OpenDifferences":    {false, "operator: list the differences of all taxpayers"},
		"reader.NumberRanges":       {false, "operator: list all number ranges, and fence them after a restore"},
		"reader.SealedAnswers":      {false, "operator: rotate the master key"},
		"reader.Sources":            {false, "operator: list all sources, and rotate the master key"},
		"reader.WaitingDocuments":   {false, "operator: list the waiting documents of all taxpayers"},
		"Tx.ExpireCredential":       {false, "operator: end a credential that was read by its id"},
		"Tx.RevokeCredential":       {false, "operator: end a credential that was read by its id"},
		"reader.UnboundCredentials": {false, "keyring: binds the credentials of earlier programs"},
		"Tx.BindCredential":         {false, "keyring: binds a credential that was read by its id"},

		// Authentication: the credential or the source names the taxpayer.
		"reader.CredentialByPrefix": {false, "authentication: the key determines the scope"},
		"Tx.TouchCredential":        {false, "authentication: records the use of the credential of the request"},
		"reader.SourceOf":           {true, "authentication: the source determines the taxpayer"},

		// Requests of third parties name an RNC, not a taxpayer.
		"reader.IssuedUnder":   {true, "third parties: they know only the number of a document"},
		"reader.TaxpayerByRNC": {true, "third parties: they know only the RNC of the receiver"},

		// Workers serve all taxpayers of an environment.
		"reader.documentAfter":       {true, "comparer: walks over the documents of all taxpayers"},
		"reader.DifferentDocument":   {true, "comparer: finds the documents of all taxpayers with an open difference"},
		"reader.DocumentsWithStatus": {true, "watcher: walks over the documents of all taxpayers that have no verdict"},
		"Tx.Claim":                   {false, "worker: claims jobs of all taxpayers by their ids, and refuses those of another environment"},
		"Tx.lockFree":                {false, "worker: locks jobs of all taxpayers by their ids"},
		"reader.readFront":           {true, "worker: finds due jobs of all taxpayers"},
		"reader.dueOfOthers":         {true, "worker: finds due jobs of one taxpayer after the other"},
		"reader.waitingTaxpayers":    {true, "worker: finds the taxpayers that have due jobs"},
		"reader.HasSuspendedJobs":    {true, "watcher: leaves the authority to the jobs of any taxpayer"},
		"reader.nextJob":             {true, "worker: waits for the next job of any taxpayer"},
		"reader.DocumentStates":      {false, "worker: reads the documents of claimed jobs by their ids, and drops those of another environment"},
		"Store.candidates":           {true, "sender: finds the endpoints of all taxpayers with due deliveries"},
		"reader.NextDelivery":        {true, "sender: waits for the next delivery of any taxpayer"},
		"Store.closeDeleted":         {false, "housekeeping: finds the deleted endpoints of all taxpayers"},
		"Store.Purge":                {false, "housekeeping: deletes the old rows of all taxpayers"},
		"reader.ParkedWithDocument":  {true, "worker: finds the parked messages of all taxpayers whose document exists"},
		"reader.ConfirmedResponses":  {true, "worker: finds the responses of all taxpayers whose signer is known by now"},
		"reader.Replays":             {true, "sender: finds the replays of all taxpayers"},

		// The indexer of the console follows the documents of all taxpayers.
		"reader.CreatedAfter": {false, "indexer: walks over the documents of all taxpayers"},
		"reader.ChangedAfter": {false, "indexer: walks over the changed documents of all taxpayers"},
		"Store.PurgeConsole":  {false, "housekeeping: deletes the old rows of all taxpayers"},

		// Searches of the console: the argument within limits them to the taxpayers of the
		// person, or allows all to operators and auditors.
		"reader.AllDocuments":       {false, "search: lists ids alone; FoundDocuments drops those of others"},
		"reader.DocumentsByStatus":  {true, "search: lists ids alone; FoundDocuments drops those of others"},
		"reader.DocumentsByTotal":   {true, "search: lists ids alone; FoundDocuments drops those of others"},
		"reader.DocumentsByValue":   {true, "search: limited by its argument within"},
		"reader.DocumentsByTrackID": {true, "search: lists ids alone; FoundDocuments drops those of others"},
		"reader.DocumentsOfRequest": {true, "search: lists ids alone; FoundDocuments drops those of others"},
		"reader.DocumentsByID":      {true, "search: limited by its argument within"},
		"reader.FoundDocuments":     {false, "search: drops the documents that within does not allow"},
		"reader.BuyersByRNC":        {true, "search: limited by its argument within"},
		"reader.CountBuyersByWord":  {true, "search: limited by its argument within"},
		"reader.BuyersByWord":       {true, "search: limited by its argument within"},
		"reader.AllRequestErrors":   {true, "operator: counts the errors of all taxpayers"},
		"reader.RequestByID":        {false, "search: drops the requests that within does not allow"},
		"reader.AllRequests":        {false, "operator: lists the requests of all taxpayers, and drops those of another environment"},
		"reader.workAfter":          {false, "work list: WorkList drops the jobs that within does not allow"},

		// The overview drops what the person may not see.
		"reader.EndingCertificates": {true, "overview: lists the certificates of all taxpayers that end soon"},
		"reader.EndingCredentials":  {true, "overview: lists the credentials of all taxpayers that end soon"},
		"reader.NumbersLeft":        {true, "overview: counts the numbers of all taxpayers"},
		"reader.TroubledEndpoints":  {true, "overview: lists the failing endpoints of all taxpayers"},

		// Exports are made in the background.
		"Store.ClaimExport":     {true, "exporter: finds the open exports of all taxpayers"},
		"reader.RecentExports":  {true, "console: limited by its argument within"},
		"reader.ExportWithin":   {true, "console: limited by its argument within"},
		"reader.DeletedExports": {false, "exporter: finds the deleted exports of all taxpayers that still have chunks"},
		"reader.ExpiredExports": {false, "exporter: finds the exports of all taxpayers whose time is over"},

		// Metrics show sums over all taxpayers of an environment.
		"reader.jobFigures":      {true, "metrics: counts the jobs of all taxpayers"},
		"reader.DeliveryFigures": {true, "metrics: counts the deliveries of all taxpayers"},
		"reader.EndpointFigures": {true, "metrics: counts the endpoints of all taxpayers"},
		"reader.CertificateEnds": {true, "metrics: reads when the certificates of all taxpayers end"},
		"reader.NumberFigures":   {true, "metrics: counts the numbers of all taxpayers"},

		// Numbers belong to an RNC, and several taxpayers may have the same RNC.
		"Tx.AddNumberRange":  {true, "compares a range with those of all taxpayers that have the RNC"},
		"Tx.UpdateTaxpayer":  {false, "counts the ranges of a taxpayer in all environments"},
		"reader.SentSince":   {false, "fence: a witness needs the attempts of all taxpayers of an environment; reads their documents by their ids"},
		"reader.HasIssued":   {true, "fence: a new witness needs the numbers of all taxpayers"},
		"reader.HighestSent": {true, "fence: a number range is compared with all documents of its RNC"},
		"openLostAttempts":   {false, "fence: opens attempts of documents whose jobs were listed for their taxpayer"},
	}
}

// Every statement on rows of a taxpayer compares the environment and the taxpayer
// with an argument, so that no caller can reach the rows of another taxpayer. The
// exceptions are listed above, each with its reason.
func TestStatementsAreScoped(t *testing.T) {
	t.Parallel()
	scoped, all := tables(t)
	used := map[string]bool{}        // tables that a statement names
	exceptional := map[string]bool{} // functions that need their exception
	exceptions := unscopedFunctions()
	for _, s := range statements(t) {
		names := tablesIn(s.text, all)
		for _, name := range names {
			used[name] = true
		}
		if !slices.ContainsFunc(names, func(name string) bool { return scoped[name] }) {
			continue
		}
		if !regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`).MatchString(s.text) {
			t.Errorf("%s: the test cannot check a part of a statement:\n%s", s.function, s.text)
			continue
		}
		environment, taxpayer := scopeOf(s.text)
		if environment && taxpayer {
			continue
		}
		exception, ok := exceptions[s.function]
		exceptional[s.function] = true
		if !ok || exception.environment && !environment {
			t.Errorf("%s: environment = $n: %v, taxpayer_id = $n: %v in\n%s", s.function, environment, taxpayer, s.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !used[name] && !strings.HasPrefix(name, "schema_") { // package database has the statements of those
			t.Errorf("no statement names the table %s: the test does not see its statements", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if !exceptional[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

// tables reads the names of all tables from a migrated database. scoped are those
// with the columns environment and taxpayer_id; sharedTables must list all others.
func tables(t *testing.T) (scoped, all map[string]bool) {
	t.Helper()
	s := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
	all, scoped = map[string]bool{}, map[string]bool{}
	for _, name := range lines(t, s, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`) {
		columns := lines(t, s, `SELECT name FROM pragma_table_info('`+name+`')`)
		all[name] = true
		scoped[name] = slices.Contains(columns, "environment") && slices.Contains(columns, "taxpayer_id")
	}
	shared := sharedTables()
	for name := range all {
		if _, listed := shared[name]; listed == scoped[name] {
			t.Errorf("table %s: has environment and taxpayer_id: %v, is listed in sharedTables: %v", name, scoped[name], listed)
		}
	}
	for name := range shared {
		if !all[name] {
			t.Errorf("sharedTables lists %s, which is no table", name)
		}
	}
	return scoped, all
}

// tablesIn returns the tables that a text reads or writes.
func tablesIn(text string, all map[string]bool) (names []string) {
	for _, m := range regexp.MustCompile(`(?i)(?:\b(?:FROM|INTO|UPDATE|JOIN|EXISTS)|,)\s+(\w+)`).FindAllStringSubmatch(text, -1) {
		if all[m[1]] {
			names = append(names, m[1])
		}
	}
	return names
}

// scopeOf reports whether a statement is limited to an environment and to a taxpayer.
// INSERT … VALUES must set both columns; any other statement must compare them with an
// argument. A comparison after OR does not limit anything.
func scopeOf(text string) (environment, taxpayer bool) {
	if m := regexp.MustCompile(`^\s*INSERT INTO \w+ \(([^)]*)\)\s*VALUES`).FindStringSubmatch(text); m != nil {
		columns := regexp.MustCompile(`\w+`).FindAllString(m[1], -1)
		return slices.Contains(columns, "environment"), slices.Contains(columns, "taxpayer_id")
	}
	_, where, _ := strings.Cut(text, "WHERE")
	where = regexp.MustCompile(`\bOR \w*\.?(environment|taxpayer_id) = `).ReplaceAllString(where, "")
	compares := func(column string) bool {
		return regexp.MustCompile(`\b` + column + ` = \$\d`).MatchString(where)
	}
	return compares("environment"), compares("taxpayer_id")
}

// sourceStatement is a text with SQL in the source of the package.
type sourceStatement struct {
	function string // receiver.name, or name
	text     string
}

// statements returns the strings in the functions of the package, with the values of
// its constants.
func statements(t *testing.T) (found []sourceStatement) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	constants := map[string]ast.Expr{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
				for _, spec := range group.Specs {
					value := spec.(*ast.ValueSpec)
					for i := range value.Values {
						constants[value.Names[i].Name] = value.Values[i]
					}
				}
			}
		}
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				for _, text := range texts(fn.Body, constants) {
					found = append(found, sourceStatement{functionName(fn), text})
				}
			}
		}
	}
	return found
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	return receiver.(*ast.Ident).Name + "." + fn.Name.Name
}

// texts returns the string expressions of a function, each as a whole.
func texts(body *ast.BlockStmt, constants map[string]ast.Expr) (found []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				found = append(found, textOf(e, constants))
				return false
			}
		case *ast.BasicLit:
			if e.Kind == token.STRING {
				found = append(found, textOf(e, constants))
			}
		case *ast.Ident:
			if constants[e.Name] != nil {
				found = append(found, textOf(e, constants))
			}
		}
		return true
	})
	return found
}

// textOf returns the value of a string expression. A part that is neither a literal
// nor a constant becomes «».
func textOf(e ast.Expr, constants map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return textOf(e.X, constants) + textOf(e.Y, constants)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.Ident:
		if value := constants[e.Name]; value != nil {
			return textOf(value, constants)
		}
	}
	return "«»"
}
