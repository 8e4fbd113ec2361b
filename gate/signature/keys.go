package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"flux-verify-gate/gate"
)

// publicKey is one required key and the SHA-256 of its DER form.
type publicKey struct {
	id       string
	verifier signature.Verifier
}

// readKeys reads public keys, one PKIX key in PEM each. They verify with
// SHA-256, as the controller's do (source-controller, internal/oci/cosign,
// v1.9).
func readKeys(pems []string) ([]publicKey, error) {
	keys := make([]publicKey, 0, len(pems))
	for n, text := range pems {
		der, err := onePEM(text, "PUBLIC KEY")
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", n+1, err)
		}
		public, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, fmt.Errorf("key %d: expected a public key: %w", n+1, err)
		}
		key, err := newPublicKey(public)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", n+1, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("expected a public key, found none")
	}
	return keys, nil
}

func newPublicKey(public crypto.PublicKey) (publicKey, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return publicKey{}, fmt.Errorf("expected a public key: %w", err)
	}
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return publicKey{}, fmt.Errorf("expected a public key that can verify: %w", err)
	}
	sum := sha256.Sum256(der)
	return publicKey{id: hex.EncodeToString(sum[:]), verifier: verifier}, nil
}

// keyed verifies signatures made with a key, any of keys. As in the controller
// the transparency log, certificates and times play no part.
type keyed struct {
	keys []publicKey
}

func (k keyed) verify(e evidence, q question) gate.Signature {
	return run(e, func(s *steps) error {
		parsed, err := e.parse(false)
		s.describe(parsed, e)
		if err != nil {
			return err
		}
		content, err := parsed.VerificationContent()
		if err != nil {
			return err
		}
		if leaf := content.Certificate(); leaf != nil {
			// Who it says it is helps to explain; nothing vouches for it.
			_, _ = s.certificate(leaf)
		}
		if err := s.binding(parsed, q.digest); err != nil {
			return err
		}

		s.step = gate.StepCertificate
		if content.Certificate() != nil {
			return errors.New("expected a signature made with a key, found one with a certificate")
		}

		s.step = gate.StepSignature
		for _, key := range k.keys {
			if err = k.whole(parsed, key, q.digest); err == nil {
				s.found.Key = key.id
				return nil
			}
		}
		return fmt.Errorf("expected a signature by one of %d required keys: %w", len(k.keys), err)
	})
}

func (k keyed) whole(parsed *entity, key publicKey, digest string) error {
	// The hint in a bundle is not asked: it is the signer's word.
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(key.verifier, time.Time{}, time.Time{}), nil
	})
	whole, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
	if err != nil {
		return err
	}
	artifact, err := parsed.artifact(digest)
	if err != nil {
		return err
	}
	_, err = whole.Verify(parsed.Bundle, verify.NewPolicy(artifact, verify.WithKey()))
	return err
}

// foreignKey makes a key that nobody signed with.
func foreignKey() (publicKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return publicKey{}, fmt.Errorf("expected a fresh key: %w", err)
	}
	return newPublicKey(private.Public())
}
