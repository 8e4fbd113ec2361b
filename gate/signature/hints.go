package signature

import (
	"fmt"
	"slices"
	"strings"
)

// Media types of signatures that are none of ours.
const (
	notationType  = "application/jose+json"
	notationCOSE  = "application/cose"
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// hints are observations that explain why nothing verified.
func (h *hunt) hints(artifact content) []string {
	for _, s := range h.so() {
		if s.Verified {
			return nil
		}
	}
	var hints []string
	if h.absent > 0 {
		hints = append(hints, fmt.Sprintf("%d candidates are listed and not there: a mirror that copied the list and not the signatures looks like this", h.absent))
	}
	kinds := make([]string, 0, len(h.other))
	for kind := range h.other {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		switch {
		case kind == simpleSigning:
			hints = append(hints, "a referrer holds a cosign signature in the experimental OCI 1.1 form, which the controller does not look for: sign again with cosign 3, or without that mode")
		case strings.HasPrefix(kind, notationType), strings.HasPrefix(kind, notationCOSE):
			hints = append(hints, "a referrer holds what looks like a Notation signature, which is not checked")
		}
	}
	return hints
}
