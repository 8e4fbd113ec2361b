package gate

import (
	"regexp"
	"strings"
)

// The messages of source-controller that carry a revision. They are the same in
// every version from v0.30 to v1.10 (internal/controller/ocirepository_controller.go).
const (
	verifiedPrefix = "verified signature of revision "
	storedPrefix   = "stored artifact for digest '"
)

var (
	// newRevision is in ArtifactOutdated, and in Ready and Reconciling behind
	// what is being done.
	newRevision = regexp.MustCompile(`^(?:[a-z ]+: )?new revision '([^']+)' for '`)
	// keyedFailure names the artifact that no key matched.
	keyedFailure = regexp.MustCompile(`no matching signatures were found for '[^']*(sha256:[0-9a-f]{64})'$`)
)

// verifiedRevision gives the revision that a SourceVerified message names.
func verifiedRevision(message string) (string, bool) {
	revision, ok := strings.CutPrefix(message, verifiedPrefix)
	return revision, ok && digestOf(revision) != ""
}

// storedRevision gives the revision that an ArtifactInStorage message names.
func storedRevision(message string) (string, bool) {
	rest, ok := strings.CutPrefix(message, storedPrefix)
	if !ok {
		return "", false
	}
	revision, ok := strings.CutSuffix(rest, "'")
	return revision, ok && digestOf(revision) != ""
}

// incomingRevision gives the revision that a message says is being taken in.
func incomingRevision(message string) (string, bool) {
	if m := newRevision.FindStringSubmatch(message); m != nil {
		return m[1], digestOf(m[1]) != ""
	}
	if m := keyedFailure.FindStringSubmatch(message); m != nil {
		return m[1], true
	}
	return "", false
}
