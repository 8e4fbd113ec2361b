package gate

import "strings"

// digestPrefix is the only digest algorithm that source-controller writes into
// a revision of an OCI artifact.
const digestPrefix = "sha256:"

// WellFormedDigest says whether s is sha256: and 64 lower-case hex digits.
func WellFormedDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(hex) != 64 {
		return false
	}
	for _, c := range []byte(hex) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// digestOf gives the digest of a revision: what follows the last @ in
// <tag>@sha256:<hex>, or the whole of a bare sha256:<hex>, which is what
// source-controller writes when spec.ref.digest is set. It is empty if that is
// not a well-formed digest.
func digestOf(revision string) string {
	digest := revision[strings.LastIndexByte(revision, '@')+1:]
	if !WellFormedDigest(digest) {
		return ""
	}
	return digest
}
