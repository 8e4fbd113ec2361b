package container_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxBinary bounds the stripped binary, in bytes.
const maxBinary = 40 << 20

func TestContents(t *testing.T) {
	i := theImage(t)
	t.Run("nothing else is in it", func(t *testing.T) {
		want := []string{
			"bin/busybox", "bin/env", "bin/sh", "bin/tail", "bin/tar",
			"etc/ssl/certs/ca-certificates.crt", "flux-verify-gate",
		}
		if !slices.Equal(i.files, want) {
			t.Errorf("found  %v\nwanted %v", i.files, want)
		}
	})
	t.Run("tmp can be written", func(t *testing.T) {
		info, err := os.Stat(filepath.Join(i.root, "tmp"))
		if err != nil {
			t.Fatalf("the TUF client needs a temporary folder: %v", err)
		}
		if got, want := info.Mode(), fs.ModeDir|fs.ModeSticky|0o777; got != want {
			t.Errorf("/tmp has the mode %v, want %v", got, want)
		}
	})
	t.Run("the certificate authorities", func(t *testing.T) {
		// The first place where crypto/x509 looks on Linux (root_linux.go).
		rest, err := os.ReadFile(filepath.Join(i.root, "etc/ssl/certs/ca-certificates.crt"))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				t.Fatal(err)
			}
			count++
		}
		if count < 100 {
			t.Errorf("found %d certificate authorities, want at least 100", count)
		}
	})
	t.Run("sizes", func(t *testing.T) {
		binary, err := os.Stat(filepath.Join(i.root, "flux-verify-gate"))
		if err != nil {
			t.Fatal(err)
		}
		unpacked, packed := int64(0), int64(0)
		for _, name := range i.files {
			unpacked += size(t, filepath.Join(i.root, name))
		}
		pushed := filepath.Join(t.TempDir(), "pushed")
		if _, err := i.do(t.Context(), "push", "flux-verify-gate:smoke", "dir:"+pushed); err != nil {
			t.Fatal(err)
		}
		blobs, err := filepath.Glob(filepath.Join(pushed, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, blob := range blobs {
			packed += size(t, blob)
		}
		t.Logf("the binary has %.1f MB, the files of the image %.1f MB, as it is pushed %.1f MB",
			float64(binary.Size())/1e6, float64(unpacked)/1e6, float64(packed)/1e6)
		if binary.Size() >= maxBinary {
			t.Errorf("the binary has %d bytes, want less than %d", binary.Size(), maxBinary)
		}
	})
}

// size is that of a file itself, in bytes; a link has none.
func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

func TestImageConfiguration(t *testing.T) {
	i := theImage(t)
	text, err := i.do(t.Context(), "inspect", "--type", "image", "flux-verify-gate:smoke")
	if err != nil {
		t.Fatal(err)
	}
	var inspected struct {
		OCIv1 struct {
			Config struct {
				User       string
				Entrypoint []string
				Cmd        []string
				Env        []string
			} `json:"config"`
		}
	}
	if err := json.Unmarshal([]byte(text), &inspected); err != nil {
		t.Fatal(err)
	}
	config := inspected.OCIv1.Config
	if config.User != "" && config.User != "root" && config.User != "0" {
		t.Errorf("the image runs as %q; only root can read and write what the runner mounts", config.User)
	}
	if got := strings.Join(config.Entrypoint, " "); got != theAction(t).Runs.Entrypoint {
		t.Errorf("the entrypoint is %q, and action.yml's %q", got, theAction(t).Runs.Entrypoint)
	}
	if len(config.Cmd) > 0 {
		t.Errorf("the image has the arguments %q, want none", config.Cmd)
	}
	if got := strings.Join(config.Env, " "); got != "PATH=/bin" {
		t.Errorf("the image sets %q, want only PATH=/bin", got)
	}
}

func TestVersion(t *testing.T) {
	i := theImage(t)
	cmd, log := i.prepare(t.Context(), t, nil, theAction(t).Runs.Entrypoint, "version")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	got, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "flux-verify-gate " + buildVersion + "\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
