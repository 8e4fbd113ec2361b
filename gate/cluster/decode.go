package cluster

import (
	"fmt"
	"reflect"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"flux-verify-gate/gate"
)

// The kind that the gate reads. source-controller 1.6 brought v1; v1beta2 was
// served until 1.7 and has the same fields (source-controller
// api/v1beta2/ocirepository_types.go).
const (
	group    = "source.toolkit.fluxcd.io"
	kind     = "OCIRepository"
	resource = "ocirepositories"
)

var versions = []string{"v1", "v1beta2"}

// Decode reads an OCIRepository from its untyped form, v1 and v1beta2 alike.
// Every field that the typed form has must be of its type, in its case; a field
// that the typed form does not have is kept in UnknownVerify if it stands under
// spec.verify, and is otherwise left alone, because newer controllers add some.
// The error names each field that is wrong, what was expected and what was
// found.
func Decode(object *unstructured.Unstructured) (gate.Source, error) {
	if object == nil || object.Object == nil {
		return gate.Source{}, fmt.Errorf("expected an %s, found nothing", kind)
	}
	content := object.Object
	if err := checkKind(content); err != nil {
		return gate.Source{}, err
	}

	var s shape
	s.walk("", content, reflect.TypeFor[sourcev1.OCIRepository]())
	status, _ := content["status"].(map[string]any)
	fingerprint, ok := status["sourceVerificationFingerprint"].(string)
	if found := status["sourceVerificationFingerprint"]; !ok && found != nil {
		s.fail("status.sourceVerificationFingerprint", "a string", found)
	}
	if err := s.err(); err != nil {
		return gate.Source{}, fmt.Errorf("the %s cannot be read: %w", kind, err)
	}

	source := gate.Source{UnknownVerify: s.unknown, Fingerprint: fingerprint}
	slices.Sort(source.UnknownVerify)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &source.Object); err != nil {
		return gate.Source{}, fmt.Errorf("the %s cannot be read: %w", kind, err)
	}
	owners, err := specOwners(content, source.Object.ManagedFields)
	if err != nil {
		return gate.Source{}, fmt.Errorf("the %s cannot be read: %w", kind, err)
	}
	source.Owners = owners
	return source, nil
}

// checkKind refuses everything that is not an OCIRepository of a known version.
func checkKind(content map[string]any) error {
	apiVersion, kindFound := content["apiVersion"], content["kind"]
	if kindFound == kind {
		for _, version := range versions {
			if apiVersion == group+"/"+version {
				return nil
			}
		}
	}
	return fmt.Errorf("expected kind %s of apiVersion %s/%s or %s, found kind %s of apiVersion %s",
		kind, group, versions[0], versions[1], bare(kindFound), bare(apiVersion))
}

func bare(value any) string {
	if text, ok := value.(string); ok && plainKeyOrGroup(text) {
		return text
	}
	return describe(value)
}

func plainKeyOrGroup(text string) bool {
	for _, r := range text {
		if !plainKey(string(r)) && r != '.' && r != '/' {
			return false
		}
	}
	return text != "" && len(text) <= maxQuoted
}
