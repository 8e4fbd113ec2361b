package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// GateName is the name that the shipped Role, RoleBinding and service account
// have.
const GateName = "flux-verify-gate"

// CanaryRoleName is the name of the Role and RoleBinding for the canary. It is
// another one, because the canary may stand in the namespace of the source, where
// a Role of the same name would take the place of the first.
const CanaryRoleName = GateName + "-canary"

// Role gives the Role and RoleBinding, both called role, that let subject read
// and watch one OCIRepository, and with reconcile ask for a reconciliation, as YAML to apply.
// The subject is a user name as the API server knows it; an empty one means the
// service account flux-verify-gate of that namespace. A watch on one name is
// allowed by resourceNames because it selects by metadata.name, which the
// authorizer reads as the name (Kubernetes documentation, "Using RBAC
// Authorization", referring to resources).
func Role(role, namespace, name, subject string, reconcile bool) string {
	verbs := "'get', 'watch'"
	if reconcile {
		verbs += ", 'patch'"
	}
	if subject == "" {
		subject = "system:serviceaccount:" + namespace + ":" + GateName
	}
	var who string
	if account, ok := serviceAccount(subject); ok {
		accountNamespace, accountName, _ := strings.Cut(account, ":")
		who = fmt.Sprintf("  - kind: ServiceAccount\n    name: %s\n    namespace: %s\n", quote(accountName), quote(accountNamespace))
	} else {
		who = fmt.Sprintf("  - apiGroup: rbac.authorization.k8s.io\n    kind: User\n    name: %s\n", quote(subject))
	}
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: %[1]s
  namespace: %[2]s
rules:
  - apiGroups: ['%[3]s']
    resources: ['%[4]s']
    resourceNames: [%[5]s]
    verbs: [%[6]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: %[1]s
  namespace: %[2]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: %[1]s
subjects:
%[7]s`, role, quote(namespace), group, resource, quote(name), verbs, who)
}

// plainSubject is a user name that can stand in a shell's single quotes.
var plainSubject = regexp.MustCompile(`^[A-Za-z0-9:@._/+-]+$`)

// grantCommands says the same as Role in two commands.
func grantCommands(role, namespace, name, subject string, reconcile bool) string {
	verbs := "get,watch"
	if reconcile {
		verbs += ",patch"
	}
	who := "--user 'NAME'"
	if account, ok := serviceAccount(subject); ok {
		who = "--serviceaccount '" + account + "'"
	} else if plainSubject.MatchString(subject) {
		who = "--user '" + subject + "'"
	}
	return fmt.Sprintf("kubectl create role %[1]s --namespace %[2]s --verb %[3]s --resource %[4]s.%[5]s --resource-name %[6]s && "+
		"kubectl create rolebinding %[1]s --namespace %[2]s --role %[1]s %[7]s", role, namespace, verbs, resource, group, name, who)
}

// serviceAccount reads namespace:name out of a service account's user name.
func serviceAccount(subject string) (string, bool) {
	account, ok := strings.CutPrefix(subject, "system:serviceaccount:")
	return account, ok && strings.Count(account, ":") == 1 && plainSubject.MatchString(account)
}

// quote writes a YAML string: single quotes where they do, as in the examples,
// else the double-quoted form, whose escapes YAML shares with JSON.
func quote(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '\'' }) {
		return strconv.QuoteToASCII(text)
	}
	return "'" + text + "'"
}
