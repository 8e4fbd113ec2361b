package cosigncli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"flux-verify-gate/test/stack/process"
)

// password protects the private keys that GenerateKey makes.
const password = "stack"

// Cosign runs one cosign program. Its fields are not changed after the first
// call; then it is safe for concurrent use.
type Cosign struct {
	// Path is the program's file, as package build makes it (component cosign).
	Path string
	// Home is the directory that cosign takes for the user's home. It is made
	// if need be.
	Home string
	// Env is added to cosign's environment, as NAME=value. Of this process's
	// own environment cosign gets PATH and TMPDIR only.
	Env []string
}

// Output is what cosign wrote.
type Output struct{ Stdout, Stderr string }

// Error is the error of a cosign that ended with a failure. Errors that kept it
// from running are not of this type.
type Error struct {
	Args   []string
	Output Output
	Err    error // *exec.ExitError, or the context's
}

// Error names the command, without the long arguments, and what cosign wrote.
func (e *Error) Error() string {
	args := make([]string, len(e.Args))
	for i, arg := range e.Args {
		if args[i] = arg; len(arg) > 200 { // an identity token
			args[i] = arg[:20] + "…"
		}
	}
	return fmt.Sprintf("cosign %s: %v: %s", strings.Join(args, " "), e.Err, strings.TrimSpace(e.Output.Stderr))
}

// Unwrap returns how cosign ended.
func (e *Error) Unwrap() error { return e.Err }

// Run runs cosign with args to its end and returns what it wrote, also when it
// failed. The error is an *Error if cosign ran. Registries on the loopback
// interface are spoken to in plain HTTP; others need --allow-http-registry.
func (c *Cosign) Run(ctx context.Context, args ...string) (Output, error) {
	if err := os.MkdirAll(c.Home, 0o700); err != nil {
		return Output{}, fmt.Errorf("cannot make cosign's home: %w", err)
	}
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.Env = []string{"HOME=" + c.Home, "COSIGN_PASSWORD=" + password}
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, c.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := process.Run(cmd)
	out := Output{Stdout: stdout.String(), Stderr: stderr.String()}
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, &Error{Args: args, Output: out, Err: ctx.Err()}
	case cmd.Process == nil:
		return out, fmt.Errorf("cannot run cosign: %w", err)
	default:
		return out, &Error{Args: args, Output: out, Err: err}
	}
}

// Key is a key pair of cosign's: the paths of its two files.
type Key struct {
	// Private is encrypted. Cosign's methods know the password.
	Private string
	// Public is in PEM.
	Public string
}

// GenerateKey makes a key pair: name.key and name.pub in dir, which is made if
// need be. It is an error if one of them exists.
func (c *Cosign) GenerateKey(ctx context.Context, dir, name string) (Key, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Key{}, fmt.Errorf("cannot make the directory of a key pair: %w", err)
	}
	prefix, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return Key{}, fmt.Errorf("cannot make a key's path absolute: %w", err)
	}
	key := Key{Private: prefix + ".key", Public: prefix + ".pub"}
	for _, file := range []string{key.Private, key.Public} {
		if _, err := os.Lstat(file); err == nil {
			return Key{}, fmt.Errorf("expected no file at %s: choose another name for the key", file)
		}
	}
	if _, err := c.Run(ctx, "generate-key-pair", "--output-key-prefix", prefix); err != nil {
		return Key{}, err
	}
	return key, nil
}

// Layout is where, and in which form, a signature of an artifact lies in the
// registry.
type Layout int

const (
	// Bundle is a Sigstore bundle that refers to the artifact: cosign 3's own
	// choice.
	Bundle Layout = iota
	// Tag is the tag sha256-<hex>.sig (or .att) beside the artifact: cosign 1's
	// and 2's choice.
	Tag
)

// String returns the name of the layout.
func (l Layout) String() string {
	switch l {
	case Bundle:
		return "bundle"
	case Tag:
		return "tag"
	default:
		return fmt.Sprintf("Layout(%d)", int(l))
	}
}

// format returns the flag that selects the layout.
func (l Layout) format() string { return fmt.Sprintf("--new-bundle-format=%t", l == Bundle) }

// SignKey signs the artifact at reference (repository@sha256:…, so that what is
// signed is what is meant) with a key alone: no log, no time stamp, no network
// but the registry. The extra arguments come before the reference; one of them
// is -a name=value, an annotation.
func (c *Cosign) SignKey(ctx context.Context, reference string, key Key, layout Layout, extra ...string) error {
	args := []string{"sign", "--yes", "--key", key.Private, "--tlog-upload=false", "--use-signing-config=false", layout.format()}
	_, err := c.Run(ctx, append(append(args, extra...), reference)...)
	return err
}

// AttestKey attests the artifact at reference with a key alone, as SignKey
// signs it. The predicate is the file's content, of a type that cosign attest's
// --type takes: a name that it knows, such as slsaprovenance1, or a URI.
func (c *Cosign) AttestKey(ctx context.Context, reference string, key Key, layout Layout, predicateType, predicateFile string, extra ...string) error {
	args := []string{
		"attest", "--yes", "--key", key.Private, "--tlog-upload=false", "--use-signing-config=false", layout.format(),
		"--type", predicateType, "--predicate", predicateFile,
	}
	_, err := c.Run(ctx, append(append(args, extra...), reference)...)
	return err
}

// VerifyKey has cosign verify that the artifact at reference is signed with the
// key, as SignKey signs it.
func (c *Cosign) VerifyKey(ctx context.Context, reference string, key Key, layout Layout, extra ...string) (Output, error) {
	args := []string{"verify", "--key", key.Public, "--insecure-ignore-tlog", layout.format()}
	return c.Run(ctx, append(append(args, extra...), reference)...)
}
