package signature

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flux-verify-gate/gate"
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
	if h.candidates() == 0 {
		hints = append(hints, h.relatives(artifact)...)
	}
	return hints
}

// relatives looks for signatures of the index that holds this manifest, or of
// the manifests that this index holds. They say nothing of the artifact, and a
// signer may have meant it.
func (h *hunt) relatives(artifact content) []string {
	own, err := readManifest(artifact.body)
	if err != nil {
		return nil
	}
	for n, child := range own.index {
		if n == maxNeighbours {
			return nil
		}
		if h.isSigned(child.Digest) {
			return []string{fmt.Sprintf("the artifact is an index, and the manifest %s in it has signatures: they do not cover the index; sign the index itself", child.Digest)}
		}
	}
	if len(own.index) > 0 {
		return nil
	}
	for _, neighbour := range h.where.neighbours(h.outer) {
		index, err := readManifest(neighbour.body)
		if err != nil {
			continue
		}
		holds := slices.ContainsFunc(index.index, func(d descriptor) bool { return d.Digest == h.digest })
		if holds && neighbour.digest != h.digest && h.isSigned(neighbour.digest) {
			return []string{fmt.Sprintf("the index %s holds this manifest and has signatures: they do not cover the manifest; deploy the index, or sign the manifest itself", neighbour.digest)}
		}
	}
	return nil
}

// isSigned says that something that may be a signature of a digest is there.
func (h *hunt) isSigned(digest string) bool {
	if !gate.WellFormedDigest(digest) {
		return false
	}
	ctx, cancel := context.WithTimeout(h.outer, neighboursTimeout)
	defer cancel()
	if tagged, err := h.where.signatures(ctx, digest); err == nil && len(tagged) > 0 {
		return true
	}
	list, err := h.where.referrers(ctx, digest)
	return err == nil && len(list.descriptors) > 0
}
