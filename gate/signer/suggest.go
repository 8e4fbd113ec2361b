package signer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// ConflictError says that no single entry accepts the signers and nobody else: an
// entry pairs each of its issuers with each of its subjects, and one such pair is
// an identity of neither signer. Two policies are needed, or one of the two signers
// has to be allowed everything that the other one is.
type ConflictError struct {
	// Issuer is a signer that has the witness's issuer, Subject one that has its
	// subject.
	Issuer, Subject Signer
	Witness         Identity
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("no single entry accepts %s and %s and nobody else: it would accept subject %q from issuer %q too",
		e.Issuer, e.Subject, e.Witness.Subject, e.Witness.Issuer)
}

// Suggest returns one entry, anchored and escaped, that accepts the required and
// the allowed signers and nobody else. Both directions are proved before it is
// returned, over the identities that can be issued under the public-good Sigstore:
// with signers of several issuers an exact entry exists only there, because an
// entry pairs every issuer with every subject, and some of these pairs nobody can
// have. Where somebody can, the error is a *ConflictError. It wraps ErrTooLarge if
// the proof is too large, and ErrBadSigner if there is no signer.
//
// everything says, as Question.Everything does, that every pair of strings can be
// issued, as under a private Sigstore.
func Suggest(ctx context.Context, required, allowed []Signer, everything bool) (Entry, error) {
	signers := slices.Concat(required, allowed)
	if len(signers) == 0 {
		return Entry{}, fmt.Errorf("%w: expected at least one, found none", ErrBadSigner)
	}
	var issuers, subjects []string
	for _, s := range signers {
		if err := s.valid(); err != nil {
			return Entry{}, err
		}
		issuers = appendNew(issuers, source(s.issuer()[0]))
		subjects = appendNew(subjects, source(s.subject()[0]))
	}
	var err error
	for _, join := range []func([]string) string{factored, alternation} {
		e := Entry{anchored(join(issuers)), anchored(join(subjects))}
		if err = exactly(ctx, e, signers, everything); err == nil {
			return e, nil
		}
	}
	return Entry{}, err
}

// exactly proves that the entry accepts the signers and nobody else.
func exactly(ctx context.Context, e Entry, signers []Signer, everything bool) error {
	forms := formsFor(everything)
	for i := range forms {
		forms[i].SecondNameOf = "" // nothing is excused
	}
	a := prove(ctx, Question{Live: []Entry{e}, Required: signers, Everything: everything}, forms)
	switch {
	case len(a.Invalid) > 0:
		return fmt.Errorf("the entry does not compile: %w", a.Invalid[0].Err)
	case len(a.Missing) > 0:
		return fmt.Errorf("the entry refuses subject %q from issuer %q", a.Missing[0].Witness.Subject, a.Missing[0].Witness.Issuer)
	case a.TooWide != nil:
		return conflict(signers, *a.TooWide)
	}
	for _, u := range a.Undecided {
		if u.Question != askLoose {
			return u.Err
		}
	}
	return nil
}

// conflict names the signers whose issuer and subject met.
func conflict(signers []Signer, id Identity) error {
	e := &ConflictError{Witness: id}
	for _, s := range signers {
		issuer, err1 := s.issuer()[0].matcher()
		subject, err2 := s.subject()[0].matcher()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if issuer(id.Issuer) && e.Issuer == (Signer{}) {
			e.Issuer = s
		}
		if subject(id.Subject) && e.Subject == (Signer{}) {
			e.Subject = s
		}
	}
	return e
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func anchored(text string) string { return "^" + text + "$" }

// source returns the pattern as text that can stand inside another pattern.
func source(p pattern) string {
	if p.mode == exact {
		return regexp.QuoteMeta(p.text)
	}
	text := p.text
	if strings.Contains(text, `\Q`) { // a quote may not end where the pattern does
		if re, err := syntax.Parse(text, syntax.Perl); err == nil {
			text = re.String()
		}
	}
	// The anchors of a pattern that is one sequence say what the entry says anyway.
	if inner := bare(text); inner != text && !splits(text) && !setsFlags.MatchString(text) {
		if _, err := syntax.Parse(inner, syntax.Perl); err == nil {
			text = inner
		}
	}
	if splits(text) || setsFlags.MatchString(text) {
		return "(?:" + text + ")"
	}
	return text
}

// bare returns the pattern without a ^ at its beginning and a $ at its end.
func bare(text string) string {
	text = strings.TrimPrefix(text, "^")
	if inner, ok := strings.CutSuffix(text, "$"); ok {
		escapes := len(inner) - len(strings.TrimRight(inner, `\`))
		if escapes%2 == 0 {
			return inner
		}
	}
	return text
}

// setsFlags finds a flag that would go on behind the pattern.
var setsFlags = regexp.MustCompile(`\(\?[a-zA-Z-]+\)`)

// splits reports whether the pattern has an alternative at its top.
func splits(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			// A bracket that comes first, or first after ^, is a member of the class.
			for i++; i < len(text) && (text[i] == '^' || text[i] == ']') && (text[i-1] == '[' || text[i-1] == '^'); i++ {
			}
			for ; i < len(text) && text[i] != ']'; i++ {
				switch {
				case text[i] == '\\':
					i++
				case strings.HasPrefix(text[i:], "[:"):
					if end := strings.Index(text[i:], ":]"); end >= 0 {
						i += end + 1
					}
				}
			}
		case '(':
			depth++
		case ')':
			depth--
		case '|':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

func alternation(sources []string) string {
	if len(sources) == 1 {
		return sources[0]
	}
	return "(?:" + strings.Join(sources, "|") + ")"
}

// factored is an alternation with what its sources begin with in common put in
// front, cut behind a slash or an @. The caller proves that it came out right.
func factored(sources []string) string {
	common := sources[0]
	for _, s := range sources[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	common = common[:strings.LastIndexAny(common, "/@")+1]
	if re, err := syntax.Parse(common, syntax.Perl); err != nil || re.Op != syntax.OpLiteral || len(sources) == 1 {
		return alternation(sources)
	}
	rest := make([]string, len(sources))
	for i, s := range sources {
		rest[i] = s[len(common):]
	}
	return common + alternation(rest)
}
