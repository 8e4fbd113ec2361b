package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The shipped examples are what Role gives, so that a log and the documents say
// the same.
func TestRoleIsTheExample(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"rbac/role.yaml":           Role(GateName, "flux-system", "flux-system", "", false),
		"rbac/role-reconcile.yaml": Role(GateName, "flux-system", "flux-system", "", true),
		"rbac/role-canary.yaml":    Role(CanaryRoleName, "flux-system", "flux-system-canary", "", false),
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		_, manifest, ok := strings.Cut(string(content), "---\n")
		if !ok || manifest != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, manifest, want)
		}
	}
}

func TestRoleNamesTheSubject(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]struct{ yaml, command string }{
		"":                               {"kind: ServiceAccount\n    name: 'flux-verify-gate'\n    namespace: 'ns'", "--user 'NAME'"},
		"system:serviceaccount:a:b":      {"kind: ServiceAccount\n    name: 'b'\n    namespace: 'a'", "--serviceaccount 'a:b'"},
		"jane@example.com":               {"kind: User\n    name: 'jane@example.com'", "--user 'jane@example.com'"},
		"arn:aws:iam::1:role/ci":         {"name: 'arn:aws:iam::1:role/ci'", "--user 'arn:aws:iam::1:role/ci'"},
		"system:serviceaccount:a:b:c":    {"kind: User\n    name: 'system:serviceaccount:a:b:c'", "--user 'system:serviceaccount:a:b:c'"},
		"x'; curl evil":                  {`name: "x'; curl evil"`, "--user 'NAME'"},
		"a\nkind: b\u2028":               {`name: "a\nkind: b\u2028"`, "--user 'NAME'"},
		"system:serviceaccount:a':b\nc:": {`name: "system:serviceaccount:a':b\nc:"`, "--user 'NAME'"},
	} {
		role := Role(GateName, "ns", "app", subject, false)
		if !strings.Contains(role, want.yaml) {
			t.Errorf("%q: got\n%s", subject, role)
		}
		documents, err := parseYAML([]byte(role))
		if err != nil || len(documents) != 2 {
			t.Fatalf("%q: got %d documents, %v", subject, len(documents), err)
		}
		if commands := grantCommands(GateName, "ns", "app", subject, false); !strings.HasSuffix(commands, want.command) {
			t.Errorf("%q: got %s", subject, commands)
		}
	}
}

func TestSubjectOf(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		forbidden("get"): "system:serviceaccount:flux-system:gate",
		`ocirepositories "User \"x\" cannot " is forbidden: User "jane" cannot get resource`: "jane",
		`User "a\"b" cannot get`: `a"b`,
		`User "a`:                "",
		"no":                     "",
	} {
		if got := subjectOf(message); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
}
