package gate_test

import (
	"regexp"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func TestDigestOf(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0123456789abcdef", 4)
	digest := "sha256:" + hex
	tests := []struct{ name, revision, want string }{
		{"a tag", "v1@" + digest, digest},
		{"latest", "latest@" + digest, digest},
		{"semver", "6.1.0-rc.1@" + digest, digest},
		{"a bare digest", digest, digest},
		{"nothing before the at sign", "@" + digest, digest},
		{"two at signs", "a@b@" + digest, digest},
		{"a digest before another", "sha256:" + strings.Repeat("f", 64) + "@" + digest, digest},
		{"nothing", "", ""},
		{"a tag alone", "v1", ""},
		{"an at sign alone", "@", ""},
		{"nothing behind the at sign", "v1@", ""},
		{"a digest and then an at sign", digest + "@", ""},
		{"a digest and then a tag", digest + "@v1", ""},
		{"hex alone", "v1@" + hex, ""},
		{"upper case", "v1@sha256:" + strings.ToUpper(hex), ""},
		{"an algorithm in upper case", "v1@SHA256:" + hex, ""},
		{"one digit less", "v1@" + digest[:len(digest)-1], ""},
		{"one digit more", "v1@" + digest + "0", ""},
		{"a letter that is no digit", "v1@" + digest[:len(digest)-1] + "g", ""},
		{"sha512", "v1@sha512:" + hex + hex, ""},
		{"sha1", "main@sha1:" + hex[:40], ""},
		{"a space behind", "v1@" + digest + " ", ""},
		{"a line behind", "v1@" + digest + "\n", ""},
		{"a space before the digest", "v1@ " + digest, ""},
		{"the form of an old release", "v1/" + hex, ""},
		{"a slash and a digest", "v1/" + digest, ""},
		{"digits of another script", "v1@sha256:" + strings.Repeat("٠", 32), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := gate.DigestOf(tt.revision); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzDigestOf holds that a digest is the end of its revision, well-formed, and
// the whole of what follows the last at sign.
func FuzzDigestOf(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, seed := range []string{"", "@", "v1@" + digest, digest, digest + "@" + digest, "v1@" + digest + "\n", strings.ToUpper(digest), digest + "@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, revision string) {
		got := gate.DigestOf(revision)
		last := revision[strings.LastIndex(revision, "@")+1:]
		switch {
		case got == "" && digestForm.MatchString(last):
			t.Errorf("%q has the digest %q, and got none", revision, last)
		case got == "":
		case !strings.HasSuffix(revision, got) || got != last:
			t.Errorf("%q is not the end of %q", got, revision)
		case !digestForm.MatchString(got):
			t.Errorf("%q is not well-formed", got)
		}
	})
}
