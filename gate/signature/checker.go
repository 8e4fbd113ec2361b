package signature

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"

	"flux-verify-gate/gate"
)

// Checker looks for the signatures of artifacts and verifies them. One Checker
// serves one run: it loads the trusted root once and keeps it. It is safe for
// concurrent use after its fields have been set.
type Checker struct {
	// Want is what is required: Required, RequireAll and Attestations say whose
	// signature ends the waiting for the other candidates, Required is what the
	// self-test changes, and with Keys signatures are verified with those
	// public keys instead of a trusted root.
	Want gate.Requirements
	// Credentials are those for the registry.
	Credentials Credentials
	// CA are certificate authorities in PEM that may vouch for the registry,
	// beside the system's.
	CA []byte
	// TrustedRoot is TUF or the path of a trusted_root.json. It is not used
	// with keys.
	TrustedRoot string
	// Layout is the directory of an OCI layout that is looked in instead of a
	// registry.
	Layout string

	once sync.Once
	root *trustedRoot

	// For the tests of this package.
	transport  http.RoundTripper
	tufOptions *tuf.Options
	grace      time.Duration
}

// Target is one artifact.
type Target struct {
	// Repository is oci://registry/repository; the scheme may be missing.
	Repository string
	// Digest is sha256:<64 lower-case hex digits>.
	Digest string
	// Insecure allows plain HTTP, as spec.insecure does.
	Insecure bool
}

// Check looks for every signature of one artifact and verifies each. It never
// fails as a whole: what could not be looked at stands in Failures. It retries
// until the deadline of ctx, which there should be; the caller leaves itself
// time to judge.
func (c *Checker) Check(ctx context.Context, target Target) gate.Signatures {
	c.once.Do(func() { c.root = &trustedRoot{source: c.TrustedRoot, options: c.tufOptions} })
	repository := strings.TrimPrefix(target.Repository, "oci://")
	s := gate.Signatures{
		Reference: repository + "@" + target.Digest,
		Digest:    target.Digest,
	}
	if !gate.WellFormedDigest(target.Digest) {
		return badInput(s, "the digest of the artifact is not usable",
			"sha256: and 64 lower-case hexadecimal digits", fmt.Sprintf("%q", target.Digest), "give the digest of an OCI manifest")
	}
	where, fail, done, err := c.open(target)
	if err != nil && c.Layout != "" {
		return badInput(s, "the input layout cannot be used", "the folder of an OCI image layout", clip(err.Error()),
			"correct the path; in a step it is relative to the workspace")
	}
	if err != nil {
		return badInput(s, "the registry to look for signatures in cannot be used",
			"a repository, with credentials that can be read", clip(err.Error()), "correct the inputs for the registry")
	}
	defer done()
	s.Credentials = fail.credentials
	return c.look(ctx, s, where, fail)
}

func badInput(s gate.Signatures, title, expected, found, remedy string) gate.Signatures {
	s.Failures = append(s.Failures, gate.Failure{Code: gate.BadInput, Title: title, Expected: expected, Found: found, Remedy: remedy})
	return s
}

// open names the place to look in.
func (c *Checker) open(target Target) (place, failures, func(), error) {
	if c.Layout != "" {
		dir, err := openLayout(c.Layout)
		if err != nil {
			return nil, failures{}, nil, err
		}
		return dir, failures{place: "the layout " + c.Layout, credentials: "no credentials (an OCI layout)"}, func() { _ = dir.close() }, nil
	}
	base := c.transport
	done := func() {}
	if base == nil {
		made, err := newTransport(c.CA)
		if err != nil {
			return nil, failures{}, nil, fmt.Errorf("registry-ca: %w", err)
		}
		base, done = made, made.CloseIdleConnections
	}
	registry, credentials, err := newRegistry(target.Repository, target.Insecure, c.Credentials, base)
	if err != nil {
		return nil, failures{}, nil, err
	}
	host := registry.repository.RegistryStr()
	return registry, failures{registry: host, place: host, credentials: credentials}, done, nil
}

// look reads the artifact's own manifest first, then every place where a
// signature may be, then every candidate.
func (c *Checker) look(ctx context.Context, s gate.Signatures, where place, fail failures) gate.Signatures {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	loaded := c.loadVerifier(loading)

	manifest, err := where.artifact(ctx, s.Digest)
	if err != nil {
		// The loading is waited for, so that it leaves nothing behind.
		stop()
		<-loaded
		s.Failures = append(s.Failures, fail.artifact(s.Digest, err))
		return s
	}
	s.ManifestRead, s.MediaType = true, manifest.mediaType

	verified := <-loaded
	if verified.err != nil {
		s.RootSource = c.source()
		s.Failures = append(s.Failures, rootFailure(c.source(), verified.err))
		return s
	}
	s.RootSource, s.PublicGood = verified.source, verified.publicGood

	hunt := newHunt(ctx, where, fail, verified.verifier, s.Digest, c)
	hunt.run()
	s.Found, s.SelfTest = hunt.found(), hunt.selfTest()
	s.Failures = append(s.Failures, hunt.failed()...)
	s.Complete = len(s.Failures) == 0
	s.Hints = hunt.hints(manifest)
	return s
}

// loadedVerifier is what verifies, and what it rests on.
type loadedVerifier struct {
	verifier   verifier
	source     string
	publicGood bool
	err        error
}

func (c *Checker) source() string {
	if c.Want.Keys != nil {
		return ""
	}
	return c.TrustedRoot
}

// loadVerifier loads the trusted root, or reads the keys, while the registry is
// being asked.
func (c *Checker) loadVerifier(ctx context.Context) <-chan loadedVerifier {
	loaded := make(chan loadedVerifier, 1)
	if c.Want.Keys != nil {
		keys, err := readKeys(c.Want.Keys.PEM)
		loaded <- loadedVerifier{verifier: keyed{keys}, err: err}
		return loaded
	}
	go func() {
		var material root.TrustedMaterial
		material, err := c.root.load(ctx)
		if err != nil {
			loaded <- loadedVerifier{err: err}
			return
		}
		loaded <- loadedVerifier{verifier: keyless{material}, source: c.TrustedRoot, publicGood: publicGood(material)}
	}()
	return loaded
}

// errGivenUp is why the other candidates are not awaited any longer.
var errGivenUp = errors.New("a required signature had verified, and this one was still outstanding")
