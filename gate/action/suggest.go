package action

import (
	"context"
	"fmt"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/report"
	"flux-verify-gate/gate/signer"
)

// suggest prints the one policy that accepts the given signers and nobody else,
// ready to paste. It looks at nothing live.
func (c Command) suggest(ctx context.Context, args []string) int {
	entry, private, err := c.suggested(ctx, args)
	if err != nil {
		for _, f := range failuresOf(err) {
			line := f.Title
			for _, part := range []struct{ name, text string }{{"expected", f.Expected}, {"found", f.Found}, {"next", f.Remedy}} {
				if part.text != "" {
					line += "; " + part.name + " " + part.text
				}
			}
			fmt.Fprintln(c.Stderr, report.Line(report.Failed, line))
		}
		return statusUndecided
	}
	s := report.Suggestion{Entry: &entry}
	if private {
		fmt.Fprintln(c.Stdout, "# For a private Sigstore: write the name of the Secret that holds its trusted root.")
		s.TrustedRoot = report.UnknownSecret
	}
	fmt.Fprintf(c.Stdout, "# In the OCIRepository:\n%s\n# Or, for a source that flux-operator makes, in the FluxInstance (see afterwards that\n# the live object has it: a patch that hits nothing is dropped without a word):\n%s",
		s.VerifyYAML(), s.PatchYAML())
	return statusVerified
}

// suggestInputs are the inputs that suggest takes.
func suggestInputs() []Input {
	var inputs []Input
	for _, in := range Inputs() {
		switch in.Name {
		case inRequiredSigners, inAllowedSigners, inTrustedRoot:
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// suggested is the one entry, and whether it is for a private Sigstore.
func (c Command) suggested(ctx context.Context, args []string) (entry signer.Entry, private bool, err error) {
	v, err := readValues(suggestInputs(), nil, args)
	if err != nil {
		return signer.Entry{}, false, err
	}
	required, err := signersOf(v, inRequiredSigners)
	if err != nil {
		return signer.Entry{}, false, err
	}
	allowed, err := signersOf(v, inAllowedSigners)
	if err != nil {
		return signer.Entry{}, false, err
	}
	if len(required) == 0 {
		return signer.Entry{}, false, &gate.InputError{Input: inRequiredSigners, Expected: "at least one signer", Found: "nothing",
			Remedy: "name the workflow that signs (docs/signers.md)"}
	}
	_, private, err = c.registryOf(v, gate.Policy{})
	if err != nil {
		return signer.Entry{}, false, err
	}
	entry, err = signer.Suggest(ctx, required, allowed, private)
	if err != nil {
		return signer.Entry{}, false, &gate.InputError{Input: inRequiredSigners, Expected: "signers that one entry can accept exactly", Err: err}
	}
	answer := signer.Prove(ctx, signer.Question{Live: []signer.Entry{entry}, Required: required, Allowed: allowed, Everything: private})
	if len(answer.Vacuous) > 0 {
		return signer.Entry{}, false, &gate.InputError{Input: inRequiredSigners, Expected: "identities that can be issued (docs/policy-proof.md)",
			Found: answer.Vacuous[0].String(), Remedy: "look at the spelling of the issuer, repository, workflow file and ref"}
	}
	return entry, private, nil
}
