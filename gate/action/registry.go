package action

import (
	"context"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature"
)

// lookAtLeast is the time that a look for signatures has even where the deadline
// is nearer: a source that settles in the last second is still looked at.
const lookAtLeast = 30 * time.Second

// explainWithin is the time for a look that decides nothing.
const explainWithin = 10 * time.Second

// registry looks for the signatures of what a source serves.
type registry struct {
	checker *signature.Checker
	// url is where the source must point; empty for anywhere.
	url string
}

// registryOf prepares the look, and says whether the gate's own trusted root is
// a private one. With signature: skip there is no registry to ask.
func (c Command) registryOf(v values, policy gate.Policy) (*registry, bool, error) {
	checker := &signature.Checker{
		Want: policy.Requirements(),
		Credentials: signature.Credentials{
			Username: v[inRegistryUsername], Password: v[inRegistryPassword],
			DockerConfig: c.getenv("DOCKER_CONFIG"), GitHubToken: v[inGitHubToken],
		},
		CA:          []byte(v[inRegistryCA]),
		TrustedRoot: v[inTrustedRoot],
		Layout:      v[inLayout],
	}
	private := false
	if v[inTrustedRoot] != signature.TUF {
		publicGood, err := signature.PublicGoodFile(v[inTrustedRoot])
		if err != nil {
			return nil, false, &gate.InputError{Input: inTrustedRoot, Err: err,
				Remedy: "correct the path, or leave the input out to have the public-good Sigstore"}
		}
		private = !publicGood
	}
	if policy.Requirements().Signature == gate.SignatureSkip {
		return nil, private, nil
	}
	return &registry{checker: checker, url: policy.Requirements().URL}, private, nil
}

// asks says whether the registry that a source names is asked about a digest. One that the input
// url rules out is not: the source is rejected anyway, and whoever can write it
// must not have the credentials sent to a registry of his own.
func (r *registry) asks(source *gate.Source, digest string) bool {
	if r == nil || source == nil || digest == "" {
		return false
	}
	return r.url == "" || source.Object.Spec.URL == r.url || r.checker.Layout != ""
}

// privateRoot says that the trusted root that verified was a file of a private
// Sigstore. The file was read before, too, to be told from the public-good one; but
// that it is still the same nobody knows. Where nothing was found, nothing verified.
func privateRoot(s gate.Signatures) bool {
	return len(s.Found) > 0 && s.RootSource != "" && s.RootSource != signature.TUF && !s.PublicGood
}

// look asks for the signatures of what is serving now, within the time that is
// left.
func (r *registry) look(ctx context.Context, source *gate.Source, left time.Duration) gate.Signatures {
	return r.lookAt(ctx, source, source.Digest(), max(left, lookAtLeast))
}

// lookAt asks for the signatures of a digest in the repository of a source.
func (r *registry) lookAt(ctx context.Context, source *gate.Source, digest string, within time.Duration) gate.Signatures {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return r.checker.Check(ctx, signature.Target{
		Repository: source.Object.Spec.URL, Digest: digest, Insecure: source.Object.Spec.Insecure,
	})
}

// explain asks for the signatures of the artifact that the controller refused, if
// there is one; nil where nobody is asked.
func (r *registry) explain(ctx context.Context, p gate.Policy, e gate.Evidence) *gate.Signatures {
	digest := p.RefusedDigest(e)
	if !r.asks(e.Source, digest) {
		return nil
	}
	refused := r.lookAt(ctx, e.Source, digest, explainWithin)
	return &refused
}
