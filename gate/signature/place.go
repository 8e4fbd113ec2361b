package signature

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"flux-verify-gate/gate"
)

// place is where artifacts and their signatures are kept: a registry or an OCI
// layout on disk. Content that is asked for by digest has that digest when it
// is returned.
type place interface {
	// artifact reads the artifact's own manifest. It is called first, and
	// settles how to talk to the place.
	artifact(ctx context.Context, digest string) (content, error)
	// manifest reads a manifest of at most limit bytes.
	manifest(ctx context.Context, digest string, limit int64) (content, error)
	// blob reads a blob of at most limit bytes.
	blob(ctx context.Context, digest string, limit int64) ([]byte, error)
	// referrers lists what refers to digest; truncated says that there is more
	// than was read.
	referrers(ctx context.Context, digest string) (list referrerList, err error)
	// signatures reads the manifests that stand for cosign's tag
	// sha256-<hex>.sig; none without an error means that there is no such tag.
	signatures(ctx context.Context, digest string) ([]content, error)
	// neighbours reads a few other manifests of the repository, to explain a
	// miss. What cannot be read is left out.
	neighbours(ctx context.Context) []content
}

// content is a manifest as it was read.
type content struct {
	body      []byte
	mediaType string
	digest    string
}

// referrerList is what refers to an artifact.
type referrerList struct {
	descriptors []descriptor
	// truncated says why the list is not whole; nil if it is.
	truncated error
}

// errAbsent says that something is not there, which is an observation and no
// failure.
var errAbsent = errors.New("not found")

// contentError says that something was read, and is not what was asked for. To
// ask again does not help.
type contentError struct{ text string }

func (e *contentError) Error() string { return e.text }

// limitError says that something exceeds a limit, so that it was not read.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

// checkDigest compares content with the digest it was asked for by.
func checkDigest(body []byte, digest string) error {
	if !gate.WellFormedDigest(digest) {
		return &contentError{fmt.Sprintf("expected a sha256 digest, found %q", digest)}
	}
	if found := digestOf(body); found != digest {
		return &contentError{fmt.Sprintf("expected content with the digest %s, found %s", digest, found)}
	}
	return nil
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// tagOf is the tag that stands for a digest where a registry has no referrers
// API (OCI distribution specification 1.1, referrers tag schema).
func tagOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// signatureTagOf is cosign's tag for the signatures of a digest.
func signatureTagOf(digest string) string { return tagOf(digest) + ".sig" }
