package gate_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

// indented is text as a block scalar below a list entry.
func indented(text string) string {
	return "|\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	quoted := fmt.Sprintf("%q", publicKeyPEM)
	tests := []struct {
		name   string
		text   string
		secret string
		keys   int
	}{
		{"a Secret", "secret: cosign-a", "cosign-a", 0},
		{"a Secret in flow style", "{secret: cosign-a}", "cosign-a", 0},
		{"a Secret in JSON", `{"secret": "cosign-a"}`, "cosign-a", 0},
		{"an empty list of keys", "{secret: cosign-a, keys: []}", "cosign-a", 0},
		{"a key", "secret: cosign-a\nkeys:\n  - " + indented(publicKeyPEM), "cosign-a", 1},
		{"two keys", "secret: cosign-a\nkeys:\n  - " + indented(publicKeyPEM) + "  - " + indented(publicKeyPEM), "cosign-a", 2},
		{"a key in JSON", `{"secret": "cosign-a", "keys": [` + quoted + `]}`, "cosign-a", 1},
		{"a key with space around it", `{"secret": "cosign-a", "keys": [` + fmt.Sprintf("%q", "\n\n"+publicKeyPEM+"\n\n") + `]}`, "cosign-a", 1},
		{"a comment", "# ours\nsecret: cosign-a # the Secret", "cosign-a", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			keys, err := gate.ParseKeys([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if keys.Secret != tt.secret || len(keys.PEM) != tt.keys {
				t.Errorf("got Secret %q and %d keys", keys.Secret, len(keys.PEM))
			}
		})
	}
}

func TestParseKeysRefuses(t *testing.T) {
	t.Parallel()
	private := strings.ReplaceAll(publicKeyPEM, "PUBLIC KEY", "EC PRIVATE KEY")
	certificate := strings.ReplaceAll(publicKeyPEM, "PUBLIC KEY", "CERTIFICATE")
	broken := strings.Replace(publicKeyPEM, "MFkw", "AAAA", 1)
	withKey := func(text string) string { return fmt.Sprintf(`{"secret": "cosign-a", "keys": [%q]}`, text) }
	tests := []struct{ name, text, want string }{
		{"nothing", "", "found nothing"},
		{"a comment alone", "# nothing\n", "found nothing"},
		{"null", "null", "field secret: expected the name"},
		{"no Secret", "keys: []", "field secret: expected the name"},
		{"an empty Secret", `{"secret": ""}`, "field secret: expected the name"},
		{"a blank Secret", `{"secret": "  "}`, "field secret: expected the name"},
		{"space around the Secret", `{"secret": " cosign-a"}`, "field secret: expected no space"},
		{"a list", "- secret: a", "line 1"},
		{"a text", "cosign-a", "line 1"},
		{"an unknown field", "secret: a\nkey: b", "line 2: field key not found"},
		{"a field in another case", "Secret: a", "field Secret not found"},
		{"a field twice", "secret: a\nsecret: b", "line 2"},
		{"keys that are no list", "secret: a\nkeys: b", "line 2"},
		{"a second document", "secret: a\n---\nsecret: b", "found a second one"},
		{"a tab", "secret: a\n\tkeys: []", "line 2"},
		{"text for a key", withKey("hello"), "entry 1: expected a public key in PEM, found no PEM block"},
		{"an empty key", withKey(""), "entry 1: expected a public key in PEM, found no PEM block"},
		{"a private key", withKey(private), `found "EC PRIVATE KEY"`},
		{"a certificate", withKey(certificate), `found "CERTIFICATE"`},
		{"two keys in one entry", withKey(publicKeyPEM + publicKeyPEM), "found more behind it"},
		{"text behind a key", withKey(publicKeyPEM + "hello"), "found more behind it"},
		{"text before a key", withKey("hello\n" + publicKeyPEM), "found more before it"},
		{"a broken key before a key", withKey("-----BEGIN PUBLIC KEY-----\n" + publicKeyPEM), "found more before it"},
		{"a key that is none", withKey(broken), "expected a public key in PKIX form"},
		{"the second of two keys", fmt.Sprintf(`{"secret": "a", "keys": [%q, "x"]}`, publicKeyPEM), "entry 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			keys, err := gate.ParseKeys([]byte(tt.text))
			if err == nil {
				t.Fatalf("got no error and %+v", keys)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to hold %q", err, tt.want)
			}
			if keys != nil {
				t.Error("keys came with the error")
			}
		})
	}
}

// FuzzParseKeys holds that whatever is accepted names a Secret and holds keys
// that parse, one each.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("secret: cosign-a\nkeys:\n  - " + indented(publicKeyPEM)))
	f.Add([]byte(fmt.Sprintf(`{"secret": "cosign-a", "keys": [%q]}`, publicKeyPEM)))
	f.Add([]byte("secret: a\n---\nsecret: b"))
	f.Add([]byte("secret: &a x\nkeys: [*a]"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := gate.ParseKeys(data)
		if err != nil {
			if keys != nil {
				t.Error("keys came with the error")
			}
			return
		}
		if strings.TrimSpace(keys.Secret) == "" {
			t.Error("no Secret")
		}
		for i, text := range keys.PEM {
			block, _ := pem.Decode([]byte(text))
			if block == nil || strings.Count(text, "-----BEGIN") != 1 {
				t.Fatalf("key %d is not one PEM block: %q", i, text)
			}
			if _, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil {
				t.Errorf("key %d: %v", i, err)
			}
		}
	})
}
