package e2e

import (
	"os"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
)

// keySecret is the name of the Secret with the public key.
const keySecret = "cosign"

// withKey makes the scenario one with our key: the Secret, the policy, and what
// the gate requires.
func (s *stage) withKey() {
	s.t.Helper()
	s.secret(keySecret, map[string]string{"cosign.pub": s.ours.Public})
	s.requireKey(keySecret, s.ours)
	verifyByKey(&s.desired.Spec)
}

func (s *stage) requireKey(secret string, keys ...cosigncli.Key) {
	s.t.Helper()
	var texts []string
	for _, key := range keys {
		text, err := os.ReadFile(key.Public)
		s.check(err)
		texts = append(texts, string(text))
	}
	required, err := yaml.Marshal(map[string]any{"secret": secret, "keys": texts})
	s.check(err)
	s.required = in{"required-keys": string(required)}
}

func verifyByKey(spec *sourcev1.OCIRepositorySpec) {
	spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: keySecret}}
}

func noVerify(spec *sourcev1.OCIRepositorySpec) { spec.Verify = nil }

func suspend(spec *sourcev1.OCIRepositorySpec) { spec.Suspend = true }

// keyed are the recorded cases of ../shared/cases/live made live again, with a
// key.
func keyed() []scenario {
	return []scenario{
		{name: "key-bundle", core: true, newer: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Bundle)
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "key-tag", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			s.apply()
			s.gate(in{"digest": a}).verified(a)
		}},
		{name: "key-unsigned", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply()
			s.gate(in{"digest": a, "timeout": "15s"}).rejected(gate.VerificationFailed)
		}},
		{name: "key-of-somebody-else", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.theirs, cosigncli.Tag)
			s.apply()
			s.gate(in{"digest": a, "timeout": "15s"}).rejected(gate.VerificationFailed)
		}},
		{name: "verify-missing", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.apply(noVerify)
			s.awaitServing(a)
			s.gate(in{"digest": a}).rejected(gate.VerifyAbsent)
		}},
		{name: "suspended", core: true, run: func(s *stage) {
			s.withKey()
			a := s.push("v1", "a")
			s.signKey(a, s.ours, cosigncli.Tag)
			s.apply()
			s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
			s.apply(suspend)
			s.gate(in{"digest": a, "timeout": "15s"}).rejected(gate.SourceSuspended)
		}},
	}
}
