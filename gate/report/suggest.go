package report

import (
	"fmt"
	"slices"
	"strings"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// Suggestion is a policy to paste. Its texts are written as they are, in YAML
// that holds any string on one line, because an escaped pattern would be another
// pattern.
type Suggestion struct {
	// Entry is the identity matcher; nil for a policy with a key.
	Entry *signer.Entry
	// Secret is the Secret of public keys, for a policy with a key.
	Secret string
	// TrustedRoot is the Secret of the trusted root; empty for public Sigstore.
	TrustedRoot string
}

// VerifyYAML is the suggestion as it stands in an OCIRepository, from "spec:"
// on.
func (s Suggestion) VerifyYAML() string {
	return "spec:\n  verify:\n" + s.value("    ")
}

// PatchYAML is the suggestion as a patch in a FluxInstance, from "spec:" on. It
// adds (op: replace fails where there is no policy yet) and names no object,
// because the operator may rename the one that it generates. A patch that hits
// nothing is dropped without a word (flux-operator v0.59, kustomize api
// v0.21.1), so whoever applies it has to look at the object afterwards.
func (s Suggestion) PatchYAML() string {
	return `spec:
  kustomize:
    patches:
      - target:
          kind: OCIRepository
        patch: |
          - op: add
            path: /spec/verify
            value:
` + s.value("              ")
}

// UnknownSecret stands in a suggestion for the Secret of a private Sigstore's
// trusted root, whose name only the reader knows.
const UnknownSecret = "THE-SECRET-WITH-trusted_root.json"

func (s Suggestion) value(indent string) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, indent+format+"\n", args...)
	}
	line("provider: cosign")
	if s.TrustedRoot != "" {
		line("trustedRootSecretRef:")
		line("  name: %s", yamlString(s.TrustedRoot))
	}
	if s.Entry == nil {
		line("secretRef:")
		line("  name: %s", yamlString(s.Secret))
		return b.String()
	}
	line("matchOIDCIdentity:")
	line("  - issuer: %s", yamlString(s.Entry.Issuer))
	line("    subject: %s", yamlString(s.Entry.Subject))
	return b.String()
}

// suggested returns what to paste where a finding about the policy failed.
func suggested(r gate.Report) (Suggestion, bool) {
	failed := slices.ContainsFunc(r.Findings, func(f gate.Finding) bool {
		return f.Outcome == gate.Fail && sectionOf(f.Code) == sectionPolicy
	})
	switch {
	case !failed:
		return Suggestion{}, false
	case r.Policy.Suggested != nil:
		root := r.Policy.Live.TrustedRoot
		if root == "" && r.Policy.PrivateRoot {
			root = UnknownSecret
		}
		return Suggestion{Entry: r.Policy.Suggested, TrustedRoot: root}, true
	case r.Policy.Keys != "":
		return Suggestion{Secret: r.Policy.Keys}, true
	}
	return Suggestion{}, false
}

// suggestionLimit is the longest suggestion in bytes that a page or log shows.
const suggestionLimit = 12 << 10

// suggestion is the text to paste and the kind of object to paste it into, for
// the log; empty if there is none.
func suggestion(r gate.Report) (where, text string) {
	s, ok := suggested(r)
	if !ok {
		return "", ""
	}
	where, text = "OCIRepository", s.VerifyYAML()
	if ownedByOperator(r) {
		where, text = "FluxInstance, because flux-operator makes the OCIRepository", s.PatchYAML()
	}
	if len(text) > suggestionLimit {
		text = string(Continued) + " it is too long to be shown here; the JSON report has it\n"
	}
	return where, text
}

// ownedByOperator says that flux-operator wrote the object, and will undo what
// is changed in it by hand.
func ownedByOperator(r gate.Report) bool {
	return slices.ContainsFunc(r.Owners, func(o gate.Owner) bool { return o.Manager == "flux-operator" })
}

// yamlString writes any string as a YAML scalar of one line: in single quotes
// if it is printable ASCII, else in double quotes with escapes. The quotes keep
// the text from beginning the line; "##" is broken because a log may show it.
func yamlString(s string) string {
	if !strings.Contains(s, "##") && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	var last rune
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '#' && last == '#':
			b.WriteString(`\x23`)
		case r >= 0x20 && r <= 0x7e:
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
		last = r
	}
	b.WriteByte('"')
	return b.String()
}
