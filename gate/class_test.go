package gate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"flux-verify-gate/gate"
)

// The texts of source-controller with its libraries, by provider. Those of
// recorded objects are in TestClassifyRecorded.
func TestClassify(t *testing.T) {
	t.Parallel()
	const (
		keyed   = "failed to verify the signature using provider 'cosign': "
		keyless = "failed to verify the signature using provider 'cosign keyless': "
	)
	tests := []struct {
		name    string
		message string
		want    gate.Class
		wait    gate.Wait
	}{
		{"no tag with signatures", keyless + "no signatures found", gate.ClassNoSignature, gate.WaitMinute},
		{"no tag with signatures, wrapped", keyless + "GET failed: no signatures found", gate.ClassNoSignature, gate.WaitMinute},
		{"no key", keyed + "no matching signatures were found for 'registry.example/acme/x@sha256:" + hexA + "'", gate.ClassNoMatchingKey, gate.WaitMinute},
		{"no key, in the older text", keyed + "no matching signatures were found for 'registry.example/acme/x:v1'", gate.ClassNoMatchingKey, gate.WaitMinute},
		{"no key, on a bundle", keyed + "no matching attestations: failed to verify signature: could not verify envelope: accepted signatures do not match threshold, Found: 0, Expected 1", gate.ClassNoMatchingKey, gate.WaitMinute},
		{"the wrong identity, older layout", keyless + "no matching signatures: none of the expected identities matched what was in the certificate, got subjects [https://github.com/acme/x/.github/workflows/y.yaml@refs/heads/main] with issuer https://token.actions.githubusercontent.com", gate.ClassWrongSigner, gate.WaitOnceMore},
		{"the wrong identity, on a bundle", keyless + "no matching attestations: failed to verify certificate identity: no matching CertificateIdentity found, last error: expected SAN value to match regex \"x\", got \"y\"", gate.ClassWrongSigner, gate.WaitOnceMore},
		{"two identities", keyless + "no matching attestations: unsupported: multiple identities are not supported at this time", gate.ClassMultipleIdentities, gate.WaitOnceMore},
		{"no identity", keyless + "no matching attestations: failed to build policy: can't verify identities without providing at least one identity", gate.ClassNoIdentity, gate.WaitOnceMore},
		{"an empty subject", keyless + "no matching attestations: when verifying a certificate identity, there must be subject alternative name criteria", gate.ClassNoIdentity, gate.WaitOnceMore},
		{"an empty issuer", keyless + "no matching attestations: when verifying a certificate identity, must specify Issuer criteria", gate.ClassNoIdentity, gate.WaitOnceMore},
		{"a bad pattern, on a bundle", keyless + "no matching attestations: error parsing regexp: invalid or unsupported Perl syntax: `(?!`", gate.ClassBadPattern, gate.WaitOnceMore},
		{"a bad issuer, older layout", keyless + "no matching signatures: malformed issuer in identity: {x y}: error parsing regexp: missing closing ]: `[`", gate.ClassBadPattern, gate.WaitOnceMore},
		{"a bad subject, older layout", keyless + "no matching signatures: malformed subject in identity: {x y}", gate.ClassBadPattern, gate.WaitOnceMore},

		{"no Secret", keyed + `secrets "cosign-pub" not found`, gate.ClassSecretMissing, gate.WaitMinute},
		{"no Secret with a root", keyless + `failed to read trusted root from secret 'flux-system/root': secrets "root" not found`, gate.ClassSecretMissing, gate.WaitMinute},
		{"no root in the Secret", keyless + "'trusted_root.json' not found in secret 'flux-system/root'", gate.ClassSecretMissing, gate.WaitMinute},
		{"a text that ends like a missing Secret", keyed + `GET "https://registry.example": blob "x" not found`, gate.ClassUnknown, gate.WaitDeadline},

		{"no trusted root", keyless + "unable to initialize trusted root: tuf refresh failed: no such host", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"a root that does not parse", keyless + "unable to parse trusted root: unexpected end of JSON input", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"a root without a log", keyless + "unable to extract Rekor URL from trusted root: none", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"no keys of Rekor", keyless + "unable to get Rekor public keys: context deadline exceeded", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"no keys of the CT log", keyless + "unable to get CTLog public keys: x", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"no root of Fulcio", keyless + "unable to get Fulcio root certs: x", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"no intermediate of Fulcio", keyless + "unable to get Fulcio intermediate certs: x", gate.ClassSigstoreTrouble, gate.WaitDeadline},
		{"no client of Rekor", keyless + "unable to create Rekor client: x", gate.ClassSigstoreTrouble, gate.WaitDeadline},

		{"too many requests", keyed + "GET https://registry.example/v2/: TOOMANYREQUESTS: slow down", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"unauthorized", keyed + "GET https://registry.example/v2/: UNAUTHORIZED: authentication required", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"denied", keyed + "GET https://registry.example/v2/: DENIED: no", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"refused", keyed + "dial tcp 127.0.0.1:5000: connect: connection refused", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"reset", keyed + "read tcp: connection reset by peer", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"no host", keyed + "lookup registry.example: no such host", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"a timeout", keyed + "dial tcp 10.0.0.1:443: i/o timeout", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"the controller's own timeout", keyed + "context deadline exceeded", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"a status", keyed + "unexpected status code 503 Service Unavailable", gate.ClassRegistryTrouble, gate.WaitDeadline},
		{"no trust", keyed + "tls: failed to verify certificate: x509: certificate signed by unknown authority", gate.ClassRegistryTrouble, gate.WaitDeadline},

		{"the digest of another artifact", keyless + "no matching attestations: provided artifact digest does not match any digest in statement", gate.ClassUnknown, gate.WaitDeadline},
		{"notation", "failed to verify the signature using provider 'notation': no signature is associated with x", gate.ClassUnknown, gate.WaitDeadline},
		{"a notation Secret without a policy", "failed to verify the signature using provider 'notation': 'trustpolicy.json' not found in secret", gate.ClassUnknown, gate.WaitDeadline},
		{"another provider", "failed to verify the signature using provider 'gpg': unsupported verification provider", gate.ClassUnknown, gate.WaitDeadline},
		{"another text", "no signatures found", gate.ClassUnknown, gate.WaitDeadline},
		{"no cause", "failed to verify the signature using provider 'cosign'", gate.ClassUnknown, gate.WaitDeadline},
		{"nothing", "", gate.ClassUnknown, gate.WaitDeadline},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			class := gate.Classify(tt.message)
			if class != tt.want {
				t.Errorf("got %s, want %s", class, tt.want)
			}
			if wait := gate.ClassWait(class); wait != tt.wait {
				t.Errorf("waits %q, want %q", wait, tt.wait)
			}
		})
	}
}

