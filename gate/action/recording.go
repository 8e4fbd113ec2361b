package action

import (
	"context"
	"io"
	"os"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/cluster"
)

// judgeRecording judges an object that was read from a file. A recording is
// judged as at the deadline: nothing waits and nothing is read again.
func (c Command) judgeRecording(ctx context.Context, v values, policy gate.Policy, e gate.Evidence) gate.Report {
	e.Cluster.File = v[inObject]
	source, err := c.readRecording(v)
	if err != nil {
		e.Failures = failuresOf(err)
		return gate.CouldNotLook(e, c.Now())
	}
	e.Source = &source
	asked, private, err := c.registryOf(v, policy)
	if err != nil {
		e.Failures = failuresOf(err)
		return gate.CouldNotLook(e, c.Now())
	}
	e.PrivateRoot = private
	if asked.asks(e.Source, e.Source.Digest()) {
		signatures := asked.look(ctx, e.Source, 0)
		e.Signatures, e.PrivateRoot = &signatures, private || privateRoot(signatures)
	}
	e.Refused = asked.explain(ctx, policy, e)
	r := decide(ctx, policy, e, c.Now())
	r.Timings.Reads = 1
	return r
}

func (c Command) readRecording(v values) (gate.Source, error) {
	input := io.Reader(c.Stdin)
	if path := v[inObject]; path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return gate.Source{}, &gate.InputError{Input: inObject, Expected: "a file that can be read", Err: err,
				Remedy: "correct the path; in a step it is relative to the workspace"}
		}
		defer file.Close()
		input = file
	}
	source, err := cluster.ReadRecording(input, v[inNamespace], v[inName])
	if err != nil {
		return gate.Source{}, &gate.InputError{Input: inObject, Err: err}
	}
	return source, nil
}
