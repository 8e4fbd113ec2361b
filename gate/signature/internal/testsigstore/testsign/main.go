// Testsign is a Sigstore in one process, for tests from other modules: it makes
// keys, writes its trusted root, and signs what it is asked to. What a real one
// of today cannot make can be had from it: a certificate's signature in the
// older layout, which needs a log of the kind that Rekor v2 replaces.
//
//	testsign trusted_root.json
//
// reads one request per line from its standard input, as JSON, and answers each
// with a line on its standard output: ok, or what went wrong. It ends with its
// input.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"flux-verify-gate/gate/signature/internal/testsigstore"
)

// request asks for one signature.
type request struct {
	// Reference is what is signed, registry/repository@sha256:…; the registry is
	// spoken to in plain HTTP.
	Reference string `json:"reference"`
	// Repository, Workflow and Ref are those of a job of GitHub Actions:
	// acme/platform, cd.yaml, refs/heads/main.
	Repository string `json:"repository"`
	Workflow   string `json:"workflow"`
	Ref        string `json:"ref"`
	// Bundle asks for a bundle among the referrers instead of the tag
	// sha256-<hex>.sig.
	Bundle bool `json:"bundle"`
}

const (
	layerType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	signType   = "https://sigstore.dev/cosign/sign/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testsign:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the path for the trusted root, found %q", args)
	}
	sigstore, err := testsigstore.New(time.Now().Add(-time.Hour))
	if err != nil {
		return err
	}
	root, err := sigstore.TrustedRoot()
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[0], root, 0o600); err != nil {
		return err
	}
	fmt.Println("ok")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			err = sign(sigstore, r)
		}
		if err != nil {
			fmt.Printf("%q\n", err)
			continue
		}
		fmt.Println("ok")
	}
	return lines.Err()
}

func sign(sigstore *testsigstore.Sigstore, r request) error {
	artifact, err := name.NewDigest(r.Reference, name.Insecure)
	if err != nil {
		return err
	}
	signing := testsigstore.Signing{
		Identity: testsigstore.GitHub(r.Repository, r.Workflow, r.Ref),
		At:       time.Now().Add(-5 * time.Minute),
	}
	if r.Bundle {
		return signBundle(sigstore, artifact, signing)
	}
	return signTag(sigstore, artifact, signing)
}

// signTag adds a layer to what is under the tag (cosign, specs/SIGNATURE_SPEC.md).
func signTag(sigstore *testsigstore.Sigstore, artifact name.Digest, signing testsigstore.Signing) error {
	signing.Payload = testsigstore.Payload(artifact.Context().Name(), artifact.DigestStr())
	annotations, err := sigstore.Layer(signing)
	if err != nil {
		return err
	}
	tag := artifact.Context().Tag("sha256-" + artifact.DigestStr()[len("sha256:"):] + ".sig")
	signatures, err := remote.Image(tag)
	var missing *transport.Error
	if errors.As(err, &missing) && missing.StatusCode == http.StatusNotFound {
		signatures = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	} else if err != nil {
		return err
	}
	signatures, err = mutate.Append(signatures, mutate.Addendum{
		Layer: static.NewLayer(signing.Payload, layerType), Annotations: annotations, MediaType: layerType,
	})
	if err != nil {
		return err
	}
	return remote.Write(tag, signatures)
}

// signBundle pushes a bundle as a referrer.
func signBundle(sigstore *testsigstore.Sigstore, artifact name.Digest, signing testsigstore.Signing) error {
	signing.Payload = testsigstore.Statement(signType, artifact.DigestStr())
	bundle, err := sigstore.Bundle(signing)
	if err != nil {
		return err
	}
	text, err := testsigstore.MarshalBundle(bundle)
	if err != nil {
		return err
	}
	subject, err := remote.Head(artifact)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bundleType),
		static.NewLayer(text, bundleType))
	if err != nil {
		return err
	}
	refers, ok := mutate.Subject(image, v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}).(v1.Image)
	if !ok {
		return errors.New("expected an image, found something else")
	}
	sum, err := refers.Digest()
	if err != nil {
		return err
	}
	return remote.Write(artifact.Context().Digest(sum.String()), refers)
}
