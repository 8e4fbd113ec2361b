package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/action/recordingtest"
	"flux-verify-gate/gate/report"
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
		got := s.gate(in{"digest": a}).rejected(gate.VerifyAbsent)
		if !strings.Contains(got.Stdout, "name: '"+report.UnknownSecret+"'") {
			s.t.Error("the policy to paste does not ask for the Secret of the private Sigstore")
		}
	}}}
}

// copyExample makes the README's example of the recordings of its scenario.
func copyExample(r *recordingtest.Recordings) error {
	dir, err := os.MkdirTemp("", "flux-verify-gate-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, run := range []string{"readme", "readme-2"} {
		if _, found := r.Runs[run]; !found {
			return nil // recorded on another line
		}
		if err := r.Unpack(run, filepath.Join(dir, run)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(example, "layout")); err != nil {
		return err
	}
	var errs []error
	for source, name := range map[string]string{
		"readme/object.json": "verified.json", "readme-2/object.json": "removed.json", "readme/trusted_root.json": "trusted_root.json",
	} {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(source)))
		if err == nil {
			err = os.WriteFile(filepath.Join(example, name), content, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.CopyFS(filepath.Join(example, "layout"), os.DirFS(filepath.Join(dir, "readme", "layout"))))...)
}
