package signature

import (
	"flag"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
)

var update = flag.Bool("update", false, "write the golden files and what is generated in docs/signatures.md")

// recorded is the example of the README's first command: what make record has
// stored of a deployment on the real stack (test/e2e).
const recorded = "../../examples/recorded"

var revision = regexp.MustCompile(`v1@(sha256:[0-9a-f]{64})`)

// TestRecorded verifies the recorded example. Its certificate lived for ten
// minutes; nothing about it depends on today's date.
func TestRecorded(t *testing.T) {
	t.Parallel()
	served := revision.FindSubmatch(readFile(t, recorded, "verified.json"))
	if served == nil {
		t.Fatal("expected a revision in verified.json, found none")
	}
	k := &Checker{Want: want(), TrustedRoot: filepath.Join(recorded, "trusted_root.json"), Layout: filepath.Join(recorded, "layout")}
	got := k.Check(deadline(t, time.Minute), Target{Repository: "oci://registry.example/acme/platform", Digest: string(served[1])})
	if len(got.Found) != 1 || !got.Complete || !want().SignedBy(got.Found) {
		t.Fatalf("expected exactly one signature, which verifies, found:\n%s", tellAll(got))
	}
	if f := got.Found[0]; f.Kind != gate.KindSignature || f.Layout != gate.LayoutBundle {
		t.Errorf("expected a signature by cosign in a bundle, found %+v", f)
	}
}

// TestOldSignatures verifies signatures that are ten years old, whose
// certificates have long expired.
func TestOldSignatures(t *testing.T) {
	t.Parallel()
	then := time.Date(2016, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := testsigstore.New(then.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	v := keylessFor(t, s)
	digest := digestOf([]byte("artifact"))
	for _, log := range []testsigstore.Log{testsigstore.LogV1, testsigstore.LogV2} {
		e := bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
			Identity: requiredIdentity(), At: then, Log: log, Payload: testsigstore.Statement(cosignPredicate, digest),
		})))
		if got := v.verify(e, question{digest: digest}); !got.Verified {
			t.Errorf("log %q: expected it to verify, found %+v", log, got)
		}
	}
}
