package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// difference is a group of cases in which the gate and cosign come to different
// answers, for one reason.
type difference struct {
	// What is one line for the table, Why the reason.
	What string `yaml:"what"`
	Why  string `yaml:"why"`
	// Gate says what the gate does, accepts or refuses; cosign does the other.
	Gate  string   `yaml:"gate"`
	Cases []string `yaml:"cases"`
	// Compared is false where cosign is not asked: the cases are outside what
	// is compared, and only the gate's answer is held.
	Compared *bool `yaml:"compared"`
}

func (d difference) compared() bool { return d.Compared == nil || *d.Compared }

// other is what cosign does.
func (d difference) other() string {
	if d.Gate == accepts {
		return refuses
	}
	return accepts
}

const (
	accepts = "accepts"
	refuses = "refuses"
)

func readDifferences(t *testing.T) []difference {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(readFile(t, "testdata", "differential.yaml")))
	decoder.KnownFields(true)
	var all []difference
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("testdata/differential.yaml: %v", err)
	}
	return all
}

// listed is the list by case.
func listed(all []difference) map[string]difference {
	by := make(map[string]difference)
	for _, d := range all {
		for _, name := range d.Cases {
			by[name] = d
		}
	}
	return by
}

// cosign is the real program.
type cosign struct {
	path string
	// home is an empty home directory, so that nothing of the user's counts.
	home string
}

// realCosign finds the program that `make test-differential` builds.
func realCosign(t *testing.T) cosign {
	t.Helper()
	path := os.Getenv("COSIGN")
	if path == "" {
		t.Skip("COSIGN is not set: the gate is not compared with cosign; make test-differential builds cosign and does it")
	}
	return cosign{path: path, home: t.TempDir()}
}

// couldNotLook are texts that say that cosign did not come to verifying. A
// refusal that has one of them is none.
var couldNotLook = []string{
	"unknown flag", "Usage:", "required flag", "dial tcp", "no such host", "connection refused", "deadline exceeded", "parsing reference", "loading public key",
	"loading trusted root", "setting trusted material",
}

// verify asks cosign what a case asks: `cosign verify`, or for an attestation
// that is asked for `cosign verify-attestation`. It gives cosign's words.
func (c cosign) verify(ctx context.Context, t *testing.T, of contentCase, reference string) (bool, string) {
	t.Helper()
	command := []string{"verify"}
	if of.attestation != "" {
		command = []string{"verify-attestation", "--type", of.attestation}
	}
	// Without this, a .sig signature that has no log entry beside it is looked
	// up in the public log.
	command = append(command, "--offline")
	if len(of.keys) == 0 {
		return c.run(ctx, t, append(command,
			"--trusted-root", writeRoot(t, of.sigstore),
			"--certificate-identity", of.required.Subject, "--certificate-oidc-issuer", of.required.Issuer,
			reference)...)
	}
	// As the controller does with the keys of a Secret, and with the log left
	// out as the controller leaves it out for keys.
	var words []string
	for n, key := range of.keys {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.pub", n))
		if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		accepted, said := c.run(ctx, t, append(command, "--key", path, "--insecure-ignore-tlog", reference)...)
		if accepted {
			return true, said
		}
		words = append(words, said)
	}
	return false, strings.Join(words, "\n")
}

func (c cosign) run(ctx context.Context, t *testing.T, arguments ...string) (bool, string) {
	t.Helper()
	command := exec.CommandContext(ctx, c.path, arguments...)
	command.Env = []string{"HOME=" + c.home, "DOCKER_CONFIG=" + c.home, "PATH=" + os.Getenv("PATH")}
	var said bytes.Buffer
	command.Stderr = &said
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, said.String()
	case !errors.As(err, &exit) || exit.ExitCode() < 0:
		t.Fatalf("expected cosign to answer, found %v\n%s", err, said.String())
	}
	for _, text := range couldNotLook {
		if strings.Contains(said.String(), text) {
			t.Fatalf("expected cosign to refuse or to accept, found that it could not look:\n%s", said.String())
		}
	}
	return false, said.String()
}

