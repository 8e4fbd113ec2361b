package gate

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ObjectName names one object of a cluster; the zero value names none.
type ObjectName struct {
	Namespace, Name string
}

// String gives namespace/name.
func (n ObjectName) String() string { return n.Namespace + "/" + n.Name }

// ParseObjectName reads namespace/name. The error says which part the API server
// could not have, by the rules for the names of namespaces (RFC 1123 label) and
// of custom resources (RFC 1123 subdomain).
func ParseObjectName(text string) (ObjectName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	n := ObjectName{namespace, name}
	if !ok || namespace == "" || name == "" {
		return ObjectName{}, fmt.Errorf("expected namespace/name, found %s", strconv.Quote(text))
	}
	if err := n.check(); err != nil {
		return ObjectName{}, err
	}
	return n, nil
}

func (n ObjectName) check() error {
	if problems := validation.IsDNS1123Label(n.Namespace); len(problems) > 0 {
		return fmt.Errorf("expected the name of a namespace before the slash, found %s: %s", strconv.Quote(n.Namespace), strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
		return fmt.Errorf("expected the name of an OCIRepository behind the slash, found %s: %s", strconv.Quote(n.Name), strings.Join(problems, "; "))
	}
	return nil
}
