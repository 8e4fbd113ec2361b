package live

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/actiontest"
)

// images is a registry with a repository of artifacts, and the key that is
// required to have signed them.
type images struct {
	t    *testing.T
	host string
	key  *ecdsa.PrivateKey

	mu sync.Mutex
	// before is called before each request of the gate is served.
	before func(*http.Request)
}

func newImages(t *testing.T) *images {
	t.Helper()
	i := &images{t: t, key: newKey(t)}
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "flux-verify-gate") || r.Header.Get("X-Test") == "" {
			i.mu.Lock()
			before := i.before
			i.mu.Unlock()
			if before != nil {
				before(r)
			}
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	i.host = strings.TrimPrefix(server.URL, "http://")
	return i
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// marked tells the test's own requests from the gate's.
type marked struct{}

func (marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Test", "yes")
	return http.DefaultTransport.RoundTrip(r)
}

// push pushes a new artifact and returns its digest.
func (i *images) push(repository string) string {
	i.t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		i.t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		i.t.Fatal(err)
	}
	for _, to := range []string{repository, "acme/unsigned"} {
		ref, err := name.NewDigest(i.host + "/" + to + "@" + digest.String())
		if err == nil {
			err = remote.Write(ref, image, remote.WithTransport(marked{}))
		}
		if err != nil {
			i.t.Fatal(err)
		}
	}
	return digest.String()
}

// sign adds what `cosign sign --key` adds without a transparency log: one layer
// with the payload, and the signature in an annotation (cosign v3 specs,
// SIGNATURE_SPEC.md).
func (i *images) sign(repository, digest string, key *ecdsa.PrivateKey) {
	i.t.Helper()
	payload, err := json.Marshal(map[string]any{
		"critical": map[string]any{
			"identity": map[string]any{"docker-reference": i.host + "/" + repository},
			"image":    map[string]any{"docker-manifest-digest": digest},
			"type":     "cosign container image signature",
		},
		"optional": nil,
	})
	if err != nil {
		i.t.Fatal(err)
	}
	sum := sha256.Sum256(payload)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	ref, err := name.NewTag(i.host + "/" + repository + ":" + strings.Replace(digest, ":", "-", 1) + ".sig")
	if err == nil {
		err = remote.Write(ref, image, remote.WithTransport(marked{}))
	}
	if err != nil {
		i.t.Fatal(err)
	}
}

// atFirst acts before the gate's first request to the registry.
func (i *images) atFirst(act func()) {
	var once sync.Once
	i.mu.Lock()
	defer i.mu.Unlock()
	i.before = func(*http.Request) { once.Do(act) }
}

// inputs ask for a signature by the key.
func (i *images) inputs(more map[string]string) map[string]string {
	i.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(i.key.Public())
	if err != nil {
		i.t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	inputs := map[string]string{"signature": "verify", "required-keys": fmt.Sprintf("{secret: cosign, keys: [%q]}", public)}
	for name, value := range more {
		inputs[name] = value
	}
	return inputs
}

// pointAt makes the source one of this registry.
func (i *images) pointAt(repository string) func(*sourcev1.OCIRepository) {
	return func(o *sourcev1.OCIRepository) {
		o.Spec.URL, o.Spec.Insecure = "oci://"+i.host+"/"+repository, true
	}
}

// The controller says that it verified each of these.
func TestSignatures(t *testing.T) {
	t.Parallel()
	const repository = "acme/platform"
	for name, test := range map[string]struct {
		// prepare is done after the push of the digest, meanwhile when the gate
		// has begun to look for its signatures, after when it waits for one.
		prepare   func(p *place, i *images, digest string)
		meanwhile func(p *place, i *images, digest string)
		after     func(i *images, digest string)
		timeout   string
		want      actiontest.Want
		// moved says that another digest is served in the end.
		moved bool
	}{
		"signed": {
			prepare: func(_ *place, i *images, digest string) { i.sign(repository, digest, i.key) },
			want:    actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"signed after the push": {
			after: func(i *images, digest string) { i.sign(repository, digest, i.key) },
			want:  actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified},
		},
		"not signed": {
			want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.Unsigned},
		},
		"signed by another key": {
			prepare: func(_ *place, i *images, digest string) { i.sign(repository, digest, newKey(i.t)) },
			want:    actiontest.Want{Verdict: gate.Rejected, Reason: gate.SignatureInvalid},
		},
		"signed, but the address changes meanwhile": {
			prepare: func(_ *place, i *images, digest string) { i.sign(repository, digest, i.key) },
			meanwhile: func(p *place, i *images, digest string) {
				p.edit(i.pointAt("acme/unsigned"))
				p.settle("v1@" + digest)
			},
			timeout: "40s", want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.Unsigned},
		},
		"signed, but an unsigned one is served meanwhile": {
			prepare:   func(_ *place, i *images, digest string) { i.sign(repository, digest, i.key) },
			meanwhile: func(p *place, i *images, _ string) { p.settle("v1@" + i.push(repository)) },
			timeout:   "40s", want: actiontest.Want{Verdict: gate.Rejected, Reason: gate.Unsigned}, moved: true,
		},
		"signed, and another signed one is served meanwhile": {
			prepare: func(_ *place, i *images, digest string) { i.sign(repository, digest, i.key) },
			meanwhile: func(p *place, i *images, _ string) {
				next := i.push(repository)
				i.sign(repository, next, i.key)
				p.settle("v1@" + next)
			},
			want: actiontest.Want{Verdict: gate.Verified, Reason: gate.ReasonVerified}, moved: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, i := steadyPlace(t), newImages(t)
			digest := i.push(repository)
			if test.prepare != nil {
				test.prepare(p, i, digest)
			}
			p.create(i.pointAt(repository))
			p.settle("v1@" + digest)
			if test.meanwhile != nil {
				i.atFirst(func() { test.meanwhile(p, i, digest) })
			}
			more := map[string]string{}
			if test.timeout != "" {
				more["timeout"] = test.timeout
			}
			g := p.gate(i.inputs(more))
			if test.after != nil {
				g.Saw("waiting while unsigned")
				test.after(i, digest)
			}
			r := g.Is(test.want)
			if (r.Report.Source.Digest != digest) != test.moved {
				t.Errorf("got digest %s, pushed %s", r.Report.Source.Digest, digest)
			}
			if test.want.Verdict == gate.Verified && r.Outputs["reference"] != i.host+"/"+repository+"@"+r.Report.Source.Digest {
				t.Errorf("got reference %q", r.Outputs["reference"])
			}
		})
	}
}
