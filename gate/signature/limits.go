package signature

import "time"

// The limits on what a registry may send. A gate that is flooded must end
// within its deadline and 256 MiB of memory.
const (
	// maxIndex bounds one index of referrers, the manifest of the .sig tag and
	// the artifact's own manifest.
	maxIndex = 16 << 20
	// maxManifest bounds the manifest of one referrer.
	maxManifest = 1 << 20
	// maxBundle bounds one Sigstore bundle. An attestation carries its whole
	// predicate.
	maxBundle = 4 << 20
	// maxPayload bounds the signed payload of one layer of the .sig tag, which
	// is some 300 bytes.
	maxPayload = 64 << 10
	// maxBody bounds any response, those of the authentication handshake and
	// errors included.
	maxBody = maxIndex + 1
	// maxTransfer bounds what one check reads in total.
	maxTransfer = 512 << 20
	// maxRequests bounds how many requests one check sends.
	maxRequests = 4096
	// maxCandidates bounds the candidates of one place: descriptors in the
	// index of referrers, layers under the .sig tag. It is what cosign allows
	// for layers (github.com/sigstore/cosign, pkg/oci/internal/signature, v2.2.1
	// and later).
	maxCandidates = 1000
	// maxPages bounds the pages of one list of referrers.
	maxPages = 64
	// maxRedirects bounds the redirects of one request.
	maxRedirects = 5
	// maxNeighbours bounds the other manifests that are looked at to explain why
	// there is no signature.
	maxNeighbours = 8
	// maxTrustedRoot bounds trusted_root.json.
	maxTrustedRoot = 4 << 20
)

const (
	// attemptTimeout is how long one request may take, its body included.
	attemptTimeout = 30 * time.Second
	// dialTimeout is how long it may take to connect, and again to agree on
	// TLS.
	dialTimeout = 10 * time.Second
	// neighboursTimeout is how long that may take.
	neighboursTimeout = 5 * time.Second
	// concurrency is how many candidates are fetched at the same time.
	concurrency = 6
	// backoffFirst and backoffLast bound the wait between two attempts, which
	// doubles.
	backoffFirst = 500 * time.Millisecond
	backoffLast  = 15 * time.Second
	// attemptsWithoutDeadline bounds the attempts where the context has no
	// deadline that would.
	attemptsWithoutDeadline = 6
	// defaultGrace is how long the other candidates are still awaited once a
	// required signer's signature has verified: one that hangs must not hold
	// up a deployment that is in order.
	defaultGrace = 5 * time.Second
)
