package gate

import (
	"fmt"
	"slices"
	"strings"

	"flux-verify-gate/gate/signer"
)

// shown is how many candidates are listed one by one.
const shown = 4

// sides says which identities the gate saw and where, and then which layout the
// controller looks at and what it makes of it: by version, as far as the
// versions differ.
func (c comparison) sides() string {
	var seen []string
	for n, s := range c.found {
		if n == shown && len(c.found) > shown+1 {
			seen = append(seen, fmt.Sprintf("and %d more", len(c.found)-shown))
			break
		}
		text := describe(s)
		if len(c.found) > 1 {
			text = fmt.Sprintf("(%d) %s", n+1, text)
		}
		seen = append(seen, text)
	}
	if len(seen) == 0 {
		seen = []string{"nothing"}
	}
	type group struct {
		versions []series
		text     string
	}
	var groups []group
	for _, v := range c.versions {
		text := c.tell(c.now(v))
		if n := len(groups); n > 0 && groups[n-1].text == text {
			groups[n-1].versions = append(groups[n-1].versions, v)
			continue
		}
		groups = append(groups, group{[]series{v}, text})
	}
	var parts []string
	for _, g := range groups {
		parts = append(parts, names(g.versions)+" "+g.text)
	}
	return "the gate sees " + strings.Join(seen, "; ") + ". source-controller " + strings.Join(parts, "; ")
}

// tell says where a controller looks and what it makes of it.
func (c comparison) tell(o opinion) string {
	text := o.why
	switch {
	case o.unsure && o.looked == LayoutBundle, o.looked == "":
	case o.looked == LayoutBundle:
		text = "looks at the bundles only and " + text
	default:
		text = "looks at the .sig tag and " + text
	}
	if o.by == nil {
		return text
	}
	if len(c.found) == 1 {
		return text + " it"
	}
	return fmt.Sprintf("%s (%d)", text, 1+slices.IndexFunc(c.found, func(s Signature) bool {
		return s.Verified && s.Layout == o.by.Layout && s.Kind == o.by.Kind && s.Identity == o.by.Identity && s.Key == o.by.Key
	}))
}

// describe says in a few words what the gate saw of one candidate.
func describe(s Signature) string {
	kind, where := string(s.Kind), "in a bundle"
	if kind == "" {
		kind = "candidate"
	}
	if s.Layout == LayoutTag {
		where = "under the .sig tag"
	}
	text := "a valid " + kind + " " + where
	if !s.Verified {
		text = "a " + kind + " " + where + ", refused at the step " + string(s.Step)
	}
	switch {
	case s.Identity != (signer.Identity{}):
		text += ", by " + s.Identity.Subject
	case s.Key != "":
		text += ", by a required key"
	}
	if !s.Verified && slices.ContainsFunc(s.EntryKinds, rekorV2) {
		text += ", with a log entry " + strings.Join(s.EntryKinds, ", ")
	}
	return text
}

// names lists versions, neighbours as a range.
func names(list []series) string {
	var texts []string
	for i := 0; i < len(list); i++ {
		first := i
		for i+1 < len(list) && place(list[i+1]) == place(list[i])+1 {
			i++
		}
		switch i - first {
		case 0:
			texts = append(texts, list[i].name)
		case 1:
			texts = append(texts, list[first].name, list[i].name)
		default:
			texts = append(texts, list[first].name+" to "+list[i].name)
		}
	}
	return strings.Join(texts, ", ")
}

// place is where a version stands among those that are known.
func place(v series) int {
	return slices.IndexFunc(supported, func(other series) bool { return other.name == v.name })
}
