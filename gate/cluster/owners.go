package cluster

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"flux-verify-gate/gate"
)

// maxFieldDepth bounds the nesting of managedFields; the deepest path of an
// OCIRepository has five elements.
const maxFieldDepth = 64

// specOwners reads who owns which field of the spec. Entries without a field of
// the spec (a controller that only writes status) are left out; the order is
// the object's.
func specOwners(content map[string]any, entries []metav1.ManagedFieldsEntry) ([]gate.Owner, error) {
	metadata, _ := content["metadata"].(map[string]any)
	raw, _ := metadata["managedFields"].([]any)
	var owners []gate.Owner
	for i, entry := range entries {
		// FieldsV1 is the only format there is (apimachinery
		// pkg/apis/meta/v1/types.go, ManagedFieldsEntry.FieldsType).
		if entry.FieldsType != "FieldsV1" || i >= len(raw) {
			continue
		}
		recorded, _ := raw[i].(map[string]any)
		fields, _ := recorded["fieldsV1"].(map[string]any)
		spec, ok := fields["f:spec"]
		if !ok {
			continue
		}
		paths, err := fieldPaths("spec", spec, nil, 0)
		if err != nil {
			return nil, fmt.Errorf("metadata.managedFields[%d].fieldsV1: %w", i, err)
		}
		slices.Sort(paths)
		owner := gate.Owner{
			Manager:   entry.Manager,
			Operation: string(entry.Operation),
			Fields:    slices.Compact(paths),
		}
		if entry.Time != nil {
			owner.Time = entry.Time.UTC()
		}
		owners = append(owners, owner)
	}
	return owners, nil
}

// fieldPaths lists the paths that a set of fields owns: a leaf is {}, and "."
// stands for the parent itself (structured-merge-diff fieldpath/serialize.go).
func fieldPaths(path string, node any, paths []string, depth int) ([]string, error) {
	set, ok := node.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: expected an object, found %s", path, describe(node))
	}
	if depth > maxFieldDepth {
		return nil, fmt.Errorf("expected at most %d nested fields, found more", maxFieldDepth)
	}
	if len(set) == 0 {
		return append(paths, path), nil
	}
	for _, key := range sortedKeys(set) {
		if key == "." {
			paths = append(paths, path)
			continue
		}
		element, err := fieldpath.DeserializePathElement(key)
		if err != nil {
			return nil, fmt.Errorf("%s: expected a field such as f:name, found %s: %w", path, describe(key), err)
		}
		next := path + element.String()
		if element.FieldName != nil {
			next = join(path, *element.FieldName)
		}
		if paths, err = fieldPaths(next, set[key], paths, depth+1); err != nil {
			return nil, err
		}
	}
	return paths, nil
}
