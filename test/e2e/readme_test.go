package e2e

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/githubtoken"
)

// example is where the recording lies that the README's commands run on.
var example = filepath.Join("..", "..", "examples", "recorded")

// readme is the deployment of the README: a good one behind TLS, and the same
// after its policy was removed.
func readme() []scenario {
	return []scenario{{name: "readme", core: true, newer: true, namespace: "flux-system", run: func(s *stage) {
		s.withSigner()
		s.behindTLS()
		a := s.pushSignedAs("v1", githubtoken.Claims{})
		s.applyAs("flux-operator")
		s.gate(in{"digest": a}).verified(a)

		s.applyAs("flux-operator", noVerify)
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		s.gate(in{"digest": a}).rejected(gate.VerifyAbsent)
	}}}
}

// behindTLS puts a TLS server before the scenario's registry. Pushing and
// signing go on without; the source and the gate know its authority.
func (s *stage) behindTLS() {
	s.t.Helper()
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.registry.Address()}))
	s.t.Cleanup(server.Close)
	ca := filepath.Join(s.t.TempDir(), "ca.crt")
	s.check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	s.secret("registry-ca", map[string]string{"ca.crt": ca})
	s.front = server.Listener.Addr().String()
	s.desired.Spec.URL = s.url()
	s.desired.Spec.Insecure = false
	s.desired.Spec.CertSecretRef = &meta.LocalObjectReference{Name: "registry-ca"}
	s.also(in{"registry-ca": "@" + ca})
}

// copyExample makes the README's example of the recordings of its scenario.
func copyExample() error {
	from := func(elem ...string) string { return filepath.Join(append([]string{recordings, *line}, elem...)...) }
	if _, err := os.Stat(from("readme")); err != nil {
		return nil // recorded on another line, or not at all
	}
	if err := os.RemoveAll(filepath.Join(example, "layout")); err != nil {
		return err
	}
	var errs []error
	for source, name := range map[string]string{
		from("readme", "object.json"): "verified.json", from("readme-2", "object.json"): "removed.json", from("readme", "trusted_root.json"): "trusted_root.json",
	} {
		content, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(example, name), content, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.CopyFS(filepath.Join(example, "layout"), os.DirFS(from("readme", "layout"))))...)
}
