package action

import (
	"errors"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signer"
)

// policyOf builds the policy that the inputs ask for. Its error joins one
// gate.InputError for each fault.
func policyOf(v values) (gate.Policy, error) {
	var faults []error
	want := gate.Requirements{
		Digest:     v[inDigest],
		URL:        v[inURL],
		Signature:  gate.SignatureMode(v[inSignature]),
		LooseFails: v[inPolicyLoose] == "fail",
	}
	var err error
	if want.Required, err = signersOf(v, inRequiredSigners); err != nil {
		faults = append(faults, err)
	}
	if want.Allowed, err = signersOf(v, inAllowedSigners); err != nil {
		faults = append(faults, err)
	}
	if text := v[inRequiredKeys]; text != "" {
		if want.Keys, err = gate.ParseKeys([]byte(text)); err != nil {
			faults = append(faults, &gate.InputError{Input: inRequiredKeys, Err: err})
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
		return nil, &gate.InputError{Input: input, Err: err}
	}
	return signers, nil
}
