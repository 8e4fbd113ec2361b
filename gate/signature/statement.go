package signature

import (
	"encoding/json"
	"fmt"
)

// cosignType is what cosign writes into critical.type
// (github.com/sigstore/sigstore, pkg/signature/payload).
const cosignType = "cosign container image signature"

// cosignPredicate is the predicate type of a signature in the bundle layout
// (github.com/sigstore/cosign, v3).
const cosignPredicate = "https://sigstore.dev/cosign/sign/v1"

// statementTypes are the in-toto statement versions that are read.
var statementTypes = map[string]bool{
	"https://in-toto.io/Statement/v0.1": true,
	"https://in-toto.io/Statement/v1":   true,
}

// Limits of sigstore-go on one statement (pkg/verify/signature.go, v1.3.0).
const (
	maxSubjects = 1024
	maxDigests  = 32
)

// claim is what the signed bytes say that they are about.
type claim struct {
	predicateType string // empty for simple signing
	subjects      int    // of a statement
	// digests are the sha256 digests named, each with its algorithm in front.
	digests []string
	// docker is the reference in a simple-signing payload; mirrors change it,
	// so it is informative only.
	docker string
}

// covers says whether the claim is about exactly this digest.
func (c claim) covers(digest string) bool {
	for _, found := range c.digests {
		if found == digest {
			return true
		}
	}
	return false
}

// readPayload reads cosign's simple-signing payload. "critical" means that a
// reader must understand all of it, so an unknown member is refused; optional
// may hold anything.
func readPayload(payload []byte) (claim, error) {
	members, err := strictObject(payload)
	if err != nil {
		return claim{}, err
	}
	if err := only(members, "critical", "optional"); err != nil {
		return claim{}, err
	}
	critical, err := object(members, "critical")
	if err != nil {
		return claim{}, err
	}
	if err := only(critical, "identity", "image", "type"); err != nil {
		return claim{}, fmt.Errorf("critical: %w", err)
	}
	kind, err := text(critical, "type")
	if err != nil {
		return claim{}, err
	}
	if kind != cosignType {
		return claim{}, fmt.Errorf("expected critical.type to be %q, found %q", cosignType, kind)
	}
	image, err := object(critical, "image")
	if err != nil {
		return claim{}, err
	}
	if err := only(image, "docker-manifest-digest"); err != nil {
		return claim{}, fmt.Errorf("critical.image: %w", err)
	}
	digest, err := text(image, "docker-manifest-digest")
	if err != nil {
		return claim{}, err
	}
	c := claim{digests: []string{digest}}
	if raw, ok := critical["identity"]; ok {
		identity, err := strictObject(raw)
		if err != nil {
			return claim{}, fmt.Errorf("critical.identity: %w", err)
		}
		if err := only(identity, "docker-reference"); err != nil {
			return claim{}, fmt.Errorf("critical.identity: %w", err)
		}
		c.docker, _ = text(identity, "docker-reference")
	}
	return c, nil
}

// readStatement reads an in-toto statement. Its predicate is not looked at: a
// signature is told from an attestation by the predicate's type.
func readStatement(payload []byte) (claim, error) {
	members, err := strictObject(payload)
	if err != nil {
		return claim{}, err
	}
	kind, err := text(members, "_type")
	if err != nil {
		return claim{}, err
	}
	if !statementTypes[kind] {
		return claim{}, fmt.Errorf("expected an in-toto statement, found the type %q", kind)
	}
	var c claim
	if c.predicateType, err = text(members, "predicateType"); err != nil {
		return claim{}, err
	}
	if c.predicateType == "" {
		return claim{}, fmt.Errorf("expected a predicate type, found an empty one")
	}
	var subjects []json.RawMessage
	if err := json.Unmarshal(members["subject"], &subjects); err != nil {
		return claim{}, fmt.Errorf("expected subject to be a list: %w", err)
	}
	if len(subjects) == 0 {
		return claim{}, fmt.Errorf("expected a subject, found none")
	}
	if len(subjects) > maxSubjects {
		return claim{}, fmt.Errorf("expected at most %d subjects, found %d", maxSubjects, len(subjects))
	}
	c.subjects = len(subjects)
	for n, raw := range subjects {
		subject, err := strictObject(raw)
		if err != nil {
			return claim{}, fmt.Errorf("subject %d: %w", n, err)
		}
		digests, err := object(subject, "digest")
		if err != nil {
			return claim{}, fmt.Errorf("subject %d: %w", n, err)
		}
		if len(digests) > maxDigests {
			return claim{}, fmt.Errorf("subject %d: expected at most %d digests, found %d", n, maxDigests, len(digests))
		}
		for algorithm := range digests {
			value, err := text(digests, algorithm)
			if err != nil {
				return claim{}, fmt.Errorf("subject %d: %w", n, err)
			}
			if algorithm == "sha256" {
				c.digests = append(c.digests, "sha256:"+value)
			}
		}
	}
	return c, nil
}
