package gate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"flux-verify-gate/gate/signer"
)

// DigestAny is the word that says that any digest may be serving.
const DigestAny = "any"

// SignatureMode says whether the registry is asked for the signature.
type SignatureMode string

// SignatureVerify checks the signature in the registry independently.
// SignatureSkip does not, and has to be written out.
const (
	SignatureVerify SignatureMode = "verify"
	SignatureSkip   SignatureMode = "skip"
)

// Requirements are what a run asks for, before they have been found sound.
type Requirements struct {
	// Required signers: each must be accepted by the live policy, and one of
	// them must have signed (all of them with RequireAll).
	Required []signer.Signer
	// Allowed signers may be accepted by the live policy and need not be.
	Allowed []signer.Signer
	// Keys are required instead of signers.
	Keys       *Keys
	RequireAll bool
	// Attestations are the predicate types that count as a signature.
	Attestations []string
	// Digest is sha256:<64 lower-case hex digits>, or DigestAny.
	Digest string
	// URL is the oci:// address that the source must point at; empty for any.
	URL       string
	Signature SignatureMode
	// LooseFails makes policy-loose a fail instead of a note.
	LooseFails bool
	// Canary names the OCIRepository that carries the same policy and must be
	// refused; zero for none.
	Canary ObjectName
	// CustomRoot says that the gate's own trusted root is a file and not the
	// public-good one that TUF serves.
	CustomRoot bool
}

// Policy is a set of requirements that is sound: it requires somebody, and
// nothing in it contradicts. NewPolicy is the only way to make one; Decide
// refuses the zero value.
type Policy struct {
	want  Requirements
	sound bool
}

// Requirements gives back what the policy was made from.
func (p Policy) Requirements() Requirements { return p.want }

// NewPolicy checks requirements for everything that would let a run pass
// without having looked. Its error joins one InputError for each fault.
func NewPolicy(want Requirements) (Policy, error) {
	var faults []error
	for _, rule := range soundness {
		if fault := rule(want); fault != nil {
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		return Policy{}, errors.Join(faults...)
	}
	return Policy{want: want, sound: true}, nil
}

// soundness is the list of what makes requirements sound.
var soundness = []func(Requirements) *InputError{
	somebodyRequired,
	keysOrSigners,
	keysGiven,
	nobodyTwice,
	digestWellFormed,
	urlWellFormed,
	signatureModeKnown,
	skipContradictsNothing,
	attestationsWellFormed,
	canaryWellFormed,
}

func somebodyRequired(w Requirements) *InputError {
	if len(w.Required) > 0 || w.Keys != nil {
		return nil
	}
	return &InputError{Input: "required-signers", Expected: "at least one signer (or required-keys)", Found: "nothing",
		Remedy: "name the workflow that signs (docs/signers.md): a gate that requires nobody would accept everybody"}
}

func keysOrSigners(w Requirements) *InputError {
	if w.Keys == nil {
		return nil
	}
	var beside []string
	if len(w.Required) > 0 {
		beside = append(beside, "required-signers")
	}
	if len(w.Allowed) > 0 {
		beside = append(beside, "allowed-signers")
	}
	if w.RequireAll {
		beside = append(beside, "require-all")
	}
	if len(beside) == 0 {
		return nil
	}
	return &InputError{Input: "required-keys", Expected: "to stand alone", Found: strings.Join(beside, ", ") + " beside it",
		Remedy: "a policy takes keys or identities, never both: remove one side"}
}

func keysGiven(w Requirements) *InputError {
	if w.Keys == nil {
		return nil
	}
	if w.Keys.Secret == "" {
		return &InputError{Input: "required-keys", Expected: "secret: the name of the Secret that spec.verify must use", Found: "none",
			Remedy: "add it (docs/signers.md)"}
	}
	if len(w.Keys.PEM) == 0 && w.Signature != SignatureSkip {
		return &InputError{Input: "required-keys", Expected: "keys: the public keys to check the signature with", Found: "none",
			Remedy: "add the PEM of the keys in the Secret, or write signature: skip"}
	}
	return nil
}

func nobodyTwice(w Requirements) *InputError {
	seen := map[signer.Signer]bool{}
	for i, s := range w.Required {
		s.Shorthand = ""
		if seen[s] {
			return &InputError{Input: "required-signers", Expected: "each signer once",
				Found: fmt.Sprintf("entry %d again: %s", i+1, s), Remedy: "remove the repetition"}
		}
		seen[s] = true
	}
	return nil
}

func digestWellFormed(w Requirements) *InputError {
	const expected = "sha256: and 64 lower-case hex digits, or the word any"
	switch {
	case w.Digest == "":
		return &InputError{Input: "digest", Expected: expected, Found: "nothing",
			Remedy: "pass the digest that the push step printed; if that step can be skipped, its output is empty here"}
	case w.Digest == DigestAny || WellFormedDigest(w.Digest):
		return nil
	}
	return &InputError{Input: "digest", Expected: expected, Found: strconv.Quote(w.Digest),
		Remedy: "pass the digest that the push step printed, whole; a tag is no digest"}
}

func urlWellFormed(w Requirements) *InputError {
	const expected = "oci://registry/repository, as in spec.url, without tag or digest"
	if w.URL == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(w.URL, sourcev1.OCIRepositoryPrefix)
	host, repository, slash := strings.Cut(rest, "/")
	if !ok || !slash || host == "" || repository == "" || strings.ContainsAny(rest, "@ \t\r\n") || strings.Contains(repository, ":") ||
		slices.Contains(strings.Split(repository, "/"), "") {
		return &InputError{Input: "url", Expected: expected, Found: strconv.Quote(w.URL), Remedy: "copy it from spec.url"}
	}
	return nil
}

func signatureModeKnown(w Requirements) *InputError {
	if w.Signature == SignatureVerify || w.Signature == SignatureSkip {
		return nil
	}
	return &InputError{Input: "signature", Expected: "verify or skip", Found: strconv.Quote(string(w.Signature))}
}

func skipContradictsNothing(w Requirements) *InputError {
	if w.Signature != SignatureSkip {
		return nil
	}
	var unmet []string
	for _, list := range []struct {
		input   string
		signers []signer.Signer
	}{{"required-signers", w.Required}, {"allowed-signers", w.Allowed}} {
		for i, s := range list.signers {
			if s.Claims != (signer.Claims{}) {
				unmet = append(unmet, fmt.Sprintf("claims in %s entry %d", list.input, i+1))
			}
		}
	}
	if w.RequireAll {
		unmet = append(unmet, "require-all")
	}
	if len(w.Attestations) > 0 {
		unmet = append(unmet, "attestations")
	}
	if len(unmet) == 0 {
		return nil
	}
	return &InputError{Input: "signature", Expected: "verify, because only the signature itself can show what is asked for in " + strings.Join(unmet, ", "),
		Found: "skip", Remedy: "remove one side"}
}

func attestationsWellFormed(w Requirements) *InputError {
	for _, predicate := range w.Attestations {
		if predicate == "" || strings.ContainsAny(predicate, " \t\r\n") {
			return &InputError{Input: "attestations", Expected: "predicate types, such as https://slsa.dev/provenance/v1", Found: strconv.Quote(predicate),
				Remedy: "write one type per line"}
		}
	}
	return nil
}

func canaryWellFormed(w Requirements) *InputError {
	if w.Canary == (ObjectName{}) {
		return nil
	}
	if err := w.Canary.check(); err != nil {
		return &InputError{Input: "canary", Err: err, Remedy: "write it as namespace/name"}
	}
	return nil
}