// TestDifferential asks the gate and cosign the same question about the same
// registry and the same trusted root, for every content that the tests of this
// package know. Where the answers differ, the case stands in
// testdata/differential.yaml with the reason.
func TestDifferential(t *testing.T) {
	program := realCosign(t)
	list := listed(readDifferences(t))
	var mutex sync.Mutex
	counts := make(map[string]int)
	t.Run("cases", func(t *testing.T) {
		for _, c := range contentCases(t) {
			expected, different := list[c.name]
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				r := newRepository(t)
				digest := c.fill(t, r)
				server := r.serve(true)
				target := server.target(r)
				target.Digest = digest
				k := &Checker{Want: c.requirements(), TrustedRoot: writeRoot(t, c.sigstore), grace: time.Minute}
				found := k.Check(deadline(t, time.Minute), target)
				ours := k.Want.SignedBy(found.Found)
				outcome := map[bool]string{true: accepts, false: refuses}
				if different && !expected.compared() {
					if outcome[ours] != expected.Gate {
						t.Errorf("expected that the gate %s, found that it %s:\n%s", expected.Gate, outcome[ours], tellAll(found))
					}
					return
				}
				theirs, said := program.verify(deadline(t, time.Minute), t, c, strings.TrimPrefix(target.Repository, "oci://")+"@"+digest)
				mutex.Lock()
				counts["the gate "+outcome[ours]+", cosign "+outcome[theirs]]++
				mutex.Unlock()
				switch {
				case ours == theirs && different:
					t.Errorf("expected the difference that testdata/differential.yaml lists, found that both say %s: take it off the list", outcome[ours])
				case ours != theirs && expected.Gate != outcome[ours]:
					t.Errorf("expected the same answer, found that the gate %s and cosign %s:\n%s\ncosign says:\n%s", outcome[ours], outcome[theirs], tellAll(found), said)
				}
			})
		}
	})
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %d", outcome, counts[outcome])
	}
	// A comparison in which one side always says the same compares nothing.
	for _, outcome := range []string{"the gate accepts, cosign accepts", "the gate refuses, cosign refuses"} {
		if counts[outcome] < 20 {
			t.Errorf("expected at least 20 cases in which %s, found %d", outcome, counts[outcome])
		}
	}
}

// TestDifferences holds that the list is about cases that there are, names each
// once, and says everything.
func TestDifferences(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, c := range contentCases(t) {
		known[c.name] = true
	}
	seen := make(map[string]bool)
	for _, d := range readDifferences(t) {
		if d.What == "" || d.Why == "" || d.Gate != accepts && d.Gate != refuses || len(d.Cases) == 0 {
			t.Errorf("expected what, why, gate (accepts or refuses) and cases, found %+v", d)
		}
		for _, name := range d.Cases {
			if !known[name] || seen[name] {
				t.Errorf("expected %q to be a case, listed once", name)
			}
			seen[name] = true
		}
	}
}

// signaturesPage is the document that shows the list.
const signaturesPage = "../../docs/signatures.md"

// TestDifferencesAreDocumented holds the table in docs/signatures.md to the list.
func TestDifferencesAreDocumented(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- from gate/signature/testdata/differential.yaml -->\n", "<!-- until here -->\n"
	page := string(readFile(t, signaturesPage))
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("expected %q and %q in %s", begin, end, signaturesPage)
	}
	whole := before + begin + differencesTable(readDifferences(t)) + end + after
	if *update {
		if err := os.WriteFile(signaturesPage, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if whole != page {
		t.Errorf("expected the table of the list in %s, found another; go test ./gate/signature -run %s -update writes it", signaturesPage, t.Name())
	}
}

func differencesTable(all []difference) string {
	var b strings.Builder
	b.WriteString("| what | the gate | `cosign verify` | why | cases |\n|---|---|---|---|---|\n")
	for _, d := range all {
		if !d.compared() {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.What, d.Gate, d.other(), d.Why, strings.Join(d.Cases, "; "))
	}
	for _, d := range all {
		if !d.compared() {
			fmt.Fprintf(&b, "\n%s (%d cases): %s\n", d.What, len(d.Cases), d.Why)
		}
	}
	return b.String()
}
