package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// refusedOf is what a registry might show of a digest.
func refusedOf(digest string, found ...gate.Signature) *gate.Signatures {
	return &gate.Signatures{Digest: digest, ManifestRead: true, Complete: true, Found: found}
}

func bundleBy(subject string, refused gate.Step) gate.Signature {
	return gate.Signature{
		Layout: gate.LayoutBundle, Kind: gate.KindSignature, Verified: refused == "", Step: refused,
		Identity: signer.Identity{Issuer: githubActions, Subject: subject},
	}
}

// Of an artifact that the controller refused and does not serve, the finding
// tells who did sign it.
func TestRefusedIsExplained(t *testing.T) {
	t.Parallel()
	const refused = "sha256:e8d7f448604e253343398bc99be904cfe6d8f00570cc26b337eefd7b3b740bef"
	const feature = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/feature"
	other := "sha256:" + strings.Repeat("0", 64)
	for name, tt := range map[string]struct {
		refused    *gate.Signatures
		policyRoot bool // the gate has the trusted root of the policy
		found      string
		remedy     string
	}{
		"signed by others":    {refusedOf(refused, bundleBy(feature, "")), true, feature, "put into required-signers"},
		"signed as required":  {refusedOf(refused, bundleBy(cdMain, "")), true, "a required signer has signed it", ""},
		"unsigned":            {refusedOf(refused), true, "no bundle among the referrers", "sign the digest " + refused},
		"of another digest":   {refusedOf(refused, bundleBy(cdMain, gate.StepBinding)), true, "refused at the step binding", "sign the digest"},
		"another digest":      {refusedOf(other, bundleBy(feature, "")), true, "", ""},
		"another root":        {refusedOf(refused, bundleBy(feature, "")), false, "", ""},
		"could not look":      {&gate.Signatures{Digest: refused, Failures: []gate.Failure{{Code: gate.RegistryDenied}}}, true, "", ""},
		"not wholly looked":   {&gate.Signatures{Digest: refused, ManifestRead: true}, true, "", ""},
		"nobody looked at it": {nil, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &variant{Base: "live/22-keyless-wrong-issuer.json"}
			object, words := v.object(t)
			policy := mustPolicy(t, gate.Requirements{
				Digest: gate.DigestAny, Signature: gate.SignatureVerify, CustomRoot: tt.policyRoot,
				Required: []signer.Signer{{Issuer: githubActions, Subject: cdMain}},
			})
			evidence := v.evidence(t, object, words)
			if got := policy.RefusedDigest(evidence); got != refused {
				t.Fatalf("got the refused digest %q, want %s", got, refused)
			}
			plain := found(gate.Decide(t.Context(), policy, evidence, judgedAt), gate.VerificationFailed)[0]
			evidence.Refused = tt.refused
			got := found(gate.Decide(t.Context(), policy, evidence, judgedAt), gate.VerificationFailed)[0]
			if tt.found == "" && got != plain {
				t.Errorf("got %+v, want %+v", got, plain)
			}
			if added := strings.TrimPrefix(got.Found, plain.Found); !strings.Contains(added, tt.found) || tt.found != "" && !strings.Contains(added, refused) {
				t.Errorf("got %q behind the controller's word, want %q and the digest", added, tt.found)
			}
			if !strings.Contains(got.Remedy, tt.remedy) || tt.remedy == "" && got.Remedy != plain.Remedy {
				t.Errorf("got the remedy %q, want %q", got.Remedy, tt.remedy)
			}
		})
	}
}

// Whatever is known of the refused artifact, the verdict is the same.
func TestRefusedDecidesNothing(t *testing.T) {
	t.Parallel()
	decided := func(r gate.Report) string {
		var lines []string
		for _, f := range r.Findings {
			lines = append(lines, fmt.Sprintf("%s %s %s %s", f.Code, f.Outcome, f.Class, f.Wait))
		}
		return fmt.Sprintf("%s %s %v %v", r.Verdict, r.Reason, lines, r.Signers)
	}
	explained := 0
	for _, v := range readVariants(t) {
		ctx, policy, evidence := v.question(t)
		digest := policy.RefusedDigest(evidence)
		if digest == "" {
			continue // TestRefusedIsExplained holds that another digest says nothing
		}
		explained++
		want := decided(v.judge(t))
		for _, found := range [][]gate.Signature{nil, {bundleBy(cdMain, "")}, {bundleBy("x", "")}} {
			evidence.Refused = refusedOf(digest, found...)
			if got := decided(gate.Decide(ctx, policy, evidence, judgedAt)); got != want {
				t.Errorf("%s: got %s, want %s", v.Name, got, want)
			}
		}
	}
	if explained == 0 {
		t.Error("in no variant the controller refused another artifact than it serves")
	}
}

// There is a refused artifact only where the controller refused one, and does not
// serve it.
func TestRefusedDigest(t *testing.T) {
	t.Parallel()
	promoted := "sha256:" + strings.Repeat("2", 64)
	for name, tt := range map[string]struct {
		base, edits string
		earlier     string
		want        string // sha256: is the one that the conditions name
	}{
		"verified":                          {base: "keyless", want: ""},
		"verified after a failure":          {base: "keyless", earlier: "no signatures found", want: ""},
		"refused, named":                    {base: "live/24-keyless-unsigned.json", want: "sha256:"},
		"refused, not named":                {base: "live/24-keyless-unsigned.json", edits: "status.conditions[Reconciling]: null", want: promoted},
		"no policy":                         {base: "live/24-keyless-unsigned.json", edits: "spec.verify: null", want: ""},
		"refused in between":                {base: "live/24-keyless-unsigned.json", edits: "status.conditions[SourceVerified]: null", earlier: "no signatures found", want: "sha256:"},
		"neither refused nor earlier":       {base: "live/24-keyless-unsigned.json", edits: "status.conditions[SourceVerified]: null", want: ""},
		"what is served is what it refused": {base: "live/07b-verify-added-to-signed-stored.json", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &variant{Base: tt.base}
			if tt.edits != "" {
				var edits yaml.Node
				if err := yaml.Unmarshal([]byte(tt.edits), &edits); err != nil {
					t.Fatal(err)
				}
				v.Edits = *edits.Content[0]
			}
			object, words := v.object(t)
			evidence := v.evidence(t, object, words)
			evidence.EarlierFailure = tt.earlier
			policy := mustPolicy(t, gate.Requirements{
				Digest: promoted, Signature: gate.SignatureVerify, Required: []signer.Signer{{Issuer: githubActions, Subject: cdMain}},
			})
			got := policy.RefusedDigest(evidence)
			named := tt.want == "sha256:" && gate.WellFormedDigest(got) && got != promoted
			if got != tt.want && !named {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := (gate.Policy{}).RefusedDigest(gate.Evidence{}); got != "" {
		t.Errorf("got %q of nothing, want nothing", got)
	}
}
