package e2e

import (
	"net/http"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/test/stack/cosigncli"
	"flux-verify-gate/test/stack/githubtoken"
	"flux-verify-gate/test/stack/registries"
)

// deployment is an ordinary good deployment. deploy brings it about, and returns
// the digest that must be verified, and inputs of the gate.
type deployment struct {
	name        string
	core, newer bool
	deploy      func(s *stage) (string, in)
}

// good are deployments of every ordinary shape. None of them may turn red, or
// be warned about.
func good() []scenario {
	var list []scenario
	for _, d := range deployments {
		list = append(list, scenario{name: "good-" + d.name, core: d.core, newer: d.newer, run: func(s *stage) {
			digest, inputs := d.deploy(s)
			got := s.gate(in{"digest": digest}, inputs).verified(digest)
			for _, f := range got.Report.Findings {
				if f.Code == gate.WillRefuse || f.Outcome == gate.Fail || f.Outcome == gate.Unknown {
					s.t.Errorf("%s %s beside a good deployment: %s", f.Code, f.Outcome, f.Title)
				}
			}
		}})
	}
	return list
}

var deployments = []deployment{
	{name: "tag", deploy: func(s *stage) (string, in) {
		s.withKey()
		a := s.pushSigned("v1", "v1")
		s.apply()
		return a, nil
	}},
	{name: "semver", core: true, deploy: func(s *stage) (string, in) {
		s.withKey()
		s.pushSigned("1.0.0", "1.0.0")
		b := s.pushSigned("1.1.0", "1.1.0")
		s.apply(reference(sourcev1.OCIRepositoryRef{SemVer: ">=1.0.0"}))
		return b, nil
	}},
	{name: "digest-reference", deploy: func(s *stage) (string, in) {
		s.withKey()
		a := s.pushSigned("v1", "v1")
		s.apply(reference(sourcev1.OCIRepositoryRef{Digest: a}))
		return a, nil
	}},
	{name: "key-bundle", newer: true, deploy: func(s *stage) (string, in) {
		s.withKey()
		a := s.pushSignedIn(cosigncli.Bundle, "v1", "v1")
		s.apply()
		return a, nil
	}},
	{name: "keyless", newer: true, deploy: func(s *stage) (string, in) {
		s.withSigner()
		a := s.pushSignedAs("v1", githubtoken.Claims{})
		s.apply()
		return a, nil
	}},
	{name: "two-keys", core: true, deploy: func(s *stage) (string, in) {
		s.withKey()
		s.secret(keySecret, map[string]string{"old.pub": s.theirs.Public, "new.pub": s.ours.Public})
		s.requireKey(keySecret, s.theirs, s.ours)
		a := s.pushSigned("v1", "v1")
		s.apply()
		return a, nil
	}},
	{name: "index", core: true, newer: true, deploy: func(s *stage) (string, in) {
		s.withSigner()
		index, _ := s.pushIndex("v1")
		s.signAs(index, githubtoken.Claims{})
		s.apply()
		return index, nil
	}},
	{name: "helm-chart", core: true, deploy: func(s *stage) (string, in) {
		s.withKey()
		chart := s.pushChart("6.7.0")
		s.signKey(chart, s.ours, cosigncli.Tag)
		s.apply(func(spec *sourcev1.OCIRepositorySpec) {
			spec.Reference = &sourcev1.OCIRepositoryRef{SemVer: "6.x"}
			spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: helmContent, Operation: sourcev1.OCILayerCopy}
		})
		return chart, nil
	}},
	{name: "merge-queue", newer: true, deploy: func(s *stage) (string, in) {
		const pattern = `https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/gh-readonly-queue/main/pr-[0-9]+-[0-9a-f]{40}`
		s.withSigner()
		s.requireSigners(in{"issuer": issuer, "subject-pattern": pattern})
		a := s.pushSignedAs("v1", byQueue())
		s.apply(verifyBy(sourcev1.OIDCIdentityMatch{Issuer: exactly(issuer, "").Issuer, Subject: "^" + pattern + "$"}))
		return a, nil
	}},
	{name: "reusable-workflow", core: true, newer: true, deploy: func(s *stage) (string, in) {
		const shared = "https://github.com/acme/workflows/.github/workflows/release.yaml@refs/tags/v2"
		s.withSigner()
		s.requireSigners(in{"issuer": issuer, "subject": shared, "source-repository-id": "1001"})
		a := s.pushSignedAs("v1", githubtoken.Claims{JobWorkflowRef: strings.TrimPrefix(shared, "https://github.com/")})
		s.apply(verifyBy(exactly(issuer, shared)))
		return a, nil
	}},
	{name: "both-layouts", newer: true, deploy: func(s *stage) (string, in) {
		s.withKey()
		a := s.pushSigned("v1", "v1")
		s.signKey(a, s.ours, cosigncli.Bundle)
		s.apply()
		return a, nil
	}},
	{name: "provenance-beside", newer: true, deploy: func(s *stage) (string, in) {
		s.withSigner()
		a := s.pushSignedAs("v1", githubtoken.Claims{})
		s.attestProvenance(a, githubtoken.Claims{})
		s.apply()
		return a, nil
	}},
	{name: "alternation", newer: true, deploy: func(s *stage) (string, in) {
		s.withSigner()
		s.allowRelease()
		a := s.pushSignedAs("v1", githubtoken.Claims{})
		s.apply(verifyBy(either))
		return a, nil
	}},
	{name: "registry-without-referrers", newer: true, deploy: func(s *stage) (string, in) {
		s.ownRegistry(registries.Tags)
		s.withSigner()
		a := s.pushSignedAs("v1", githubtoken.Claims{})
		s.apply()
		return a, nil
	}},
	{name: "distribution", newer: true, deploy: func(s *stage) (string, in) {
		s.ownRegistry(registries.Distribution)
		s.withKey()
		a := s.pushSignedIn(cosigncli.Bundle, "v1", "v1")
		s.apply()
		return a, nil
	}},
	{name: "private-registry", core: true, deploy: func(s *stage) (string, in) {
		const user, password = "deployer", "correct horse battery staple"
		s.behind(func(w http.ResponseWriter, r *http.Request, registry http.Handler) {
			if u, p, _ := r.BasicAuth(); u != user || p != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
				return
			}
			r.Header.Del("Authorization")
			registry.ServeHTTP(w, r)
		})
		s.withKey()
		a := s.pushSigned("v1", "v1")
		s.pullSecret("registry", user, password)
		s.apply(func(spec *sourcev1.OCIRepositorySpec) { spec.SecretRef = &meta.LocalObjectReference{Name: "registry"} })
		return a, in{"registry-username": user, "registry-password": password}
	}},
	{name: "upgrade", newer: true, deploy: func(s *stage) (string, in) {
		s.withSigner()
		a := s.pushSignedAs("v1", githubtoken.Claims{})
		s.apply()
		s.gate(in{"digest": a}).verified(a)
		b := s.pushSignedAs("next", githubtoken.Claims{})
		s.tag("v1", b)
		s.reconcile()
		return b, nil
	}},
	{name: "rollback", deploy: func(s *stage) (string, in) {
		s.withKey()
		a, b := s.pushSigned("v1", "v1"), s.pushSigned("v2", "v2")
		s.apply(follow("v2"))
		s.gate(in{"digest": b}).verified(b)
		s.apply(follow("v1"))
		return a, nil
	}},
	{name: "resumed", deploy: func(s *stage) (string, in) {
		s.withKey()
		a := s.pushSigned("v1", "v1")
		s.apply()
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		s.apply(suspend)
		s.await("the suspension", func(o *sourcev1.OCIRepository) bool { return o.Status.ObservedGeneration == o.Generation })
		s.apply(resume)
		return a, nil
	}},
	{name: "controller-restarted", deploy: func(s *stage) (string, in) {
		c := s.ownSources()
		s.withKey()
		a := s.pushSigned("v1", "v1")
		s.apply()
		s.awaitCondition(meta.ReadyCondition, metav1.ConditionTrue)
		s.check(c.Restart(s.t.Context()))
		return a, nil
	}},
	{name: "reconcile", deploy: func(s *stage) (string, in) {
		s.permit("role-reconcile.yaml", sourceName)
		s.withKey()
		a := s.pushSigned("v1", "v1")
		// Nothing but the request makes the controller look again in time.
		s.apply(rarely)
		s.gate(in{"digest": a}).verified(a)
		b := s.pushSigned("next", "next")
		s.tag("v1", b)
		return b, in{"reconcile": "true"}
	}},
}
