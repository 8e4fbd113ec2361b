// Package crd finds the custom resource definitions of real releases of Flux's
// controllers in the Go module cache.
//
// They are not copied into the repository: the module of a release holds the
// very files that Flux installs, the module cache has them after the first
// download, and the sum pinned here says that they are the same bytes
// everywhere. The downloaded module is one zip file; nothing is built from it
// for this.
package crd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const module = "github.com/fluxcd/source-controller"

// Release is a release of a controller.
type Release struct {
	// Module is the path of its Go module.
	Module string
	// Version is the version of its Go module.
	Version string
	// Sum is the module's hash as in a go.sum file.
	Sum string
}

// Flux29 serves OCIRepository v1 only. It is the version that the stack runs
// (test/stack/source-controller/go.mod).
func Flux29() Release {
	return Release{module, "v1.9.3", "h1:Zj1gfvK/2MFIm/K3vh5fSHoJBoggLKMuLWf5ZEmaF0w="}
}

// Flux27 is of the last line that serves v1beta2, beside v1
// (test/stack/source-controller-1.7/go.mod).
func Flux27() Release {
	return Release{module, "v1.7.3", "h1:gFfeBiNUgF0kFFGap/rrMeJqz+0Tod0ARENJO8w/UA8="}
}

// Kustomize29 is the kustomize-controller that the stack runs
// (test/stack/kustomize-controller/go.mod).
func Kustomize29() Release {
	return Release{"github.com/fluxcd/kustomize-controller", "v1.9.3", "h1:ICUSwJ38bpSKdt5VnIhF23QuUBm6CKzFwzi7Si1xmyc="}
}

// All returns every definition of the release as one YAML stream.
func (r Release) All(ctx context.Context) ([]byte, error) {
	dir, err := r.dir(ctx)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "config", "crd", "bases", "*.yaml"))
	if err == nil && len(files) == 0 {
		err = errors.New("no file lies in config/crd/bases")
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s has no definitions: %w", r.Module, r.Version, err)
	}
	var all bytes.Buffer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a definition of %s %s: %w", r.Module, r.Version, err)
		}
		all.WriteString("---\n")
		all.Write(data)
	}
	return all.Bytes(), nil
}

// OCIRepository returns the release's definition of OCIRepository, in YAML.
func (r Release) OCIRepository(ctx context.Context) ([]byte, error) {
	dir, err := r.dir(ctx)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "config", "crd", "bases", "source.toolkit.fluxcd.io_ocirepositories.yaml"))
	if err != nil {
		return nil, fmt.Errorf("source-controller %s has no definition of OCIRepository: %w", r.Version, err)
	}
	return data, nil
}

// dir returns the module's directory in the module cache and downloads it if it
// is not there.
func (r Release) dir(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", r.Module+"@"+r.Version)
	// Outside any module, and checked against the sum here rather than the sum
	// database, which would need the network each time.
	cmd.Dir = string(filepath.Separator)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=on", "GONOSUMDB="+r.Module)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	var answer struct{ Dir, Sum, Error string }
	// On a failed download the reason is in the answer; without one, in stderr.
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return "", fmt.Errorf("cannot download %s %s: %w: %s", r.Module, r.Version, errors.Join(runErr, err), stderr.String())
	}
	if answer.Error != "" || runErr != nil {
		return "", fmt.Errorf("cannot download %s %s: %s", r.Module, r.Version, answer.Error)
	}
	if answer.Sum != r.Sum {
		return "", fmt.Errorf("%s %s has the sum %s, but %s is expected: the module is not the pinned one", r.Module, r.Version, answer.Sum, r.Sum)
	}
	return answer.Dir, nil
}

// ServeOnly returns a definition with every version but one switched off, as on
// a cluster that is older or younger than the release. The version must be in
// the definition. Which version objects are stored in does not change.
func ServeOnly(definition []byte, version string) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(definition, &crd); err != nil {
		return nil, fmt.Errorf("cannot parse the definition: %w", err)
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	found := false
	for _, v := range versions {
		v, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("the definition has a version that is not an object")
		}
		v["served"] = v["name"] == version
		found = found || v["name"] == version
	}
	if !found {
		return nil, fmt.Errorf("the definition has no version %q", version)
	}
	data, err := yaml.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the definition: %w", err)
	}
	return data, nil
}
