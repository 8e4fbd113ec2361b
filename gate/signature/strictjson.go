package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// strictObject splits a JSON object into its members. It refuses what two
// readers could read differently: a member that stands twice, also where only
// the case differs (package encoding/json folds case and takes the last one),
// bytes that are not UTF-8, and anything behind the object.
func strictObject(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("expected JSON in UTF-8, found other bytes")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	start, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("expected a JSON object: %w", err)
	}
	if start != json.Delim('{') {
		return nil, fmt.Errorf("expected a JSON object, found %v", start)
	}
	members := make(map[string]json.RawMessage)
	folded := make(map[string]bool)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("expected a member of a JSON object: %w", err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("expected the name of a member, found %v", token)
		}
		fold := foldCase(name)
		if folded[fold] {
			return nil, fmt.Errorf("expected every member once, found %q twice", name)
		}
		folded[fold] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("expected a value for %q: %w", name, err)
		}
		members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("expected the end of a JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one JSON object, found more behind it")
	}
	return members, nil
}

// foldCase makes names equal that package encoding/json takes for the same one:
// those that differ in case only, in Unicode's simple folding.
func foldCase(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// only refuses members other than the named ones.
func only(members map[string]json.RawMessage, names ...string) error {
next:
	for name := range members {
		for _, known := range names {
			if name == known {
				continue next
			}
		}
		return fmt.Errorf("expected the members %s, found %q", strings.Join(names, ", "), name)
	}
	return nil
}

// text reads a member that must be a string. encoding/json would read null as
// an empty one.
func text(members map[string]json.RawMessage, name string) (string, error) {
	raw, ok := members[name]
	if !ok {
		return "", fmt.Errorf("expected the member %q, found none", name)
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("expected %q to be a string", name)
	}
	var value string
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", fmt.Errorf("expected %q to be a string: %w", name, err)
	}
	return value, nil
}

// object reads a member that must be an object.
func object(members map[string]json.RawMessage, name string) (map[string]json.RawMessage, error) {
	raw, ok := members[name]
	if !ok {
		return nil, fmt.Errorf("expected the member %q, found none", name)
	}
	value, err := strictObject(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}
