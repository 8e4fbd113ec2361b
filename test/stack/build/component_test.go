package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestComponents holds the table and the families' go.mod files together.
func TestComponents(t *testing.T) {
	t.Parallel()
	root, err := FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range Components() {
		if names[c.Name] {
			t.Errorf("two components are called %s", c.Name)
		}
		names[c.Name] = true
		file := filepath.Join(root, c.Family, "go.mod")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		mod, err := modfile.Parse(file, data, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "stack/" + c.Family; mod.Module.Mod.Path != want {
			t.Errorf("%s: module %s, want %s", c.Name, mod.Module.Mod.Path, want)
		}
		tool := c.own()
		for _, m := range mod.Tool {
			tool = tool || m.Path == c.Package
		}
		if !tool {
			t.Errorf("%s: %s has no tool line for %s, so go mod tidy would drop it", c.Name, file, c.Package)
		}
		if c.VersionVariable == "" {
			continue
		}
		if v, err := requiredVersion(file, c.VersionModule); err != nil || !strings.HasPrefix(v, "v") {
			t.Errorf("%s: version %q, %v", c.Name, v, err)
		}
	}
}
