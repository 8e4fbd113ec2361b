package report

import (
	"fmt"
	"strings"

	"flux-verify-gate/gate"
)

// SummaryLimit is the size in bytes that Summary keeps to. The runner drops a
// summary of more than 1 MiB as a whole (actions/runner v2.336).
const SummaryLimit = 200 << 10

// What each part of the summary may take, in bytes; together, with what is
// bounded by itself (headline, diagram, captions), less than SummaryLimit.
const (
	findingsBudget = 84 << 10
	signersBudget  = 24 << 10
	policyBudget   = 24 << 10
	ownersBudget   = 12 << 10
	passedBudget   = 8 << 10
)

// How many bytes of one text a table cell shows, before it is encoded.
const (
	cellLimit  = 500
	shortLimit = 250
)

// Summary is the job summary in Markdown: the verdict, a table of every finding
// that is not a pass, the chain from the signers to the signature with the link
// that does not hold, who signed, and the policy to paste if the live one is
// wrong. It is at most SummaryLimit bytes; what did not fit is counted.
func Summary(r gate.Report, s Style) string {
	r = settle(r)
	p := &page{style: s}
	p.headline(r)
	p.findings(r)
	p.chain(r)
	p.signers(r)
	p.suggestion(r)
	p.policy(r)
	p.owners(r)
	p.passed(r)
	p.footer(r)
	return p.b.String()
}

type page struct {
	b     strings.Builder
	style Style
}

func (p *page) printf(format string, args ...any) {
	fmt.Fprintf(&p.b, format, args...)
}

// more says how much a table left out, and where it is.
func (p *page) more(n int, what string) {
	if n == 0 {
		return
	}
	where := "the JSON report"
	if p.style.ReportPath != "" {
		where += " " + code(p.style.ReportPath, shortLimit)
	}
	p.printf("\n%d more %s: see %s.\n", n, what, where)
}

// linked is a code as a link to its explanation.
func (p *page) linked(c gate.Code) string {
	text := code(string(c), shortLimit)
	if link := p.style.link(c); link != "" {
		return "[" + text + "](" + link + ")"
	}
	return text
}

var verdictWords = map[gate.Verdict]string{
	gate.Verified:  "✅ Verified",
	gate.Rejected:  "❌ Rejected",
	gate.Undecided: "❓ Undecided",
}

var outcomeMarks = map[gate.Outcome]string{
	gate.Pass:    "✅",
	gate.Fail:    "❌",
	gate.Unknown: "❓",
	gate.Note:    "💬",
}

func mark(o gate.Outcome) string {
	if m, ok := outcomeMarks[o]; ok {
		return m
	}
	return "❓"
}

func (p *page) headline(r gate.Report) {
	p.printf("## %s", verdictWords[r.Verdict])
	if r.Verdict != gate.Verified {
		p.printf(": %s", p.linked(r.Reason))
	}
	p.printf("\n\n")
	switch f, ok := cause(r); {
	case ok:
		p.printf("**%s: %s.**\n\n", prose(object(r), shortLimit), prose(strings.TrimSuffix(f.Title, "."), cellLimit))
	case r.Verdict == gate.Verified:
		p.printf("**%s: every check that was asked for passed.**\n\n", prose(object(r), shortLimit))
	default:
		p.printf("**%s.**\n\n", prose(object(r), shortLimit))
	}
	fact := func(label, text string) {
		if text != "" {
			p.printf("- %s: %s\n", label, text)
		}
	}
	fact("Serving", code(r.Source.Revision, shortLimit))
	fact("Expected", code(r.Expected.Digest, shortLimit))
	fact("From", code(r.Source.URL, shortLimit))
	fact("Canary", prose(canaryText(r), cellLimit))
	fact("Looked at", code(origin(r), shortLimit))
	fact("Judged", prose(timing(r), shortLimit))
	fact("Checks", tally(r))
	if text := standing(r); text != "" {
		p.printf("\n> %s.\n", prose(strings.ToUpper(text[:1])+text[1:], shortLimit))
	}
}

func (p *page) findings(r gate.Report) {
	all := telling(r)
	if len(all) == 0 {
		return
	}
	rows := make([][]string, len(all))
	for i, f := range all {
		rows[i] = []string{
			mark(f.Outcome),
			p.linked(f.Code) + "<br>" + prose(f.Title, cellLimit),
			code(f.Expected, cellLimit),
			code(f.Found, cellLimit),
			prose(f.Remedy, cellLimit),
		}
	}
	text, left := table([]string{"", "Check", "Expected", "Found", "Next step"}, rows, findingsBudget)
	p.printf("\n%s", text)
	p.more(left, "findings")
}

func (p *page) chain(r gate.Report) {
	if d := diagram(r); d != "" {
		p.printf("\n```mermaid\n%s```\n", d)
	}
}

func (p *page) signers(r gate.Report) {
	if len(r.Signers) == 0 {
		return
	}
	rows := make([][]string, len(r.Signers))
	for i, s := range r.Signers {
		sign, why := "❌", prose(s.Why, cellLimit)
		switch {
		case s.Verified && s.Counts:
			sign, why = "✅", "counts"
		case s.Verified:
			sign = "💬"
		}
		who := code(s.Subject, cellLimit)
		if s.Key != "" {
			who = "key " + code(s.Key, shortLimit)
		}
		rows[i] = []string{sign, who, code(s.Issuer, shortLimit), prose(how(s), shortLimit), why}
	}
	text, left := table([]string{"", "Signed by", "Issuer", "Form", "Why it counts or not"}, rows, signersBudget)
	p.printf("\n### Signatures found in the registry\n\n%s", text)
	p.more(left, "signatures")
}

