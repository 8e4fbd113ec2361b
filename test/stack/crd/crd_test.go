package crd

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"
)

// served returns the versions of a definition, those not served in brackets.
func served(t *testing.T, definition []byte) string {
	t.Helper()
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		t.Fatal(err)
	}
	text := crd.Spec.Names.Kind
	for _, v := range crd.Spec.Versions {
		if v.Served {
			text += " " + v.Name
		} else {
			text += " (" + v.Name + ")"
		}
	}
	return text
}

func TestOCIRepository(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		release Release
		want    string
	}{
		"Flux 2.9": {Flux29(), "OCIRepository v1"},
		"Flux 2.7": {Flux27(), "OCIRepository v1 v1beta2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definition, err := test.release.OCIRepository(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := served(t, definition); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		release Release
		want    []string
	}{
		"sources":        {Flux29(), []string{"kind: OCIRepository", "kind: GitRepository", "kind: ExternalArtifact"}},
		"kustomizations": {Kustomize29(), []string{"kind: Kustomization"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := test.release.All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(string(all), "\n    "+want+"\n") {
					t.Errorf("there is no %s", want)
				}
			}
		})
	}
}

func TestSumIsChecked(t *testing.T) {
	t.Parallel()
	r := Flux29()
	r.Sum = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	if _, err := r.OCIRepository(t.Context()); err == nil || !strings.Contains(err.Error(), "not the pinned one") {
		t.Errorf("got %v, want an error about the sum", err)
	}
}

// TestPin holds the releases and the controllers that the stack runs together.
func TestPin(t *testing.T) {
	t.Parallel()
	for family, release := range map[string]Release{
		"source-controller": Flux29(), "source-controller-1.7": Flux27(), "kustomize-controller": Kustomize29(),
	} {
		file := "../" + family + "/go.mod"
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.ParseLax(file, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		version := "nothing"
		for _, r := range mod.Require {
			if r.Mod.Path == release.Module {
				version = r.Mod.Version
			}
		}
		if version != release.Version {
			t.Errorf("%s requires %s, the definitions are of %s", file, version, release.Version)
		}
	}
}

func TestServeOnly(t *testing.T) {
	t.Parallel()
	definition, err := Flux27().OCIRepository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"v1":      "OCIRepository v1 (v1beta2)",
		"v1beta2": "OCIRepository (v1) v1beta2",
	} {
		changed, err := ServeOnly(definition, version)
		if err != nil {
			t.Fatal(err)
		}
		if got := served(t, changed); got != want {
			t.Errorf("only %s: got %s, want %s", version, got, want)
		}
	}
	for name, bad := range map[string]string{
		"no such version": string(definition),
		"not an object":   "spec: {versions: [v9]}",
		"not YAML":        "{",
	} {
		if _, err := ServeOnly([]byte(bad), "v9"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
