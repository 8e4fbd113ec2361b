package signer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Bounds on the text that Parse reads.
const (
	maxBytes   = 1 << 20
	maxSigners = 1000
	maxErrors  = 20 // reported at once
)

// Parse reads a list of signers from YAML or JSON, strictly. Each has exactly one
// of issuer and issuer-pattern and exactly one of subject and subject-pattern, or
// the shorthand github; and any of the certificate claims source-repository,
// source-repository-id, source-ref, runner-environment, build-trigger and
// build-signer-uri. Patterns are Go RE2 and match the whole value.
//
// Everything else is an error that names the signer, its line and the field, what
// was expected and what was found. Several of them are joined.
func Parse(data []byte) ([]Signer, error) {
	root, err := readTree(data)
	if err != nil {
		return nil, err
	}
	if root.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("line %d: expected a list of signers, found %s; begin each signer with \"- \"",
			root.Line, kindOf(root))
	}
	if n := len(root.Content); n == 0 || n > maxSigners {
		return nil, fmt.Errorf("line %d: expected 1 to %d signers, found %d", root.Line, maxSigners, n)
	}
	var signers []Signer
	var problems []error
	for i, item := range root.Content {
		r := &reader{where: fmt.Sprintf("signer %d (line %d)", i+1, item.Line)}
		signers = append(signers, r.signer(item))
		problems = append(problems, r.problems...)
	}
	if n := len(problems); n > maxErrors {
		problems = append(problems[:maxErrors], fmt.Errorf("and %d more errors", n-maxErrors))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return signers, nil
}

// reader reads one signer and collects what is wrong with it.
type reader struct {
	where    string
	problems []error
}

// fail notes a problem at the node; a line is added if it is not the signer's.
func (r *reader) fail(node *yaml.Node, format string, args ...any) {
	where := r.where
	if node != nil && !strings.HasSuffix(where, fmt.Sprintf("(line %d)", node.Line)) {
		where = fmt.Sprintf("%s, line %d", where, node.Line)
	}
	r.problems = append(r.problems, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

// signerFields are the fields of a signer in the order in which messages list
// them.
var signerFields = []string{
	"issuer", "issuer-pattern", "subject", "subject-pattern", "github", "source-repository", "source-repository-id",
	"source-ref", "runner-environment", "build-trigger", "build-signer-uri",
}

func (r *reader) signer(node *yaml.Node) Signer {
	values := r.fields(node, "", signerFields)
	if values == nil {
		return Signer{}
	}
	s := Signer{
		Issuer:         r.text(values, "issuer"),
		IssuerPattern:  r.pattern(values, "issuer-pattern"),
		Subject:        r.text(values, "subject"),
		SubjectPattern: r.pattern(values, "subject-pattern"),
		Claims: Claims{
			SourceRepository:   r.text(values, "source-repository"),
			SourceRepositoryID: r.number(values, "source-repository-id"),
			SourceRef:          r.text(values, "source-ref"),
			RunnerEnvironment:  r.text(values, "runner-environment"),
			BuildTrigger:       r.text(values, "build-trigger"),
			BuildSignerURI:     r.text(values, "build-signer-uri"),
		},
	}
	if github := values["github"]; github != nil {
		for _, name := range signerFields[:4] {
			if values[name] != nil {
				r.fail(values[name], "expected %s or github, found both; github says issuer and subject already", name)
			}
		}
		r.gitHub(github, &s)
		return s
	}
	r.oneOf(node, values, "issuer", "issuer-pattern")
	r.oneOf(node, values, "subject", "subject-pattern")
	for _, name := range []string{"issuer", "subject"} {
		if value := values[name]; value != nil && strings.HasPrefix(value.Value, "^") {
			r.fail(value, "%s is compared exactly, found the pattern %q; call it %s-pattern", name, value.Value, name)
		}
	}
	return s
}

// fields returns the values of a mapping by name, or nil if it is none.
func (r *reader) fields(node *yaml.Node, of string, known []string) map[string]*yaml.Node {
	if node.Kind != yaml.MappingNode {
		r.fail(node, "expected %sfields such as %s: …, found %s", of, known[0], kindOf(node))
		return nil
	}
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := key.Value
		switch {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "expected the name of a field, found %s", kindOf(key))
		case !slices.Contains(known, name):
			r.fail(key, "unknown %sfield %q; %s", of, name, suggestion(name, known))
		case values[name] != nil:
			r.fail(key, "%sfield %q stands twice (first on line %d); keep one", of, name, values[name].Line)
		default:
			values[name] = value
		}
	}
	return values
}

func (r *reader) oneOf(node *yaml.Node, values map[string]*yaml.Node, exact, pattern string) {
	switch {
	case values[exact] != nil && values[pattern] != nil:
		r.fail(values[pattern], "expected exactly one of %s and %s, found both; keep one", exact, pattern)
	case values[exact] == nil && values[pattern] == nil:
		r.fail(node, "expected exactly one of %s and %s, found neither; add one", exact, pattern)
	}
}

// text returns the string value of the field, "" if there is none.
func (r *reader) text(values map[string]*yaml.Node, name string) string {
	node := values[name]
	if node == nil {
		return ""
	}
	switch {
	case node.Kind != yaml.ScalarNode:
		r.fail(node, "%s: expected a string, found %s", name, kindOf(node))
	case node.ShortTag() == "!!null" || node.Value == "":
		r.fail(node, "%s: expected a string, found nothing; fill it or leave the field out", name)
	case node.ShortTag() != "!!str":
		r.fail(node, "%s: expected a string, found %s; put it in quotes", name, kindOf(node))
	case strings.TrimSpace(node.Value) != node.Value:
		r.fail(node, "%s: expected no space around the value, found %q", name, node.Value)
	case strings.ContainsFunc(node.Value, unicode.IsControl):
		r.fail(node, "%s: expected no control character, found %q", name, node.Value)
	default:
		return node.Value
	}
	return ""
}

// decimal is how an integer is written the same way by everyone.
var decimal = regexp.MustCompile(`^[1-9][0-9]*$`)

// number is text for a value that people write as a number: a plain decimal
// integer is taken as it is spelled, which is how the certificate has it.
func (r *reader) number(values map[string]*yaml.Node, name string) string {
	if node := values[name]; node != nil && node.Kind == yaml.ScalarNode && node.ShortTag() == "!!int" &&
		decimal.MatchString(node.Value) {
		return node.Value
	}
	return r.text(values, name)
}

// pattern returns the pattern of the field, "" if there is none.
func (r *reader) pattern(values map[string]*yaml.Node, name string) string {
	text := r.text(values, name)
	if text == "" {
		return ""
	}
	if _, err := regexp.Compile(text); err != nil {
		r.fail(values[name], "%s: expected a Go RE2 pattern, found %q: %w", name, text, err)
		return ""
	}
	empty, err := matchesNothing(text)
	switch {
	case err != nil:
		r.fail(values[name], "%s: cannot tell whether %q matches anything: %w; write a simpler one", name, abbreviate(text), err)
	case empty:
		r.fail(values[name], "%s: expected a pattern that matches something, found %q, which no value matches", name, text)
	}
	return text
}

func abbreviate(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