func (p *page) suggestion(r gate.Report) {
	s, ok := suggested(r)
	if !ok {
		return
	}
	p.printf("\n### The policy to paste\n\n")
	if s.Entry != nil {
		p.printf("It accepts the required and allowed signers and nobody else.\n")
	} else {
		p.printf("It names the required Secret of public keys.\n")
	}
	verify, patch := s.VerifyYAML(), s.PatchYAML()
	if len(patch) > suggestionLimit {
		p.printf("\nIt is too long to be shown here.\n")
		p.more(1, "policy")
		return
	}
	inObject := func() {
		p.printf("\nIn the OCIRepository:\n\n```yaml\n%s```\n", verify)
	}
	inInstance := func() {
		p.printf("\nIn the FluxInstance, where flux-operator generates the OCIRepository. "+
			"A patch that hits nothing is dropped without an error, so run the gate again once it is applied.\n\n```yaml\n%s```\n", patch)
	}
	if ownedByOperator(r) {
		inInstance()
		return
	}
	inObject()
	p.printf("\n<details><summary>The same as a patch in a FluxInstance</summary>\n")
	inInstance()
	p.printf("\n</details>\n")
}

func (p *page) policy(r gate.Report) {
	var rows [][]string
	for _, w := range r.Policy.Witnesses {
		rows = append(rows, []string{"shows " + p.linked(w.Code), code(w.Issuer, cellLimit), code(w.Subject, cellLimit)})
	}
	for _, s := range r.Policy.Required {
		rows = append(rows, []string{"required", eitherOr(s.Issuer, s.IssuerPattern), eitherOr(s.Subject, s.SubjectPattern)})
	}
	for _, s := range r.Policy.Allowed {
		rows = append(rows, []string{"allowed", eitherOr(s.Issuer, s.IssuerPattern), eitherOr(s.Subject, s.SubjectPattern)})
	}
	for _, e := range r.Policy.Live.Identities {
		rows = append(rows, []string{"live", "pattern " + code(e.Issuer, cellLimit), "pattern " + code(e.Subject, cellLimit)})
	}
	if r.Policy.Keys != "" {
		rows = append(rows, []string{"required", "", "keys of Secret " + code(r.Policy.Keys, shortLimit)})
	}
	if r.Policy.Live.Secret != "" {
		rows = append(rows, []string{"live", "", "keys of Secret " + code(r.Policy.Live.Secret, shortLimit)})
	}
	if len(rows) == 0 {
		return
	}
	text, left := table([]string{"", "Issuer", "Subject"}, rows, policyBudget)
	p.printf("\n<details><summary>The policy that was asked for, and the live one</summary>\n\n%s", text)
	p.more(left, "entries")
	p.printf("\n</details>\n")
}

func eitherOr(exact, pattern string) string {
	if exact != "" {
		return code(exact, cellLimit)
	}
	return "pattern " + code(pattern, cellLimit)
}

func (p *page) owners(r gate.Report) {
	if len(r.Owners) == 0 || r.Verdict == gate.Verified {
		return
	}
	rows := make([][]string, len(r.Owners))
	for i, o := range r.Owners {
		last := ""
		if !o.Time.IsZero() {
			last = o.Time.Format("2006-01-02 15:04 UTC")
		}
		rows[i] = []string{code(o.Manager, shortLimit), prose(o.Operation, shortLimit), code(strings.Join(o.Fields, ", "), cellLimit), last}
	}
	text, left := table([]string{"Manager", "Operation", "Fields", "Last write"}, rows, ownersBudget)
	p.printf("\n<details><summary>Who owns the fields of the object</summary>\n\n%s", text)
	p.more(left, "owners")
	p.printf("\n</details>\n")
}

func (p *page) passed(r gate.Report) {
	passed := passes(r)
	if len(passed) == 0 {
		return
	}
	p.printf("\n<details><summary>%d checks passed</summary>\n\n", len(passed))
	start := p.b.Len()
	for i, f := range passed {
		text := p.linked(f.Code)
		if p.b.Len()-start+len(text) > passedBudget {
			p.more(len(passed)-i, "checks")
			break
		}
		if i > 0 {
			p.printf(" · ")
		}
		p.printf("%s", text)
	}
	p.printf("\n\n</details>\n")
}

func (p *page) footer(r gate.Report) {
	var parts []string
	if r.Gate.Version != "" {
		parts = append(parts, "Flux Verify Gate "+prose(r.Gate.Version, 100))
	}
	if r.Gate.Forms != "" {
		parts = append(parts, "table of issuable identities "+prose(r.Gate.Forms, 100))
	}
	if p.style.ReportPath != "" {
		parts = append(parts, "report "+code(p.style.ReportPath, shortLimit))
	}
	if len(parts) > 0 {
		p.printf("\n<sub>%s</sub>\n", strings.Join(parts, " · "))
	}
}
