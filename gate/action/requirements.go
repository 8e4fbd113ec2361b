package action

import (
	"errors"
	"strings"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature"
	"flux-verify-gate/gate/signer"
)

// policyOf builds the policy that the inputs ask for. Its error joins one
// gate.InputError for each fault.
func policyOf(v values) (gate.Policy, error) {
	faults := contradictions(v)
	want := gate.Requirements{
		RequireAll:   v.bool(inRequireAll),
		Attestations: listOf(v[inAttestations]),
		Digest:       v[inDigest],
		URL:          v[inURL],
		Signature:    gate.SignatureMode(v[inSignature]),
		LooseFails:   v[inPolicyLoose] == "fail",
		CustomRoot:   v[inTrustedRoot] != signature.TUF,
	}
	var err error
	if text := v[inCanary]; text != "" {
		if want.Canary, err = gate.ParseObjectName(text); err != nil {
			faults = append(faults, &gate.InputError{Input: inCanary, Err: err})
		}
	}
	if want.Required, err = signersOf(v, inRequiredSigners); err != nil {
		faults = append(faults, err)
	}
	if want.Allowed, err = signersOf(v, inAllowedSigners); err != nil {
		faults = append(faults, err)
	}
	if text := v[inRequiredKeys]; text != "" {
		if want.Keys, err = gate.ParseKeys([]byte(text)); err != nil {
			faults = append(faults, badForm(inRequiredKeys, err))
		}
	}
	// A list that could not be read is a fault of its own; that it is then also
	// missing is not worth a second line.
	if len(faults) > 0 {
		return gate.Policy{}, errors.Join(faults...)
	}
	return gate.NewPolicy(want)
}

// signersOf reads one list of signers; an input that is absent is no list.
func signersOf(v values, input string) ([]signer.Signer, error) {
	text := v[input]
	if text == "" {
		return nil, nil
	}
	signers, err := signer.Parse([]byte(text))
	if err != nil {
		return nil, badForm(input, err)
	}
	return signers, nil
}

// badForm is one gate.InputError for each fault that a parser joined.
func badForm(input string, err error) error {
	var faults []error
	for _, fault := range parts(err) {
		faults = append(faults, &gate.InputError{Input: input, Err: fault,
			Remedy: "correct it (docs/signers.md has the form); if it is the path of a file, put @ before it"})
	}
	return errors.Join(faults...)
}

// parts are the errors that one joins, at any depth; an error that joins none is
// its own part.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}

// listOf splits a list that has one item per line; blank lines and lines that
// begin with # are left out.
func listOf(text string) []string {
	var items []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			items = append(items, line)
		}
	}
	return items
}

// contradictions finds inputs that only make sense together, or never do.
func contradictions(v values) []error {
	var faults []error
	fault := func(input, expected, found, remedy string) {
		faults = append(faults, &gate.InputError{Input: input, Expected: expected, Found: found, Remedy: remedy})
	}
	recorded := v[inObject] != ""
	if recorded {
		for _, name := range []string{
			inKubeconfig, inKubeconfigData, inContext, inServer, inTLSServerName, inCertificateAuthorityData,
		} {
			if v[name] != "" {
				fault(inObject, "a recording or a cluster", name+" beside it", "remove one of them")
			}
		}
		for _, name := range []string{inInCluster, inReconcile} {
			if v.bool(name) {
				fault(inObject, "a recording or a cluster", name+": true beside it", "remove one of them")
			}
		}
	}
	if v[inCanary] != "" && recorded {
		fault(inCanary, "a live cluster", "object beside it",
			"remove one of them: what the controller makes of a wrong artifact can only be read where it runs")
	}
	if v[inCanary] != "" && v[inCanary] == v[inNamespace]+"/"+v[inName] {
		fault(inCanary, "another OCIRepository than the source", v[inCanary],
			"deploy a second one that points at an unsigned artifact, and name that (docs/canary.md)")
	}
	if v[inLayout] != "" && !recorded {
		fault(inLayout, "object beside it", "a live cluster", "a layout stands in for the registry of a recording; leave it out to ask the registry")
	}
	if v[inLayout] != "" && v[inSignature] == string(gate.SignatureSkip) {
		fault(inLayout, "signature: verify", "signature: skip", "remove one of them")
	}
	if (v[inRegistryUsername] == "") != (v[inRegistryPassword] == "") {
		fault(inRegistryUsername, "a user and a password", "one of the two", "give registry-username and registry-password, or neither; a secret that is not there comes out empty")
	}
	if v[inAttestations] != "" && len(listOf(v[inAttestations])) == 0 {
		fault(inAttestations, "predicate types, one per line", "no line that counts", "leave the input out")
	}
	return faults
}
