package gate_test

import (
	"strings"
	"testing"

	"flux-verify-gate/gate"
)

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	revA = "v1@sha256:" + hexA
)

func TestMessages(t *testing.T) {
	t.Parallel()
	readers := map[string]func(string) (string, bool){
		"verified": gate.VerifiedRevision, "stored": gate.StoredRevision, "incoming": gate.IncomingRevision,
	}
	// want is empty where the message names no revision.
	tests := []struct{ name, reader, message, want string }{
		{"a tag", "verified", "verified signature of revision " + revA, revA},
		{"a bare digest", "verified", "verified signature of revision sha256:" + hexA, "sha256:" + hexA},
		{"a space behind", "verified", "verified signature of revision " + revA + " ", ""},
		{"a line behind", "verified", "verified signature of revision " + revA + "\n", ""},
		{"a line and another text", "verified", "verified signature of revision " + revA + "\nor not", ""},
		{"a word before", "verified", "not verified signature of revision " + revA, ""},
		{"two spaces", "verified", "verified signature of revision  " + revA, " " + revA},
		{"in upper case", "verified", "Verified signature of revision " + revA, ""},
		{"no digest", "verified", "verified signature of revision v1", ""},
		{"a digest in upper case", "verified", "verified signature of revision v1@sha256:" + strings.ToUpper(hexA), ""},
		{"a chart", "verified", "verified signature of version 6.1.0", ""},
		{"nothing", "verified", "", ""},

		{"a tag", "stored", "stored artifact for digest '" + revA + "'", revA},
		{"a bare digest", "stored", "stored artifact for digest 'sha256:" + hexA + "'", "sha256:" + hexA},
		{"no last quote", "stored", "stored artifact for digest '" + revA, ""},
		{"no quotes", "stored", "stored artifact for digest " + revA, ""},
		{"a text behind", "stored", "stored artifact for digest '" + revA + "' from x", ""},
		{"a quote too many", "stored", "stored artifact for digest '" + revA + "''", ""},
		{"no digest", "stored", "stored artifact for digest 'v1'", ""},
		{"nothing", "stored", "", ""},

		{"outdated", "incoming", "new revision '" + revA + "' for '127.0.0.1:15000/acme/kl:v1'", revA},
		{"building", "incoming", "building artifact: new revision '" + revA + "' for '127.0.0.1:15000/acme/kl:v1'", revA},
		{"reconciling", "incoming", "reconciliation in progress: new revision '" + revA + "' for 'x'", revA},
		{"a key that did not match", "incoming", "failed to verify the signature using provider 'cosign': no matching signatures were found for '127.0.0.1:15000/acme/kl@sha256:" + hexA + "'", "sha256:" + hexA},
		{"a key that did not match, in an older release", "incoming", "failed to verify the signature using provider 'cosign': no matching signatures were found for '127.0.0.1:15000/acme/kl:v1'", ""},
		{"a new revision without a digest", "incoming", "new revision 'v1' for 'x'", ""},
		{"a new revision without a place", "incoming", "new revision '" + revA + "'", ""},
		{"a new revision within another text", "incoming", "Seen: new revision '" + revA + "' for 'x'", ""},
		{"a new generation", "incoming", "processing object: new generation 1 -> 2", ""},
		{"building without a name", "incoming", "building artifact", ""},
		{"nothing", "incoming", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reader+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := readers[tt.reader](tt.message)
			if ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("got %q (%v), want %q", got, ok, tt.want)
			}
		})
	}
}

// FuzzMessages holds that a message gives no revision without a well-formed
// digest, and none that it does not hold word for word.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		"", "verified signature of revision " + revA, "stored artifact for digest '" + revA + "'",
		"building artifact: new revision '" + revA + "' for 'x'",
		"failed to verify the signature using provider 'cosign': no matching signatures were found for 'x@sha256:" + hexA + "'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		for _, read := range []func(string) (string, bool){gate.VerifiedRevision, gate.StoredRevision, gate.IncomingRevision} {
			revision, ok := read(message)
			if !ok {
				continue
			}
			if gate.DigestOf(revision) == "" {
				t.Errorf("%q gives %q, which has no digest", message, revision)
			}
			if !strings.Contains(message, revision) {
				t.Errorf("%q gives %q, which it does not hold", message, revision)
			}
		}
		if revision, ok := gate.VerifiedRevision(message); ok && message != "verified signature of revision "+revision {
			t.Errorf("%q says more than that %q was verified", message, revision)
		}
		if revision, ok := gate.StoredRevision(message); ok && message != "stored artifact for digest '"+revision+"'" {
			t.Errorf("%q says more than that %q was stored", message, revision)
		}
	})
}
