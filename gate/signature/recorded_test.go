package signature

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
)

var update = flag.Bool("update", false, "make the recorded example in examples/recorded anew, with new keys")

// recorded is the example of the README's first command: an OCI layout with one
// artifact and one signature of it, the trusted root that knows the signer, and
// the OCIRepository that serves it.
const recorded = "../../examples/recorded"

// recordedAt is when the signature of the recorded example was made, two
// seconds before source-controller verified it.
var recordedAt = time.Date(2026, 11, 30, 17, 22, 47, 0, time.UTC)

var revision = regexp.MustCompile(`v1@(sha256:[0-9a-f]{64})`)

// content is the artifact of the recorded example, as flux push artifact would
// pack it.
func recordedContent(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	body := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform\n  namespace: flux-system\ndata:\n  release: \"1\"\n")
	if err := archive.WriteHeader(&tar.Header{Name: "platform.yaml", Mode: 0o644, Size: int64(len(body)), Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// makeRecorded writes the example.
func makeRecorded(t *testing.T) {
	t.Helper()
	s, err := testsigstore.New(recordedAt.AddDate(0, -1, 0))
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{t: t, blobs: map[string][]byte{}, types: map[string]string{}, tags: map[string]string{}}
	layer := r.blob("application/vnd.cncf.flux.content.v1.tar+gzip", recordedContent(t))
	r.digest = r.manifest(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": r.blob("application/vnd.cncf.flux.config.v1+json", []byte("{}")), "layers": []any{layer},
		"annotations": map[string]any{
			"org.opencontainers.image.created":  "2026-11-30T17:22:47Z",
			"org.opencontainers.image.revision": "main@sha1:e63307d89d03276e6c5bd80e6a72f8be5cd3bc93",
			"org.opencontainers.image.source":   "https://github.com/acme/platform",
		},
	})
	r.tags["v1"] = r.digest
	r.attach(bundleEvidence(marshal(t, makeBundle(t, s, testsigstore.Signing{
		Identity: requiredIdentity(), At: recordedAt, Integrated: recordedAt.Add(time.Second), Payload: testsigstore.Statement(cosignPredicate, r.digest),
	}))), r.digest)

	if err := os.RemoveAll(filepath.Join(recorded, "layout")); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(recorded, "layout"))
	trustedRoot, err := s.TrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	object := readFile(t, recorded, "verified.json")
	old := revision.FindSubmatch(object)
	if old == nil {
		t.Fatal("expected a revision in verified.json, found none")
	}
	object = bytes.ReplaceAll(object, old[1], []byte(r.digest))
	for name, body := range map[string][]byte{"trusted_root.json": trustedRoot, "verified.json": object} {
		if err := os.WriteFile(filepath.Join(recorded, name), body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecorded verifies the recorded example. Its certificate lived for ten
// minutes; nothing about it depends on today's date.
func TestRecorded(t *testing.T) {
	t.Parallel()
	if *update {
		makeRecorded(t)
	}
	served := revision.FindSubmatch(readFile(t, recorded, "verified.json"))
	if served == nil {
		t.Fatal("expected a revision in verified.json, found none")
	}
	k := &Checker{Want: want(), TrustedRoot: filepath.Join(recorded, "trusted_root.json"), Layout: filepath.Join(recorded, "layout")}
	got := k.Check(deadline(t, time.Minute), Target{Repository: "oci://registry.example/acme/platform", Digest: string(served[1])})
	if len(got.Found) != 1 || !got.Complete || !want().SignedBy(got.Found) {
		t.Fatalf("expected exactly one signature, which verifies, found:\n%s", tellAll(got))
	}
	if f := got.Found[0]; f.Kind != gate.KindSignature || !f.LoggedAt.Equal(recordedAt.Add(time.Second)) {
		t.Errorf("expected a cosign signature of %s, found %+v", recordedAt, f)
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
