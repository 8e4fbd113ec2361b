package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/json"

	"flux-verify-gate/gate"
)

// MaxRecording bounds a recording, in bytes. An object in etcd has at most
// 1.5 MiB.
const MaxRecording = 16 << 20

// ReadRecording reads one OCIRepository from JSON or YAML: a single object, a
// List, an OCIRepositoryList, or several YAML documents. A recording with
// exactly one OCIRepository gives that one, whatever its name; of several,
// namespace and name select. Everything else is an *Error with the code
// bad-input that says what was found: no OCIRepository, no match, two matches,
// a field named twice, a recording longer than MaxRecording.
func ReadRecording(r io.Reader, namespace, name string) (gate.Source, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxRecording+1))
	if err != nil {
		return gate.Source{}, badRecording("a file that can be read", err.Error(), err)
	}
	if len(data) > MaxRecording {
		return gate.Source{}, badRecording(fmt.Sprintf("at most %d MiB", MaxRecording>>20), "more", nil)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return gate.Source{}, badRecording("an OCIRepository as JSON or YAML", "an empty file", nil)
	}
	documents, err := parseDocuments(data)
	if err != nil {
		return gate.Source{}, badRecording("JSON or YAML in which every field is named once", err.Error(), err)
	}
	var seen inventory
	for i, document := range documents {
		if err := seen.add(document); err != nil {
			if len(documents) > 1 {
				err = fmt.Errorf("document %d: %w", i+1, err)
			}
			return gate.Source{}, badRecording("Kubernetes objects", err.Error(), err)
		}
	}
	content, failure := seen.choose(namespace, name)
	if failure != nil {
		return gate.Source{}, failure
	}
	source, err := Decode(&unstructured.Unstructured{Object: content})
	if err != nil {
		return gate.Source{}, badRecording("", err.Error(), err)
	}
	return source, nil
}

func badRecording(expected, found string, cause error) *Error {
	return badInput("the recorded object cannot be used", expected, found,
		"record it with `kubectl get ocirepositories.source.toolkit.fluxcd.io NAME --namespace NAMESPACE --output json --show-managed-fields`", cause)
}

// parseDocuments reads JSON as JSON and all else as YAML. YAML alone would not
// do for JSON: its escapes differ (surrogate pairs).
func parseDocuments(data []byte) ([]any, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(data)
	if !bytes.HasPrefix(trimmed, []byte("{")) {
		return parseYAML(data)
	}
	document, err := parseJSON(trimmed)
	if err == nil {
		return []any{document}, nil
	}
	if documents, yamlErr := parseYAML(data); yamlErr == nil {
		return documents, nil
	}
	return nil, err
}

// parseJSON is strict: a field named twice is an error, and so is text that is
// not UTF-8, which Go's decoder would quietly replace.
func parseJSON(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("text that is not UTF-8")
	}
	var document any
	strict, err := json.UnmarshalStrict(data, &document, json.DisallowDuplicateFields)
	if err != nil {
		return nil, fmt.Errorf("JSON that cannot be read: %w", err)
	}
	if len(strict) > 0 {
		return nil, fmt.Errorf("JSON that cannot be read: %w", errors.Join(strict...))
	}
	return document, nil
}

// inventory is what a recording holds.
type inventory struct {
	sources []map[string]any
	others  []string
}

func (v *inventory) add(document any) error {
	if document == nil {
		return nil
	}
	object, ok := document.(map[string]any)
	if !ok {
		return fmt.Errorf("%s", describe(document))
	}
	items, isList, err := listItems(object)
	if err != nil {
		return err
	}
	if !isList {
		v.addObject(object)
		return nil
	}
	if len(items) == 0 {
		v.others = append(v.others, "an empty "+bare(object["kind"]))
	}
	for i, item := range items {
		entry, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("items[%d]: %s", i, describe(item))
		}
		// The API's own list leaves out what its kind already says.
		if object["kind"] == kind+"List" && entry["kind"] == nil && entry["apiVersion"] == nil {
			entry["kind"], entry["apiVersion"] = kind, object["apiVersion"]
		}
		v.addObject(entry)
	}
	return nil
}

func (v *inventory) addObject(object map[string]any) {
	if isSource(object) {
		v.sources = append(v.sources, object)
		return
	}
	v.others = append(v.others, "a "+bare(object["kind"])+" of "+bare(object["apiVersion"]))
}

// listItems gives the entries of a List or an OCIRepositoryList.
func listItems(object map[string]any) (items []any, isList bool, err error) {
	apiVersion, _ := object["apiVersion"].(string)
	isList = object["kind"] == "List" && apiVersion == "v1" ||
		object["kind"] == kind+"List" && strings.HasPrefix(apiVersion, group+"/")
	if !isList || object["items"] == nil {
		return nil, isList, nil
	}
	items, ok := object["items"].([]any)
	if !ok {
		return nil, true, fmt.Errorf("items: expected a list, found %s", describe(object["items"]))
	}
	return items, true, nil
}

func isSource(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	return object["kind"] == kind && strings.HasPrefix(apiVersion, group+"/")
}

func (v *inventory) choose(namespace, name string) (map[string]any, *Error) {
	if len(v.sources) == 1 {
		return v.sources[0], nil
	}
	if len(v.sources) == 0 {
		found := "nothing"
		if len(v.others) > 0 {
			found = listed(v.others)
		}
		return nil, badRecording("an "+kind+" of "+group, found, nil)
	}
	wanted := namespace + "/" + name
	var matches []map[string]any
	names := make([]string, 0, len(v.sources))
	for _, source := range v.sources {
		id := identity(source)
		names = append(names, strconv.Quote(clip(id)))
		if id == wanted {
			matches = append(matches, source)
		}
	}
	if len(matches) == 1 {
		return matches[0], nil
	}
	title := fmt.Sprintf("the recording has %d %s objects, and %d of them match", len(v.sources), kind, len(matches))
	return nil, badInput(title, "exactly one "+kind+" named "+strconv.Quote(wanted), listed(names),
		"set `namespace` and `name` to one of them, or record that one alone", nil)
}

// identity is namespace/name; parts that are no strings are left empty.
func identity(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return namespace + "/" + name
}

// maxListed bounds how many things one error lists.
const maxListed = 5

func listed(things []string) string {
	if len(things) <= maxListed {
		return strings.Join(things, ", ")
	}
	return strings.Join(things[:maxListed], ", ") + " and " + strconv.Itoa(len(things)-maxListed) + " more"
}
