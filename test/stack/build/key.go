package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// environment lists the settings of the go command that change what it builds.
var environment = []string{
	"GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "GOEXPERIMENT", "GOFIPS140",
}

// plan is a build that is fully decided: the command line, and the key that
// names its result.
type plan struct {
	dir  string   // the family's directory, absolute
	args []string // of the go command, without -o and the package
	key  string   // 16 hex digits
}

// newPlan decides how c is built. The key covers the family's go.mod and
// go.sum, the Go files of a main package of our own, the go command's version
// and platform, and the flags.
func newPlan(ctx context.Context, root string, c Component) (plan, error) {
	dir := filepath.Join(root, c.Family)
	ldflags := "-s -w"
	if c.VersionVariable != "" {
		v, err := requiredVersion(filepath.Join(dir, "go.mod"), c.VersionModule)
		if err != nil {
			return plan{}, err
		}
		ldflags += " -X " + c.VersionVariable + "=" + v
	}
	args := []string{"build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags=" + ldflags}

	settings, err := goEnv(ctx, dir)
	if err != nil {
		return plan{}, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", c.Package, args, settings)
	files := []string{"go.mod", "go.sum"}
	if c.own() {
		own, err := sources(filepath.Join(dir, c.Package))
		if err != nil {
			return plan{}, err
		}
		for _, name := range own {
			files = append(files, filepath.Join(c.Package, name))
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return plan{}, fmt.Errorf("cannot read a source of %s: %w", c.Name, err)
		}
		fmt.Fprintf(h, "%q %x\n", filepath.ToSlash(name), sha256.Sum256(data))
	}
	return plan{dir: dir, args: args, key: hex.EncodeToString(h.Sum(nil))[:16]}, nil
}

// sources lists the Go files of the package in dir that a build reads, relative
// to dir.
func sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the sources of a component: %w", err)
	}
	var files []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
	}
	return files, nil
}

// goEnv returns the go command's settings in dir, where a toolchain line of the
// family's go.mod can choose another Go version.
func goEnv(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"env"}, environment...)...)
	cmd.Dir = dir
	cmd.Env = goEnviron()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask the go command for its settings: %w: %s", err, stderr.String())
	}
	return string(out), nil
}

// goEnviron is the environment of every go command run here: the caller's,
// without the workspace and flags that would change what is built.
func goEnviron() []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=on")
}

// requiredVersion returns the version of module that the go.mod file requires.
func requiredVersion(file, module string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the family's requirements: %w", err)
	}
	mod, err := modfile.ParseLax(file, data, nil)
	if err != nil {
		return "", fmt.Errorf("cannot parse the family's requirements: %w", err)
	}
	for _, r := range mod.Require {
		if r.Mod.Path == module {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, module)
}
