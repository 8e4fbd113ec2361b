package gate_test

import (
	"encoding/json"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// rooms lists, for every package of the module, the packages of the module that
// it may import. docs/architecture.md says why.
var rooms = map[string][]string{
	"flux-verify-gate":                {"flux-verify-gate/gate/action"},
	"flux-verify-gate/gate/action":    {"flux-verify-gate/gate/cluster", "flux-verify-gate/gate/signature", "flux-verify-gate/gate/report", "flux-verify-gate/gate", "flux-verify-gate/gate/signer"},
	"flux-verify-gate/gate/cluster":   {"flux-verify-gate/gate", "flux-verify-gate/gate/signer"},
	"flux-verify-gate/gate/signature": {"flux-verify-gate/gate", "flux-verify-gate/gate/signer"},
	"flux-verify-gate/gate/report":    {"flux-verify-gate/gate", "flux-verify-gate/gate/signer"},
	"flux-verify-gate/gate":           {"flux-verify-gate/gate/signer"},
	"flux-verify-gate/gate/signer":    {},
}

// never lists what must not be anywhere below a room, by import path prefix.
var never = map[string][]string{
	"flux-verify-gate/gate/signer": {"k8s.io/", "github.com/fluxcd/", "github.com/google/go-containerregistry", "github.com/sigstore/", "net/http", "os/exec"},
	"flux-verify-gate/gate":        {"k8s.io/client-go", "github.com/google/go-containerregistry", "github.com/sigstore/"},
	"flux-verify-gate/gate/report": {"k8s.io/client-go", "github.com/google/go-containerregistry", "github.com/sigstore/"},
	"flux-verify-gate/gate/cluster": {
		"github.com/google/go-containerregistry", "github.com/sigstore/", "k8s.io/client-go/kubernetes/typed",
	},
	"flux-verify-gate/gate/signature": {"k8s.io/client-go"},
}

// directly lists what a room itself must not import, because the house says that
// it never enters: the decision reads no clock, environment or network.
var directly = map[string][]string{
	"flux-verify-gate/gate":        {"net/http", "os", "log", "log/slog", "net"},
	"flux-verify-gate/gate/signer": {"net/http", "os", "log", "log/slog", "net", "time"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "flux-verify-gate/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	seen := map[string]bool{}
	for decoder.More() {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		seen[p.ImportPath] = true
		checkRoom(t, p)
	}
	for room := range rooms {
		if !seen[room] {
			t.Errorf("room %s is not there", room)
		}
	}
}

func checkRoom(t *testing.T, p goPackage) {
	t.Helper()
	allowed, known := rooms[p.ImportPath]
	if !known {
		if !testOnly(p.ImportPath) {
			t.Errorf("package %s has no place in the house: add it to rooms or put it below a testing package", p.ImportPath)
		}
		return
	}
	for _, imported := range p.Imports {
		if testOnly(imported) {
			t.Errorf("%s imports the test package %s", p.ImportPath, imported)
		} else if strings.HasPrefix(imported, "flux-verify-gate") && !slices.Contains(allowed, imported) {
			t.Errorf("%s imports %s, against the direction of the house", p.ImportPath, imported)
		}
		if slices.Contains(directly[p.ImportPath], imported) {
			t.Errorf("%s imports %s, which never enters that room", p.ImportPath, imported)
		}
	}
	for _, dep := range p.Deps {
		for _, prefix := range never[p.ImportPath] {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("%s depends on %s, which never enters that room", p.ImportPath, dep)
			}
		}
	}
}

// testOnly says whether a package of the module is for tests alone: it lies
// below test, or its last element ends in "test", as net/http/httptest's does, or
// begins with it.
func testOnly(importPath string) bool {
	name := path.Base(importPath)
	return strings.HasPrefix(importPath, "flux-verify-gate/test/") || strings.HasPrefix(importPath, "flux-verify-gate/") && (strings.HasSuffix(name, "test") || strings.HasPrefix(name, "test"))
}
