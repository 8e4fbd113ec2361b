package report_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

const (
	digestA  = "sha256:93a1f0c2b5d84e7796c1a0f3e2d4b5c6a7980f1e2d3c4b5a69788796a5b4c3d2"
	digestB  = "sha256:f665b7218aabc98cb895ca6d85f3e81838f383638a8ba1b8eeba75519fb9324e"
	issuer   = "https://token.actions.githubusercontent.com"
	subject  = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main"
	intruder = "https://github.com/acme/platform/.github/workflows/cd.yaml@refs/heads/main-"
)

var judged = time.Date(2026, 11, 30, 19, 26, 59, 0, time.UTC)

func pass(codes ...gate.Code) []gate.Finding {
	var found []gate.Finding
	for _, c := range codes {
		found = append(found, gate.Finding{Code: c, Outcome: gate.Pass, Title: "it is as it should be"})
	}
	return found
}

var (
	passA = pass(gate.SourceMissing, gate.SourceURL, gate.SourceSuspended, gate.SourceDeleting, gate.SourceUnobserved, gate.SourceReconciling, gate.SourceStalled)
	passB = pass(gate.VerifyAbsent, gate.VerifyProvider, gate.KeyUnexpected, gate.IdentitiesIgnored, gate.SignerUnconstrained, gate.MatcherInvalid, gate.MatchersMultiple, gate.SignerMissing)
	passC = pass(gate.VerificationFailed, gate.VerificationMissing, gate.VerificationStale, gate.VerificationOtherRevision, gate.NotReady, gate.FetchFailed, gate.ArtifactOutdated, gate.StorageFailed, gate.ArtifactMissing, gate.ContentConfig)
	passD = pass(gate.DigestMismatch, gate.Unsigned, gate.SignedByOthers, gate.SignatureInvalid, gate.NotASignature, gate.ClaimsMismatch, gate.ControllerDisagrees)
	passE = pass(gate.SelfTest)
)

