package signer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// readTree reads one YAML or JSON document as a tree of nodes that know their
// line, and refuses what would let one text mean two things: several documents,
// anchors, aliases and explicit tags.
func readTree(data []byte) (*yaml.Node, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	switch {
	case len(data) > maxBytes:
		return nil, fmt.Errorf("expected at most %d bytes, found %d", maxBytes, len(data))
	case !utf8.Valid(data):
		return nil, errors.New("expected UTF-8 text, found other bytes")
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("expected a list of signers, found nothing")
	}
	// JSON is not quite YAML: YAML does not join escaped surrogates, for one.
	if json.Valid(data) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		return readJSON(d, data)
	}
	return readYAML(data)
}

func readYAML(data []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, another yaml.Node
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errors.New("expected a list of signers, found nothing")
	} else if err != nil {
		return nil, fmt.Errorf("expected YAML or JSON: %w", err)
	}
	switch err := d.Decode(&another); {
	case err == nil:
		return nil, fmt.Errorf("line %d: expected one document, found another one", another.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("expected YAML or JSON: %w", err)
	}
	root := document.Content[0]
	return root, plain(root)
}

// plain reports anything in the tree that is written elsewhere or differently.
func plain(node *yaml.Node) error {
	switch {
	case node.Kind == yaml.AliasNode:
		return fmt.Errorf("line %d: expected a value, found the alias *%s; write the value out", node.Line, node.Value)
	case node.Anchor != "":
		return fmt.Errorf("line %d: expected a value, found the anchor &%s; leave it out", node.Line, node.Anchor)
	case node.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("line %d: expected a value, found the tag %s; leave it out", node.Line, node.Tag)
	}
	for _, child := range node.Content {
		if err := plain(child); err != nil {
			return err
		}
	}
	return nil
}

// readJSON reads the next value, of a text that is known to be JSON.
func readJSON(d *json.Decoder, data []byte) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("expected JSON: %w", err)
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: 1 + bytes.Count(data[:d.InputOffset()], []byte("\n"))}
	switch t := token.(type) {
	case json.Delim:
		node.Kind = yaml.SequenceNode
		if t == '{' {
			node.Kind = yaml.MappingNode
		}
		for d.More() {
			child, err := readJSON(d, data) // a key is read as any string
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		if _, err := d.Token(); err != nil {
			return nil, fmt.Errorf("expected JSON: %w", err)
		}
	case string:
		node.Tag, node.Value = "!!str", t
	case json.Number:
		node.Tag, node.Value = "!!int", t.String()
		if strings.ContainsAny(node.Value, ".eE") {
			node.Tag = "!!float"
		}
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(t)
	default:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, nil
}

// kindOf says what a node is, for a message.
func kindOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	switch node.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return fmt.Sprintf("the text %q", abbreviate(node.Value))
	case "!!bool":
		return "the boolean " + node.Value
	case "!!int", "!!float":
		return "the number " + abbreviate(node.Value)
	case "!!timestamp":
		return "the time " + abbreviate(node.Value)
	}
	return fmt.Sprintf("%q", abbreviate(node.Value))
}
