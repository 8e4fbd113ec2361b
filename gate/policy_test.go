package gate_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

var (
	cd     = signer.Signer{Issuer: githubActions, Subject: cdMain}
	hotfix = signer.Signer{Issuer: githubActions, Subject: strings.Replace(cdMain, "cd.yaml", "hotfix.yaml", 1)}
)

// sound is what the tests of NewPolicy start from.
func sound() gate.Requirements {
	return gate.Requirements{Required: []signer.Signer{cd}, Digest: gate.DigestAny, Signature: gate.SignatureVerify}
}

// soundKeys is the same with keys.
func soundKeys() gate.Requirements {
	return gate.Requirements{
		Keys:   &gate.Keys{Secret: "cosign-a", PEM: []string{publicKeyPEM}},
		Digest: gate.DigestAny, Signature: gate.SignatureVerify,
	}
}

// lineFeed keeps a control character out of the table.
const lineFeed = "\n"

func TestNewPolicyRefuses(t *testing.T) {
	t.Parallel()
	claimed := cd
	claimed.Claims.RunnerEnvironment = "github-hosted"
	repeated := cd
	repeated.Shorthand = "the deployment of acme/platform"
	hex := strings.Repeat("0123456789abcdef", 4)
	const (
		digestForm = "expected sha256: and 64 lower-case hex digits, or the word any, found "
		urlForm    = "expected oci://registry/repository, as in spec.url, without tag or digest, found "
		aWhole     = "; pass the digest that the push step printed, whole; a tag is no digest"
		copied     = "; copy it from spec.url"
		standAlone = "input required-keys: expected to stand alone, found "
		oneSide    = " beside it; a policy takes keys or identities, never both: remove one side"
		onlyShown  = "input signature: expected verify, because only the signature itself can show what is asked for in "
		skipFound  = ", found skip; remove one side"
	)
	tests := []struct {
		name   string
		from   func() gate.Requirements
		edit   func(*gate.Requirements)
		faults []string
	}{
		{"nobody", sound, func(w *gate.Requirements) { w.Required = nil },
			[]string{"input required-signers: expected at least one signer (or required-keys), found nothing; name the workflow that signs (docs/signers.md): a gate that requires nobody would accept everybody"}},
		{"an empty list", sound, func(w *gate.Requirements) { w.Required = []signer.Signer{} },
			[]string{"input required-signers: expected at least one signer (or required-keys), found nothing; name the workflow that signs (docs/signers.md): a gate that requires nobody would accept everybody"}},
		{"only allowed signers", sound, func(w *gate.Requirements) { w.Allowed, w.Required = w.Required, nil },
			[]string{"input required-signers: expected at least one signer (or required-keys), found nothing; name the workflow that signs (docs/signers.md): a gate that requires nobody would accept everybody"}},
		{"a signer twice", sound, func(w *gate.Requirements) { w.Required = []signer.Signer{cd, hotfix, cd} },
			[]string{"input required-signers: expected each signer once, found entry 3 again: " + cdMain + " from " + githubActions + "; remove the repetition"}},
		{"a signer twice, once as a shorthand", sound, func(w *gate.Requirements) { w.Required = []signer.Signer{repeated, cd} },
			[]string{"input required-signers: expected each signer once, found entry 2 again: " + cdMain + " from " + githubActions + "; remove the repetition"}},

		{"keys beside signers", soundKeys, func(w *gate.Requirements) { w.Required = []signer.Signer{cd} },
			[]string{standAlone + "required-signers" + oneSide}},
		{"keys beside allowed signers", soundKeys, func(w *gate.Requirements) { w.Allowed = []signer.Signer{cd} },
			[]string{standAlone + "allowed-signers" + oneSide}},
		{"keys beside require-all", soundKeys, func(w *gate.Requirements) { w.RequireAll = true },
			[]string{standAlone + "require-all" + oneSide}},
		{"keys beside everything", soundKeys, func(w *gate.Requirements) {
			w.Required, w.Allowed, w.RequireAll = []signer.Signer{cd}, []signer.Signer{hotfix}, true
		}, []string{standAlone + "required-signers, allowed-signers, require-all" + oneSide}},
		{"keys without a Secret", soundKeys, func(w *gate.Requirements) { w.Keys.Secret = "" },
			[]string{"input required-keys: expected secret: the name of the Secret that spec.verify must use, found none; add it (docs/signers.md)"}},
		{"keys without a Secret, skipped", soundKeys, func(w *gate.Requirements) { w.Keys, w.Signature = &gate.Keys{}, gate.SignatureSkip },
			[]string{"input required-keys: expected secret: the name of the Secret that spec.verify must use, found none; add it (docs/signers.md)"}},
		{"a Secret without keys", soundKeys, func(w *gate.Requirements) { w.Keys.PEM = nil },
			[]string{"input required-keys: expected keys: the public keys to check the signature with, found none; add the PEM of the keys in the Secret, or write signature: skip"}},

		{"no digest", sound, func(w *gate.Requirements) { w.Digest = "" },
			[]string{"input digest: " + digestForm + "nothing; pass the digest that the push step printed; if that step can be skipped, its output is empty here"}},
		{"a blank digest", sound, func(w *gate.Requirements) { w.Digest = " " }, []string{"input digest: " + digestForm + `" "` + aWhole}},
		{"a digest in upper case", sound, func(w *gate.Requirements) { w.Digest = "sha256:" + strings.ToUpper(hex) },
			[]string{"input digest: " + digestForm + `"sha256:` + strings.ToUpper(hex) + `"` + aWhole}},
		{"hex alone", sound, func(w *gate.Requirements) { w.Digest = hex }, []string{"input digest: " + digestForm + `"` + hex + `"` + aWhole}},
		{"a short digest", sound, func(w *gate.Requirements) { w.Digest = "sha256:" + hex[1:] }, []string{"input digest: " + digestForm + `"sha256:` + hex[1:] + `"` + aWhole}},
		{"a long digest", sound, func(w *gate.Requirements) { w.Digest = "sha256:" + hex + "0" }, []string{"input digest: " + digestForm + `"sha256:` + hex + `0"` + aWhole}},
		{"sha512", sound, func(w *gate.Requirements) { w.Digest = "sha512:" + hex + hex }, []string{"input digest: " + digestForm + `"sha512:` + hex + hex + `"` + aWhole}},
		{"a reference for a digest", sound, func(w *gate.Requirements) { w.Digest = "v1@sha256:" + hex }, []string{"input digest: " + digestForm + `"v1@sha256:` + hex + `"` + aWhole}},
		{"a line behind the digest", sound, func(w *gate.Requirements) { w.Digest = "sha256:" + hex + lineFeed }, []string{"input digest: " + digestForm + `"sha256:` + hex + `\n"` + aWhole}},
		{"any in upper case", sound, func(w *gate.Requirements) { w.Digest = "Any" }, []string{"input digest: " + digestForm + `"Any"` + aWhole}},

		{"a url without its scheme", sound, func(w *gate.Requirements) { w.URL = "registry.example/acme/flux" }, []string{"input url: " + urlForm + `"registry.example/acme/flux"` + copied}},
		{"an https url", sound, func(w *gate.Requirements) { w.URL = "https://registry.example/acme/flux" }, []string{"input url: " + urlForm + `"https://registry.example/acme/flux"` + copied}},
		{"a scheme in upper case", sound, func(w *gate.Requirements) { w.URL = "OCI://registry.example/acme/flux" }, []string{"input url: " + urlForm + `"OCI://registry.example/acme/flux"` + copied}},
		{"a url without a repository", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example" }, []string{"input url: " + urlForm + `"oci://registry.example"` + copied}},
		{"a url that ends after the registry", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example/" }, []string{"input url: " + urlForm + `"oci://registry.example/"` + copied}},
		{"a url without a registry", sound, func(w *gate.Requirements) { w.URL = "oci:///acme/flux" }, []string{"input url: " + urlForm + `"oci:///acme/flux"` + copied}},
		{"a url with a tag", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example/acme/flux:v1" }, []string{"input url: " + urlForm + `"oci://registry.example/acme/flux:v1"` + copied}},
		{"a url with a digest", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example/acme/flux@sha256:" + hex }, []string{"input url: " + urlForm + `"oci://registry.example/acme/flux@sha256:` + hex + `"` + copied}},
		{"a url with a space", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example/acme/flux " }, []string{"input url: " + urlForm + `"oci://registry.example/acme/flux "` + copied}},
		{"a url with a slash behind it", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example/acme/flux/" }, []string{"input url: " + urlForm + `"oci://registry.example/acme/flux/"` + copied}},
		{"a url with an empty part", sound, func(w *gate.Requirements) { w.URL = "oci://registry.example/acme//flux" }, []string{"input url: " + urlForm + `"oci://registry.example/acme//flux"` + copied}},

		{"no signature mode", sound, func(w *gate.Requirements) { w.Signature = "" }, []string{`input signature: expected verify or skip, found ""`}},
		{"another signature mode", sound, func(w *gate.Requirements) { w.Signature = "Skip" }, []string{`input signature: expected verify or skip, found "Skip"`}},

		{"skip and claims", sound, func(w *gate.Requirements) {
			w.Signature, w.Required = gate.SignatureSkip, []signer.Signer{hotfix, claimed}
		}, []string{onlyShown + "claims in required-signers entry 2" + skipFound}},
		{"skip and claims of an allowed signer", sound, func(w *gate.Requirements) {
			w.Signature, w.Required, w.Allowed = gate.SignatureSkip, []signer.Signer{hotfix}, []signer.Signer{claimed}
		}, []string{onlyShown + "claims in allowed-signers entry 1" + skipFound}},
		{"skip and require-all", sound, func(w *gate.Requirements) { w.Signature, w.RequireAll = gate.SignatureSkip, true },
			[]string{onlyShown + "require-all" + skipFound}},
		{"skip and attestations", sound, func(w *gate.Requirements) {
			w.Signature, w.Attestations = gate.SignatureSkip, []string{"https://slsa.dev/provenance/v1"}
		}, []string{onlyShown + "attestations" + skipFound}},
		{"skip and everything", sound, func(w *gate.Requirements) {
			w.Signature, w.Required, w.RequireAll, w.Attestations = gate.SignatureSkip, []signer.Signer{claimed}, true, []string{"https://slsa.dev/provenance/v1"}
		}, []string{onlyShown + "claims in required-signers entry 1, require-all, attestations" + skipFound}},

		{"an empty predicate type", sound, func(w *gate.Requirements) { w.Attestations = []string{"https://slsa.dev/provenance/v1", ""} },
			[]string{`input attestations: expected predicate types, such as https://slsa.dev/provenance/v1, found ""; write one type per line`}},
		{"two predicate types in one", sound, func(w *gate.Requirements) { w.Attestations = []string{"https://a https://b"} },
			[]string{`input attestations: expected predicate types, such as https://slsa.dev/provenance/v1, found "https://a https://b"; write one type per line`}},

		{"a canary without a name", sound, func(w *gate.Requirements) { w.Canary = gate.ObjectName{Namespace: "a"} },
			[]string{`input canary: expected the name of an OCIRepository behind the slash, found "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); write it as namespace/name`}},
		{"a canary without a namespace", sound, func(w *gate.Requirements) { w.Canary = gate.ObjectName{Name: "a"} },
			[]string{`input canary: expected the name of a namespace before the slash, found "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'); write it as namespace/name`}},

		{"several faults at once", sound, func(w *gate.Requirements) { *w = gate.Requirements{URL: "x"} }, []string{
			"input required-signers: expected at least one signer (or required-keys), found nothing; name the workflow that signs (docs/signers.md): a gate that requires nobody would accept everybody",
			"input digest: " + digestForm + "nothing; pass the digest that the push step printed; if that step can be skipped, its output is empty here",
			"input url: " + urlForm + `"x"` + copied,
			`input signature: expected verify or skip, found ""`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.from()
			if _, err := gate.NewPolicy(want); err != nil {
				t.Fatalf("the start is not sound: %v", err)
			}
			tt.edit(&want)
			p, err := gate.NewPolicy(want)
			if err == nil {
				t.Fatal("got no error")
			}
			if got := strings.Split(err.Error(), "\n"); !reflect.DeepEqual(got, tt.faults) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.faults, "\n"))
			}
			var input *gate.InputError
			if !errors.As(err, &input) {
				t.Errorf("%T holds no InputError", err)
			}
			if !reflect.DeepEqual(p, gate.Policy{}) {
				t.Error("a policy came with the error")
			}
		})
	}
}

func TestNewPolicyAccepts(t *testing.T) {
	t.Parallel()
	claimed := cd
	claimed.Claims.RunnerEnvironment = "github-hosted"
	tests := []struct {
		name string
		from func() gate.Requirements
		edit func(*gate.Requirements)
	}{
		{"a signer", sound, func(*gate.Requirements) {}},
		{"two signers, both of whom must sign", sound, func(w *gate.Requirements) { w.Required, w.RequireAll = []signer.Signer{cd, hotfix}, true }},
		{"one signer with claims and the same without", sound, func(w *gate.Requirements) { w.Required = []signer.Signer{cd, claimed} }},
		{"a signer that is required and allowed", sound, func(w *gate.Requirements) { w.Allowed = []signer.Signer{cd} }},
		{"an allowed signer, skipped", sound, func(w *gate.Requirements) { w.Allowed, w.Signature = []signer.Signer{hotfix}, gate.SignatureSkip }},
		{"attestations", sound, func(w *gate.Requirements) { w.Attestations = []string{"https://slsa.dev/provenance/v1"} }},
		{"a digest", sound, func(w *gate.Requirements) { w.Digest = "sha256:" + strings.Repeat("0123456789abcdef", 4) }},
		{"a url", sound, func(w *gate.Requirements) { w.URL = "oci://ghcr.io/acme/flux" }},
		{"a url with a port", sound, func(w *gate.Requirements) { w.URL = "oci://127.0.0.1:5000/flux" }},
		{"a key", soundKeys, func(*gate.Requirements) {}},
		{"attestations by a key", soundKeys, func(w *gate.Requirements) { w.Attestations = []string{"https://slsa.dev/provenance/v1"} }},
		{"a Secret alone, skipped", soundKeys, func(w *gate.Requirements) { w.Keys.PEM, w.Signature = nil, gate.SignatureSkip }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.from()
			tt.edit(&want)
			p, err := gate.NewPolicy(want)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(p.Requirements(), want) {
				t.Errorf("got %+v back, want %+v", p.Requirements(), want)
			}
		})
	}
}

func TestInputError(t *testing.T) {
	t.Parallel()
	cause := errors.New("line 3: no such field")
	tests := []struct {
		err  gate.InputError
		want string
	}{
		{gate.InputError{Input: "digest", Expected: "one", Found: "two", Remedy: "look"}, "input digest: expected one, found two; look"},
		{gate.InputError{Input: "digest", Expected: "one", Found: "two"}, "input digest: expected one, found two"},
		{gate.InputError{Input: "digest", Expected: "one"}, "input digest: expected one"},
		{gate.InputError{Input: "digest", Found: "two"}, "input digest: found two"},
		{gate.InputError{Input: "digest", Err: cause}, "input digest: line 3: no such field"},
		{gate.InputError{Input: "digest", Expected: "one", Err: cause, Remedy: "look"}, "input digest: expected one: line 3: no such field; look"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if !errors.Is(&gate.InputError{Input: "digest", Err: cause}, cause) {
		t.Error("the cause is lost")
	}
}