// TestClassifyRecorded reads the texts that were recorded.
func TestClassifyRecorded(t *testing.T) {
	t.Parallel()
	want := map[string]gate.Class{
		"live/03-unsigned.json":                            gate.ClassNoMatchingKey,
		"live/04-otherkey-bundle.json":                     gate.ClassNoMatchingKey,
		"live/11c-then-spec-touched.json":                  gate.ClassNoMatchingKey,
		"live/12-secret-missing.json":                      gate.ClassSecretMissing,
		"live/22-keyless-wrong-issuer.json":                gate.ClassWrongSigner,
		"live/24-keyless-unsigned.json":                    gate.ClassNoSignature,
		"live/26-keyless-but-key-signed.json":              gate.ClassUnknown,
		"live/27-keyless-public-root-offline.json":         gate.ClassSigstoreTrouble,
		"live/28-keyless-two-identities.json":              gate.ClassMultipleIdentities,
		"live/32-keyless-untrusted-root.json":              gate.ClassUnknown,
		"operator/54-after-operator-drift-correction.json": gate.ClassNoMatchingKey,
	}
	seen := 0
	for _, c := range readCases(t) {
		data, err := os.ReadFile(filepath.Join("testdata", "cases", c.Object))
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type != "SourceVerified" || condition.Status != "False" {
				continue
			}
			seen++
			if got := gate.Classify(condition.Message); got != want[c.Object] {
				t.Errorf("%s: got %s, want %s: %s", c.Object, got, want[c.Object], condition.Message)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d failed verifications in the recordings, want %d", seen, len(want))
	}
}