func join(parts ...[]gate.Finding) []gate.Finding {
	var all []gate.Finding
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// verified is a live source with which everything is right.
func verified() gate.Report {
	exact := signer.Entry{
		Issuer:  `^https://token\.actions\.githubusercontent\.com$`,
		Subject: `^https://github\.com/acme/platform/\.github/workflows/cd\.yaml@refs/heads/main$`,
	}
	return gate.Report{
		SchemaVersion: gate.SchemaVersion,
		Gate:          gate.Build{Version: "v0.1.0", Forms: "fulcio v1.8.0"},
		JudgedAt:      judged,
		Verdict:       gate.Verified,
		Reason:        gate.ReasonVerified,
		Mode:          gate.Enforce,
		Live:          true,
		Cluster:       gate.Cluster{Server: "https://prod.acme.example:6443", Context: "admin@prod"},
		Expected:      gate.Expected{Digest: digestA, URL: "oci://ghcr.io/acme/platform"},
		Source: gate.SourceSummary{
			Namespace: "flux-system", Name: "flux-system", APIVersion: "source.toolkit.fluxcd.io/v1",
			UID: "439912f8-7003-4f61-a6ba-0128925fb21a", ResourceVersion: "18062", Generation: 3,
			Revision: "latest@" + digestA, Digest: digestA, URL: "oci://ghcr.io/acme/platform",
			Reference: "ghcr.io/acme/platform@" + digestA,
		},
		Findings: join(passA, passB, pass(gate.PolicyTooWide, gate.PolicyLoose), passC, passD, passE),
		Signers: []gate.SignerResult{{
			Issuer: issuer, Subject: subject, Layout: gate.LayoutBundle, Kind: gate.KindSignature,
			PredicateType: "https://sigstore.dev/cosign/sign/v1", Verified: true, Counts: true,
			Claims: signer.Claims{SourceRepository: "https://github.com/acme/platform", SourceRef: "refs/heads/main"},
		}},
		Policy: gate.PolicySummary{
			Required: []signer.Signer{{Issuer: issuer, Subject: subject, Shorthand: "github acme/platform cd.yaml@refs/heads/main"}},
			Live:     gate.LivePolicy{Present: true, Provider: "cosign", Identities: []signer.Entry{exact}},
		},
		Owners:  []gate.Owner{{Manager: "flux-operator", Operation: "Apply", Fields: []string{"spec.interval", "spec.url", "spec.verify"}, Time: judged.Add(-time.Hour)}},
		Timings: gate.Timings{StartedAt: judged.Add(-12 * time.Second), Waited: 11.5, Reads: 3},
	}
}

// tooWide is a live source whose policy accepts other branches as well.
func tooWide() gate.Report {
	r := verified()
	suggested := r.Policy.Live.Identities[0]
	r.Verdict, r.Reason = gate.Rejected, gate.PolicyTooWide
	r.Policy.Suggested = &suggested
	r.Policy.Live.Identities = []signer.Entry{{Issuer: suggested.Issuer, Subject: strings.TrimSuffix(suggested.Subject, "$")}}
	r.Policy.Witnesses = []gate.Witness{{Code: gate.PolicyTooWide, Identity: signer.Identity{Issuer: issuer, Subject: intruder}}}
	r.Findings = join(passA, passB, []gate.Finding{{
		Code: gate.PolicyTooWide, Outcome: gate.Fail,
		Title:    "the live policy accepts an identity that is neither required nor allowed",
		Expected: "nobody but github acme/platform cd.yaml@refs/heads/main",
		Found:    "for example " + intruder + " of issuer " + issuer,
		Remedy:   "end the subject pattern with $, as the suggested policy does, and apply it where spec.verify is owned (flux-operator)",
	}}, passC, passD, passE)
	return r
}

// many is a source with which much is wrong.
func many() gate.Report {
	r := tooWide()
	r.Source.Revision, r.Source.Digest, r.Source.Reference = "latest@"+digestB, digestB, "ghcr.io/acme/platform@"+digestB
	r.Findings = join(passA, passB, []gate.Finding{
		tooWide().Findings[len(passA)+len(passB)],
		{
			Code: gate.VerificationFailed, Outcome: gate.Fail, Class: gate.ClassNoSignature,
			Title:    "the controller refused the signature of the revision that it tried last",
			Expected: "SourceVerified True",
			Found:    "SourceVerified False: failed to verify the signature using provider 'cosign keyless': no signatures found",
			Remedy:   "sign the artifact before it is promoted: cosign sign ghcr.io/acme/platform@" + digestA,
		},
		{
			Code: gate.DigestMismatch, Outcome: gate.Fail,
			Title:    "another artifact is being served than the one that was promoted",
			Expected: digestA, Found: digestB,
			Remedy: "find out why the new revision was not taken in; the findings above say so",
		},
		{
			Code: gate.RegistryDenied, Outcome: gate.Unknown,
			Title:    "the registry did not let the gate look for signatures",
			Expected: "a token that may pull ghcr.io/acme/platform",
			Found:    "401 Unauthorized (anonymous)",
			Remedy:   "give the job packages: read, or set registry-username and registry-password",
		},
		{
			Code: gate.SourceInsecure, Outcome: gate.Note,
			Title: "the source is read over plain HTTP (spec.insecure)",
		},
	}, passC[1:])
	r.Signers = []gate.SignerResult{
		{
			Issuer: issuer, Subject: intruder + "x", Layout: gate.LayoutBundle, Kind: gate.KindSignature, Verified: true,
			Why: "the branch differs: refs/heads/main-x, required refs/heads/main",
		},
		{
			Issuer: issuer, Subject: subject, Layout: gate.LayoutTag, Kind: gate.KindSignature,
			Why: "certificate: the chain does not end in the trusted root",
		},
	}
	return r
}

// undecided is a cluster that could not be reached.
func undecided() gate.Report {
	r := verified()
	r.Verdict, r.Reason = gate.Undecided, gate.Unreachable
	r.Source = gate.SourceSummary{Namespace: "flux-system", Name: "flux-system"}
	r.Findings = []gate.Finding{{
		Code: gate.Unreachable, Outcome: gate.Unknown,
		Title:    "the cluster did not answer",
		Expected: "an answer from https://prod.acme.example:6443 within 10s",
		Found:    "dial tcp: lookup prod.acme.example: no such host",
		Remedy:   "check the server in the kubeconfig and whether the runner can reach it",
	}}
	r.Signers, r.Owners = nil, nil
	r.Policy.Live = gate.LivePolicy{}
	r.Timings.Reads = 0
	return r
}

const (
	unsignedDigest = "sha256:0d1c2b3a495867768594a3b2c1d0e0f102132435465768798a9babbccdded0f1"
	canaryMessage  = "failed to verify the signature using provider 'cosign keyless': no signatures found"
)

// withCanary is verified with a canary that was refused.
func withCanary() gate.Report {
	r := verified()
	r.Canary = &gate.CanarySummary{
		Namespace: "flux-system", Name: "flux-system-canary", State: gate.CanaryRefused,
		Class: gate.ClassNoSignature, Message: canaryMessage, APIVersion: "source.toolkit.fluxcd.io/v1",
		UID: "5b9d2b0c-5e0a-4f9e-9d2e-6a7d8e9fa0b1", ResourceVersion: "18070", Generation: 1,
		URL: "oci://ghcr.io/acme/platform", Digest: unsignedDigest,
	}
	r.Findings = join(r.Findings, []gate.Finding{
		{Code: gate.CanaryAccepted, Outcome: gate.Pass, Title: "the controller refused the canary, as it must", Class: gate.ClassNoSignature, Found: canaryMessage},
	}, pass(gate.CanaryDiffers))
	return r
}

// canaryTaken is what is verified but for a canary that was accepted, under a
// policy of its own.
func canaryTaken() gate.Report {
	r := verified()
	canary := *withCanary().Canary
	canary.State, canary.Class, canary.Message, canary.Digest = gate.CanaryWasAccepted, "", "", ""
	canary.Revision = "canary@" + unsignedDigest
	r.Canary = &canary
	r.Verdict, r.Reason = gate.Rejected, gate.CanaryAccepted
	r.Findings = join(r.Findings, []gate.Finding{
		{
			Code: gate.CanaryAccepted, Outcome: gate.Fail,
			Title:    "the controller accepted the canary: this policy does not refuse what it must refuse",
			Expected: "SourceVerified False at its generation, because no signature of the artifact is by whom the policy names",
			Found:    "SourceVerified True (Succeeded) at generation 1: verified signature of revision " + canary.Revision,
			Remedy:   "do not promote. See who signed the canary's artifact and why the policy accepts that signer (policy-too-wide)",
		},
		{
			Code: gate.CanaryDiffers, Outcome: gate.Fail,
			Title:    "the canary carries another policy than the source",
			Expected: "provider cosign, issuer \"a\" subject \"b\"", Found: "provider cosign, issuer \"a\" subject \".*\"",
			Remedy: "copy spec.verify of the source into the canary, whole",
		},
	})
	return r
}

// canaryDenied is what is verified but for a canary that could not be read.
func canaryDenied() gate.Report {
	r := verified()
	r.Canary = &gate.CanarySummary{Namespace: "flux-canary", Name: "unsigned", State: gate.CanaryUnknown}
	r.Verdict, r.Reason = gate.Undecided, gate.AccessDenied
	r.Findings = join(r.Findings, []gate.Finding{{
		Code: gate.AccessDenied, Outcome: gate.Unknown,
		Title:    "the canary flux-canary/unsigned could not be read: \"system:serviceaccount:flux-system:flux-verify-gate\" may not get ocirepositories.source.toolkit.fluxcd.io \"unsigned\" in the namespace \"flux-canary\"",
		Expected: "a Role that allows it",
		Found:    "403 Forbidden",
		Remedy:   "kubectl create role flux-verify-gate-canary --namespace flux-canary --verb get,watch",
	}})
	return r
}

// warned is what tooWide is in mode warn.
func warned() gate.Report {
	r := tooWide()
	r.Mode = gate.Warn
	return r
}

// recorded is a recording with which everything is right, with notes.
func recorded() gate.Report {
	r := verified()
	r.Live = false
	r.Cluster = gate.Cluster{File: "examples/recorded/verified.json"}
	r.Expected = gate.Expected{Digest: gate.DigestAny}
	r.Findings = join(passA, passB, pass(gate.PolicyTooWide), []gate.Finding{
		{
			Code: gate.PolicyLoose, Outcome: gate.Note,
			Title:    "the live policy also accepts strings that cannot be issued",
			Expected: `^https://token\.actions\.githubusercontent\.com$`,
			Found:    "https://token.actions.githubusercontent.com",
			Remedy:   "escape the dots",
		},
	}, passC, pass(gate.DigestMismatch), []gate.Finding{
		{
			Code: gate.WillRefuse, Outcome: gate.Note,
			Title:  "the controller would refuse this artifact if it verified it again",
			Remedy: "remove the second entry of matchOIDCIdentity before the next push",
		},
		{
			Code: gate.SignatureSkipped, Outcome: gate.Note,
			Title:  "the registry was not asked for the signature",
			Remedy: "leave signature at its default, verify",
		},
	})
	r.Signers = nil
	r.Timings = gate.Timings{StartedAt: judged, Reads: 1}
	return r
}

// willRefuse is a live source that is verified, but will not stay so.
func willRefuse() gate.Report {
	r := recorded()
	r.Live, r.Cluster = true, verified().Cluster
	return r
}

// keyed is a source that is verified with a key that it must not name.
func keyed() gate.Report {
	r := verified()
	r.Verdict, r.Reason = gate.Rejected, gate.KeyUnexpected
	r.Policy = gate.PolicySummary{Keys: "cosign-a", Live: gate.LivePolicy{Present: true, Provider: "cosign", Secret: "cosign-b"}}
	r.Findings = join(passA, pass(gate.VerifyAbsent), []gate.Finding{{
		Code: gate.KeyUnexpected, Outcome: gate.Fail,
		Title:    "the live policy trusts another Secret than the required one",
		Expected: "secretRef cosign-a", Found: "secretRef cosign-b",
		Remedy: "set spec.verify.secretRef.name to cosign-a",
	}}, passC, passD)
	r.Signers = []gate.SignerResult{{Key: strings.Repeat("ab", 32), Layout: gate.LayoutTag, Kind: gate.KindSignature, Verified: true, Counts: true}}
	return r
}

// broken is the report of a run that broke off before it had one.
func broken() gate.Report {
	return gate.Report{}
}

// huge has more of everything than fits anywhere.
func huge() gate.Report {
	r := many()
	long := strings.Repeat("0123456789 ##[error]| `<b>\n", 100)
	for i := range 60 {
		r.Findings = append(r.Findings, gate.Finding{
			Code: gate.SignedByOthers, Outcome: gate.Fail, Title: fmt.Sprintf("number %d %s", i, long),
			Expected: long, Found: long, Remedy: long,
		})
		r.Signers = append(r.Signers, gate.SignerResult{Issuer: long, Subject: long, Why: long, Layout: gate.LayoutTag})
		r.Policy.Required = append(r.Policy.Required, signer.Signer{Issuer: long, Subject: long})
		r.Policy.Allowed = append(r.Policy.Allowed, signer.Signer{IssuerPattern: long, SubjectPattern: long})
		r.Policy.Live.Identities = append(r.Policy.Live.Identities, signer.Entry{Issuer: long, Subject: long})
		r.Policy.Witnesses = append(r.Policy.Witnesses, gate.Witness{Code: gate.PolicyTooWide, Identity: signer.Identity{Issuer: long, Subject: long}})
		r.Owners = append(r.Owners, gate.Owner{Manager: long, Operation: "Apply", Fields: []string{long, long}})
	}
	r.Policy.Suggested.Subject = long
	return r
}

// filledWith returns a report in which every string is one of texts, in turn,
// beginning with the first, and every list has three elements.
func filledWith(texts ...string) gate.Report {
	next := 0
	var r gate.Report
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(texts[next%len(texts)])
			next++
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(next))
		case reflect.Float64:
			v.SetFloat(float64(next) / 4)
		case reflect.Bool:
			v.SetBool(next%2 == 0)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 3, 3))
			for i := range 3 {
				fill(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(judged))
				return
			}
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		default:
			panic("no text for " + v.Type().String())
		}
	}
	fill(reflect.ValueOf(&r).Elem())
	return r
}

// hostileReport is everything hostile in places where it does matter: a finding
// of every outcome, a suggestion, a verdict.
func hostileReport(texts ...string) gate.Report {
	r := filledWith(texts...)
	r.Verdict, r.Reason = gate.Rejected, gate.PolicyTooWide
	for i, o := range []gate.Outcome{gate.Fail, gate.Unknown, gate.Note, gate.Pass} {
		f := r.Findings[i%3]
		f.Outcome = o
		r.Findings = append(r.Findings, f)
	}
	f := r.Findings[0]
	f.Code, f.Outcome = gate.PolicyTooWide, gate.Fail
	r.Findings = append(r.Findings, f)
	return r
}

// samples are the reports of the golden files, by name.
func samples() map[string]gate.Report {
	return map[string]gate.Report{
		"verified":    verified(),
		"too-wide":    tooWide(),
		"many":        many(),
		"undecided":   undecided(),
		"canary":      withCanary(),
		"canary-took": canaryTaken(),
		"canary-none": canaryDenied(),
		"warned":      warned(),
		"recorded":    recorded(),
		"will-refuse": willRefuse(),
		"keyed":       keyed(),
		"broken":      broken(),
		"hostile":     hostileReport(hostile...),
	}
}
