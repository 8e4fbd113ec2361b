package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxYAMLDepth bounds the nesting of a YAML document.
const maxYAMLDepth = 1000

// parseYAML reads every document of a YAML stream into the values that JSON
// would give. It works on the parsed nodes, because a plain decode stops after
// the first document, expands aliases, and guesses types: whatever has no
// counterpart in JSON (anchors, merge keys, other tags, NaN) is an error that
// names its line.
func parseYAML(data []byte) ([]any, error) {
	var documents []any
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("YAML that cannot be read: %w", err)
		}
		document, err := fromYAML(&node, 0)
		if err != nil {
			return nil, fmt.Errorf("YAML that cannot be read: %w", err)
		}
		documents = append(documents, document)
	}
}

func fromYAML(node *yaml.Node, depth int) (any, error) {
	if depth > maxYAMLDepth {
		return nil, fmt.Errorf("line %d: more than %d levels", node.Line, maxYAMLDepth)
	}
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return nil, fmt.Errorf("line %d: an anchor or alias, which is not supported", node.Line)
	}
	switch node.Kind {
	case 0:
		return nil, nil
	case yaml.DocumentNode:
		if len(node.Content) != 1 {
			return nil, nil
		}
		return fromYAML(node.Content[0], depth+1)
	case yaml.MappingNode:
		if tag := node.ShortTag(); tag != "!!map" {
			return nil, fmt.Errorf("line %d: the tag %s, which is not supported", node.Line, strconv.Quote(clip(tag)))
		}
		return mappingFromYAML(node, depth)
	case yaml.SequenceNode:
		if tag := node.ShortTag(); tag != "!!seq" {
			return nil, fmt.Errorf("line %d: the tag %s, which is not supported", node.Line, strconv.Quote(clip(tag)))
		}
		list := make([]any, 0, len(node.Content))
		for _, entry := range node.Content {
			value, err := fromYAML(entry, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	default:
		return scalarFromYAML(node)
	}
}

func mappingFromYAML(node *yaml.Node, depth int) (any, error) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" || key.ShortTag() != "!!str" {
			return nil, fmt.Errorf("line %d: a field name that is not a plain string", key.Line)
		}
		if _, twice := object[key.Value]; twice {
			return nil, fmt.Errorf("line %d: the field %s twice", key.Line, strconv.Quote(clip(key.Value)))
		}
		value, err := fromYAML(node.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		object[key.Value] = value
	}
	return object, nil
}

func scalarFromYAML(node *yaml.Node) (any, error) {
	switch tag := node.ShortTag(); tag {
	// A time without quotes is a string in the Kubernetes API.
	case "!!str", "!!timestamp":
		return node.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		switch node.Value {
		case "true", "True", "TRUE":
			return true, nil
		case "false", "False", "FALSE":
			return false, nil
		}
	case "!!int":
		if number, err := strconv.ParseInt(node.Value, 10, 64); err == nil {
			return number, nil
		}
	case "!!float":
		number, err := strconv.ParseFloat(node.Value, 64)
		if err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
			return number, nil
		}
	}
	return nil, fmt.Errorf("line %d: the value %s of type %s, which JSON cannot hold",
		node.Line, strconv.Quote(clip(node.Value)), node.ShortTag())
}
