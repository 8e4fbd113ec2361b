package container_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// image is the image under test.
type image struct {
	*engine
	// container is the name of a container of it, in which every step runs. The
	// runner makes a new one for each; the tests hold that nothing stays in it.
	container string
	// root is where its file system is mounted.
	root string
	// files are the files of the image, before anything has run in it.
	files []string
}

// buildVersion is the VERSION that the image is built with.
const buildVersion = "v0.0.0-smoke"

// build builds the whole Dockerfile. No registry can be asked, so the image of
// the build stage is a stand-in: the Go of this machine, busybox for a shell,
// and an apt-get that knows the packages that the Dockerfile installs. All that
// stands in the Dockerfile is run as it stands there.
func build(t *testing.T, e *engine) (*image, error) {
	ctx := t.Context()
	base, err := buildImageName()
	if err != nil {
		return nil, err
	}
	if version := strings.TrimPrefix(os.Getenv("GOVERSION"), "go"); !strings.Contains(base, ":"+version+"-") {
		t.Logf("the Dockerfile names %s, and the stand-in has Go %s", base, version)
	}
	started := time.Now()
	if err := e.standIn(ctx, base); err != nil {
		return nil, err
	}
	t.Logf("the stand-in for %s was made in %s", base, time.Since(started).Round(100*time.Millisecond))
	started = time.Now()
	output, err := e.do(ctx, "build", "--isolation", "chroot", "--pull=never", "--layers=false",
		"--volume", os.Getenv("GOROOT")+":/usr/local/go:ro",
		"--volume", os.Getenv("GOMODCACHE")+":/go/pkg/mod",
		"--volume", os.Getenv("GOCACHE")+":/go/build",
		"--build-arg", "VERSION="+buildVersion, "--tag", "flux-verify-gate:smoke", "--file", filepath.Join(repository, "Dockerfile"), repository)
	if err != nil {
		return nil, err
	}
	t.Logf("the image was built in %s", time.Since(started).Round(100*time.Millisecond))
	i := &image{engine: e}
	if i.container, err = e.do(ctx, "from", "--pull=never", "flux-verify-gate:smoke"); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	if i.root, err = e.do(ctx, "mount", i.container); err != nil {
		return nil, err
	}
	return i, filepath.WalkDir(i.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			i.files = append(i.files, strings.TrimPrefix(path, i.root+"/"))
		}
		return err
	})
}

var fromLine = regexp.MustCompile(`(?m)^FROM (\S+) AS build$`)

// buildImageName is the image that the Dockerfile's build stage begins with.
func buildImageName() (string, error) {
	dockerfile, err := os.ReadFile(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		return "", err
	}
	match := fromLine.FindSubmatch(dockerfile)
	if match == nil {
		return "", fmt.Errorf("expected a line %s in the Dockerfile, found none", fromLine)
	}
	return string(match[1]), nil
}

// standIn makes an image of that name.
func (e *engine) standIn(ctx context.Context, name string) error {
	tree := filepath.Join(e.dir, "stand-in")
	if err := standInTree(tree); err != nil {
		return fmt.Errorf("stand-in for %s: %w", name, err)
	}
	container, err := e.do(ctx, "from", "scratch")
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"copy", "--quiet", container, tree, "/"},
		{"config",
			"--env", "PATH=/usr/local/go/bin:/usr/bin:/bin:/stand-in/bin", "--env", "HOME=/root", "--env", "GOTOOLCHAIN=local",
			"--env", "GOMODCACHE=/go/pkg/mod", "--env", "GOCACHE=/go/build", "--env", "GOFLAGS=" + os.Getenv("GOFLAGS"),
			"--env", "GOPROXY=" + os.Getenv("GOPROXY"), "--env", "GOSUMDB=" + os.Getenv("GOSUMDB"), container},
		{"commit", "--quiet", container, name},
		{"rm", container},
	} {
		if _, err := e.do(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// standInTree lays out the file system of the stand-in: /bin is /usr/bin, as in
// Debian, and holds a shell only; the tools of the shell are in a folder of
// their own, so that /bin/busybox is there only after apt-get installed it.
func standInTree(tree string) error {
	packages := os.Getenv("CONTAINER_SMOKE_PACKAGES")
	for _, dir := range []string{"usr/bin", "etc/ssl/certs", "stand-in/bin", "stand-in/packages", "tmp", "root"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			return err
		}
	}
	busybox, err := findOne(packages, "busybox-static/bin/busybox", "busybox-static/usr/bin/busybox")
	if err != nil {
		return err
	}
	bundle, err := bundleOf(filepath.Join(packages, "ca-certificates"))
	if err != nil {
		return err
	}
	aptGet, err := os.ReadFile("testdata/apt-get")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	files := []struct {
		path    string
		content []byte
		mode    os.FileMode
	}{
		{"stand-in/bin/busybox", program, 0o755},
		{"stand-in/packages/busybox-static/usr/bin/busybox", program, 0o755},
		{"stand-in/packages/ca-certificates/etc/ssl/certs/ca-certificates.crt", bundle, 0o644},
		{"usr/bin/apt-get", aptGet, 0o755},
	}
	for _, file := range files {
		path := filepath.Join(tree, file.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, file.content, file.mode); err != nil {
			return err
		}
	}
	links := map[string]string{"bin": "usr/bin", "usr/bin/sh": "/stand-in/bin/busybox"}
	for _, tool := range []string{"cp", "ln", "mkdir", "rm", "chmod", "mv", "cat", "test"} {
		links["stand-in/bin/"+tool] = "busybox"
	}
	for path, target := range links {
		if err := os.Symlink(target, filepath.Join(tree, path)); err != nil {
			return err
		}
	}
	return nil
}

// findOne gives the first of the paths that is there.
func findOne(dir string, paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			return filepath.Join(dir, path), nil
		}
	}
	return "", fmt.Errorf("expected one of %s in %s, found none", strings.Join(paths, ", "), dir)
}

// bundleOf joins the certificates of the package, as update-ca-certificates does
// when the package is installed.
func bundleOf(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "usr/share/ca-certificates/mozilla/*.crt"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("expected certificates in the package ca-certificates, found none")
	}
	var bundle []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		bundle = append(bundle, content...)
	}
	return bundle, nil
}

// exitStatus gives the exit status that an error of a command stands for.
func exitStatus(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return -1, err
}
