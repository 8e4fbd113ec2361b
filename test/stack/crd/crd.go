// Package crd finds the custom resource definitions of real source-controller
// releases in the Go module cache.
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

// Release is a release of source-controller.
type Release struct {
	// Version is the version of its Go module.
	Version string
	// Sum is the module's hash as in a go.sum file.
	Sum string
}

// Flux29 serves OCIRepository v1 only. It is the version that the stack runs
// (test/stack/source-controller/go.mod).
func Flux29() Release {
	return Release{"v1.9.3", "h1:Zj1gfvK/2MFIm/K3vh5fSHoJBoggLKMuLWf5ZEmaF0w="}
}

// Flux27 is of the last line that serves v1beta2, beside v1
// (test/stack/source-controller-1.7/go.mod).
func Flux27() Release {
	return Release{"v1.7.3", "h1:gFfeBiNUgF0kFFGap/rrMeJqz+0Tod0ARENJO8w/UA8="}
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
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+r.Version)
	// Outside any module, and checked against the sum here rather than the sum
	// database, which would need the network each time.
	cmd.Dir = string(filepath.Separator)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=on", "GONOSUMDB="+module)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	var answer struct{ Dir, Sum, Error string }
	// On a failed download the reason is in the answer; without one, in stderr.
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return "", fmt.Errorf("cannot download source-controller %s: %w: %s", r.Version, errors.Join(runErr, err), stderr.String())
	}
	if answer.Error != "" || runErr != nil {
		return "", fmt.Errorf("cannot download source-controller %s: %s", r.Version, answer.Error)
	}
	if answer.Sum != r.Sum {
		return "", fmt.Errorf("source-controller %s has the sum %s, but %s is expected: the module is not the pinned one", r.Version, answer.Sum, r.Sum)
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
