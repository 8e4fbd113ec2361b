package signature

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"flux-verify-gate/gate"
	"flux-verify-gate/gate/signature/internal/testsigstore"
)

// hostile is one way for a registry to misbehave.
type hostile struct {
	name string
	// bundles says whether the good signature is a bundle or a .sig layer.
	tag bool
	// before answers some requests.
	before func(r *repository) func(http.ResponseWriter, *http.Request) bool
	// prepare changes what the repository holds.
	prepare func(t *testing.T, r *repository)
	wait    time.Duration
	// many says that the content is about the limit of candidates, at which
	// cosign takes a minute.
	many bool
	// grace is how long the others are awaited; else as long as it takes.
	grace time.Duration
	// verified says that the good signature is found all the same, code is the
	// code of the failure that there must be; empty for none.
	verified bool
	code     gate.Code
	// finding is what the judgement must come to where nothing verified.
	finding gate.Code
}

// fill puts into the repository what it holds behind the misbehaving registry.
func (h hostile) fill(t *testing.T, s *testsigstore.Sigstore, r *repository) {
	t.Helper()
	if h.tag {
		r.attach(goodLayer(t, s, r.digest), r.digest)
	} else {
		r.attach(goodBundle(t, s, r.digest), r.digest)
	}
	if h.prepare != nil {
		h.prepare(t, r)
	}
}

// on answers requests whose path contains part.
func on(part string, answer http.HandlerFunc) func(*repository) func(http.ResponseWriter, *http.Request) bool {
	return func(*repository) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, part) {
				return false
			}
			answer(w, req)
			return true
		}
	}
}

func hang(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", indexType)
	w.Header().Set("Content-Length", "100000")
	_, _ = io.WriteString(w, `{"schemaVersion":2,"manifests":[`)
	panic(http.ErrAbortHandler)
}

func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", indexType)
	_, _ = io.WriteString(w, `{"schemaVersion":2,"pad":"`)
	chunk := []byte(strings.Repeat("x", 64<<10))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func loop(w http.ResponseWriter, req *http.Request) {
	http.Redirect(w, req, req.URL.Path+"?again", http.StatusTemporaryRedirect)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// once answers the first request only.
func once(part string, answer http.HandlerFunc) func(*repository) func(http.ResponseWriter, *http.Request) bool {
	var asked atomic.Bool
	return func(*repository) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, part) || !asked.CompareAndSwap(false, true) {
				return false
			}
			answer(w, req)
			return true
		}
	}
}

// flood answers the referrers API with n descriptors, the repository's own
// first where good is set.
func flood(n int, good bool) func(*repository) func(http.ResponseWriter, *http.Request) bool {
	return func(r *repository) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, "/referrers/") {
				return false
			}
			w.Header().Set("Content-Type", indexType)
			_, _ = io.WriteString(w, `{"schemaVersion":2,"manifests":[`)
			if good {
				own, _ := json.Marshal(r.referrer[0])
				_, _ = w.Write(append(own, ','))
			}
			for i := range n {
				if i > 0 {
					_, _ = io.WriteString(w, ",")
				}
				_, _ = fmt.Fprintf(w, `{"mediaType":%q,"digest":"sha256:%064x","size":700,"annotations":{"dev.sigstore.bundle.predicateType":%q}}`, manifestType, i, cosignPredicate)
			}
			_, _ = io.WriteString(w, `]}`)
			return true
		}
	}
}

func hostiles() []hostile {
	const unreachable, denied = gate.RegistryUnreachable, gate.RegistryDenied
	foreign := func(t *testing.T, r *repository) { // a second candidate, whose blob is known
		t.Helper()
		r.attach(bundleEvidence([]byte("a foreign bundle")), r.digest)
	}
	foreignBlob := "/blobs/" + digestOf([]byte("a foreign bundle"))
	return []hostile{
		{name: "hang", before: on("/v2/", hang), wait: time.Second, code: unreachable, finding: unreachable},
		{name: "hang at the artifact", before: on("/manifests/sha256:", hang), wait: time.Second, code: unreachable, finding: unreachable},
		{name: "hang at the referrers", before: on("/referrers/", hang), wait: time.Second, code: unreachable, finding: unreachable},
		{name: "hang at the referrers, good tag", tag: true, before: on("/referrers/", hang), wait: 20 * time.Second, grace: time.Millisecond, verified: true, code: unreachable},
		{name: "hang at a foreign bundle", prepare: foreign, before: on(foreignBlob, hang), wait: 20 * time.Second, grace: time.Millisecond, verified: true, code: unreachable},
		{name: "cut off", before: on("/manifests/sha256:", cutOff), wait: 2 * time.Second, code: unreachable, finding: unreachable},
		{name: "cut off once", before: once("/manifests/sha256:", cutOff), wait: 20 * time.Second, verified: true},
		{name: "cut off at the referrers", before: on("/referrers/", cutOff), wait: 2 * time.Second, code: unreachable, finding: unreachable},
		{name: "cut off at a bundle", before: on("/blobs/", cutOff), wait: 2 * time.Second, code: unreachable, finding: unreachable},
		{name: "endless artifact", before: on("/manifests/sha256:", endless), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "endless referrers", before: on("/referrers/", endless), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "endless referrers, good tag", tag: true, before: on("/referrers/", endless), wait: 20 * time.Second, verified: true, code: unreachable},
		{name: "endless tag", before: on(".sig", endless), wait: 20 * time.Second, verified: true, code: unreachable},
		{name: "endless bundle", before: on("/blobs/", endless), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "endless foreign bundle", prepare: foreign, before: on(foreignBlob, endless), wait: 20 * time.Second, verified: true, code: unreachable},
		{name: "endless everything", before: on("/v2/", endless), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "redirect loop", before: on("/manifests/sha256:", loop), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "redirect loop at a bundle", before: on("/blobs/", loop), wait: 20 * time.Second, finding: gate.Unsigned},
		{name: "redirect loop at a foreign bundle", prepare: foreign, before: on(foreignBlob, loop), wait: 20 * time.Second, verified: true},
		{name: "401", before: on("/manifests/", status(http.StatusUnauthorized)), wait: 20 * time.Second, code: denied, finding: denied},
		{name: "403", before: on("/manifests/", status(http.StatusForbidden)), wait: 20 * time.Second, code: denied, finding: denied},
		{name: "404", before: on("/manifests/", status(http.StatusNotFound)), wait: 20 * time.Second, code: denied, finding: denied},
		{name: "403 at the referrers", before: on("/referrers/", status(http.StatusForbidden)), wait: 20 * time.Second, code: denied, finding: denied},
		{name: "403 at the referrers, good tag", tag: true, before: on("/referrers/", status(http.StatusForbidden)), wait: 20 * time.Second, verified: true, code: denied},
		{name: "403 at a bundle", before: on("/blobs/", status(http.StatusForbidden)), wait: 20 * time.Second, code: denied, finding: denied},
		{name: "429 for ever", before: on("/manifests/", status(http.StatusTooManyRequests)), wait: 2 * time.Second, code: unreachable, finding: unreachable},
		{name: "429 once", before: once("/manifests/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}), wait: 20 * time.Second, verified: true},
		{name: "429 beyond the deadline", before: on("/manifests/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}), wait: time.Hour, code: unreachable, finding: unreachable},
		{name: "500 for ever", before: on("/v2/", status(http.StatusInternalServerError)), wait: 2 * time.Second, code: unreachable, finding: unreachable},
		{name: "503 once", before: once("/referrers/", status(http.StatusServiceUnavailable)), wait: 20 * time.Second, verified: true},
		{name: "500 at a foreign bundle", prepare: foreign, before: on(foreignBlob, status(http.StatusInternalServerError)), wait: 20 * time.Second, grace: time.Millisecond, verified: true, code: unreachable},
		{name: "418", before: on("/manifests/", status(http.StatusTeapot)), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "405 at the referrers", before: on("/referrers/", status(http.StatusMethodNotAllowed)), prepare: fallbackTag, wait: 20 * time.Second, verified: true},
		{name: "HTML at the referrers", before: on("/referrers/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}), prepare: fallbackTag, wait: 20 * time.Second, verified: true},
		{name: "no JSON at the referrers", before: on("/referrers/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", indexType)
			_, _ = io.WriteString(w, "<html>")
		}), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "100,000 referrers, the good one first", before: flood(100_000, true), wait: time.Minute, verified: true, code: unreachable},
		{name: "100,000 referrers, no good one", before: flood(100_000, false), wait: time.Minute, code: unreachable, finding: unreachable},
		{name: "another artifact under the digest", before: on("/manifests/sha256:", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", manifestType)
			_, _ = io.WriteString(w, `{"schemaVersion":2,"layers":[]}`)
		}), wait: 20 * time.Second, code: unreachable, finding: unreachable},
		{name: "another bundle under the digest", before: on("/blobs/", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "another bundle")
		}), wait: 20 * time.Second, finding: gate.Unsigned},
		{name: "a bundle that is not there", before: on("/blobs/", status(http.StatusNotFound)), wait: 20 * time.Second, finding: gate.Unsigned},
		{name: "wrong media types everywhere", before: func(r *repository) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, req *http.Request) bool {
				for digest, body := range r.blobs {
					if strings.HasSuffix(req.URL.Path, "/"+digest) && !strings.Contains(req.URL.Path, "/referrers/") {
						w.Header().Set("Content-Type", "text/html; charset=utf-8")
						_, _ = w.Write(body)
						return true
					}
				}
				return false
			}
		}, wait: 20 * time.Second, verified: true},
		{name: "the .sig tag is an index", prepare: func(t *testing.T, r *repository) {
			t.Helper()
			r.tags[signatureTagOf(r.digest)] = r.manifest(indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{}})
		}, wait: 20 * time.Second, verified: true},
		{name: "the .sig tag is no manifest", before: on(".sig", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "[]")
		}), wait: 20 * time.Second, verified: true},
		{name: "1,000 layers of which the last is good", tag: true, many: true, prepare: func(t *testing.T, r *repository) {
			t.Helper()
			good := r.layers[0]
			r.layers = nil
			for n := range 999 {
				l := r.blob(simpleSigning, []byte("{}"))
				l["annotations"] = map[string]string{annotationSignature: strconv.Itoa(n)}
				r.layers = append(r.layers, l)
			}
			r.layers = append(r.layers, good)
			retag(r)
		}, wait: time.Minute, verified: true},
		{name: "1,001 layers", tag: true, many: true, prepare: func(t *testing.T, r *repository) {
			t.Helper()
			r.layers = nil
			for range 1001 {
				r.layers = append(r.layers, r.blob(simpleSigning, []byte("{}")))
			}
			retag(r)
		}, wait: time.Minute, code: unreachable, finding: unreachable},
		{name: "descriptors without sense beside the good one", before: func(r *repository) func(http.ResponseWriter, *http.Request) bool {
			own, _ := json.Marshal(r.referrer[0])
			return on("/referrers/", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", indexType)
				_, _ = fmt.Fprintf(w, `{"manifests":[{"digest":7},7,null,{"digest":"sha1:00"},{"digest":"sha256:../../etc"},{"digest":"x","digest":"y"},%s]}`, own)
			})(r)
		}, wait: 20 * time.Second, verified: true},
		{name: "a payload that claims to be huge", tag: true, prepare: func(t *testing.T, r *repository) {
			t.Helper()
			lying := map[string]any{"mediaType": simpleSigning, "digest": r.layers[0]["digest"], "size": 1 << 40}
			r.layers = append(r.layers, lying)
			retag(r)
		}, wait: 20 * time.Second, verified: true, code: unreachable},
		{name: "a bundle of 5 MiB", prepare: func(t *testing.T, r *repository) {
			t.Helper()
			r.attach(bundleEvidence([]byte(strings.Repeat(" ", 5<<20))), r.digest)
		}, wait: 20 * time.Second, verified: true, code: unreachable},
		{name: "a bundle of 4 MiB of brackets", prepare: func(t *testing.T, r *repository) {
			t.Helper()
			r.attach(bundleEvidence([]byte(strings.Repeat("[", 4<<20))), r.digest)
			r.attach(bundleEvidence([]byte(strings.Repeat(`{"a":`, 800<<10))), r.digest)
		}, wait: 20 * time.Second, verified: true},
		{name: "two layers beside the bundle", prepare: func(t *testing.T, r *repository) {
			t.Helper()
			bundle := r.blob("application/vnd.dev.sigstore.bundle.v0.3+json", []byte("x"))
			r.refer(r.digest, bundle, bundle)
			r.refer(r.digest, r.blob("application/spdx+json", []byte("{}")))
			r.refer(r.digest)
		}, wait: 20 * time.Second, verified: true},
	}
}

// retag writes the .sig manifest anew.
func retag(r *repository) {
	r.tags[signatureTagOf(r.digest)] = r.manifest(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": r.blob("application/vnd.oci.image.config.v1+json", []byte(`{"rootfs":{}}`)), "layers": r.layers,
	})
}

// fallbackTag puts the referrers under the fallback tag as well.
func fallbackTag(t *testing.T, r *repository) {
	t.Helper()
	var index map[string]any
	if err := json.Unmarshal(r.fallback(), &index); err != nil {
		t.Fatal(err)
	}
	r.tags[tagOf(r.digest)] = r.manifest(indexType, index)
}

// TestHostile ends in time with the right outcome, whatever the registry does.
func TestHostile(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	for _, c := range hostiles() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			c.fill(t, s, r)
			server := r.serve(true)
			if c.before != nil {
				server.mutex.Lock()
				server.before = c.before(r)
				server.mutex.Unlock()
			}
			k := checker(t, s)
			k.grace = time.Minute
			if c.grace > 0 {
				k.grace = c.grace
			}
			got := k.Check(deadline(t, c.wait), server.target(r))
			if got.Complete != (len(got.Failures) == 0) && got.ManifestRead {
				t.Errorf("expected a search without failures to be complete, and no other:\n%s", tellAll(got))
			}
			verified := want().SignedBy(got.Found)
			if verified != c.verified {
				t.Fatalf("expected verified to be %v, found:\n%s", c.verified, tellAll(got))
			}
			if c.code == "" && len(got.Failures) > 0 || c.code != "" && (len(got.Failures) == 0 || got.Failures[0].Code != c.code) {
				t.Errorf("expected a failure %q, found:\n%s", c.code, tellAll(got))
			}
			for _, f := range got.Failures {
				if f.Title == "" || f.Expected == "" || f.Found == "" || f.Remedy == "" {
					t.Errorf("expected a failure that says everything, found %+v", f)
				}
			}
			findings, _ := gate.JudgeSignatures(want(), got, r.digest)
			for _, f := range findings {
				bad := f.Outcome == gate.Fail || f.Outcome == gate.Unknown
				if bad == c.verified || bad && f.Code != c.finding {
					t.Errorf("expected %q, found %+v", c.finding, f)
				}
				if unknown := f.Outcome == gate.Unknown; bad && unknown != (c.code != "") {
					t.Errorf("expected what could not be looked at to be unknown, found %+v", f)
				}
			}
		})
	}
}

// TestMemory keeps the heap of a flooded gate below 256 MiB. It does not run
// beside others, whose memory it would count.
func TestMemory(t *testing.T) {
	s := sharedSigstore(t)
	r := newRepository(t)
	r.attach(goodBundle(t, s, r.digest), r.digest)
	server := r.serve(true)
	for _, c := range []struct {
		name   string
		before func(*repository) func(http.ResponseWriter, *http.Request) bool
	}{
		{"100,000 referrers", flood(100_000, true)},
		{"endless referrers", on("/referrers/", endless)},
		{"endless bundles", func(r *repository) func(http.ResponseWriter, *http.Request) bool {
			list, blobs := flood(1000, true)(r), on("/blobs/", endless)(r)
			return func(w http.ResponseWriter, req *http.Request) bool {
				if strings.Contains(req.URL.Path, "/manifests/sha256:0") {
					// Any digest will do: the manifest is refused only when it is whole.
					endless(w, req)
					return true
				}
				return list(w, req) || blobs(w, req)
			}
		}},
		{"bundles that are as large as may be", func(r *repository) func(http.ResponseWriter, *http.Request) bool {
			body := []byte(strings.Repeat(" ", maxBundle-100) + `{"mediaType":"x"}`)
			blob := r.blob("application/vnd.dev.sigstore.bundle.v0.3+json", body)
			manifests := map[string][]byte{}
			var listed []map[string]any
			for n := range 24 {
				m, _ := json.Marshal(map[string]any{"schemaVersion": 2, "layers": []any{blob}, "n": n})
				digest := digestOf(m)
				manifests[digest] = m
				listed = append(listed, map[string]any{"digest": digest})
			}
			index, _ := json.Marshal(map[string]any{"manifests": listed})
			return func(w http.ResponseWriter, req *http.Request) bool {
				last := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
				switch {
				case strings.Contains(req.URL.Path, "/referrers/"):
					w.Header().Set("Content-Type", indexType)
					_, _ = w.Write(index)
				case manifests[last] != nil:
					_, _ = w.Write(manifests[last])
				case last == blob["digest"]:
					_, _ = w.Write(body)
				default:
					return false
				}
				return true
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server.mutex.Lock()
			server.before = c.before(r)
			server.mutex.Unlock()
			runtime.GC()
			done, stopped := make(chan struct{}), make(chan uint64)
			go func() {
				var most uint64
				var m runtime.MemStats
				for {
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapAlloc)
					select {
					case <-done:
						stopped <- most
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			}()
			checker(t, s).Check(deadline(t, 30*time.Second), server.target(r))
			close(done)
			most := <-stopped
			t.Logf("at most %d MiB of heap, the registry's included", most>>20)
			if most > 256<<20 {
				t.Errorf("expected at most 256 MiB of heap, found %d", most>>20)
			}
		})
	}
}

// TestPages follows the pages of the referrers API, and not out of the registry.
func TestPages(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	cases := []struct {
		name     string
		link     func(page int, path string) string
		verified bool
		complete bool
	}{
		{"three pages", func(page int, path string) string {
			if page == 2 {
				return ""
			}
			return fmt.Sprintf(`<%s?page=%d>; rel="next"`, path, page+1)
		}, true, true},
		{"pages without end", func(page int, path string) string { return fmt.Sprintf(`<%s?page=%d>; rel="next"`, path, page+1) }, true, false},
		{"another host", func(int, string) string { return `<http://127.0.0.1:1/v2/>; rel="next"` }, false, false},
		{"no address", func(int, string) string { return `<%zz>; rel="next"` }, false, false},
		{"another relation", func(int, string) string { return `<x>; rel="prev", y` }, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.attach(goodBundle(t, s, r.digest), r.digest)
			server := r.serve(true)
			server.mutex.Lock()
			server.before = func(w http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/referrers/") {
					return false
				}
				page, _ := strconv.Atoi(req.URL.Query().Get("page"))
				w.Header().Set("Content-Type", indexType+"; charset=utf-8")
				if link := c.link(page, req.URL.Path); link != "" {
					w.Header().Add("Link", link)
				}
				manifests := []any{}
				if page == 2 {
					manifests = append(manifests, r.referrer[0])
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"schemaVersion": 2, "manifests": manifests})
				return true
			}
			server.mutex.Unlock()
			got := checker(t, s).Check(deadline(t, time.Minute), server.target(r))
			if want().SignedBy(got.Found) != c.verified || got.Complete != c.complete {
				t.Errorf("expected verified %v and complete %v, found:\n%s", c.verified, c.complete, tellAll(got))
			}
		})
	}
}

// TestRequests counts what a check asks: at most six for one candidate, two
// more for each further one.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	for _, api := range []bool{true, false} {
		for _, n := range []int{1, 2, 5} {
			for _, tag := range []bool{true, false} {
				r := newRepository(t)
				for i := range n {
					if tag {
						r.attach(makeLayer(t, s, testsigstore.Signing{
							Identity: requiredIdentity(), At: at, Log: testsigstore.LogV1Promise,
							Payload: testsigstore.Payload(fmt.Sprintf("registry.example/acme/platform%d", i), r.digest),
						}), r.digest)
					} else {
						r.attach(goodBundle(t, s, r.digest), r.digest)
					}
				}
				server := r.serve(api)
				got := checker(t, s).Check(deadline(t, time.Minute), server.target(r))
				if len(got.Found) != n || !got.Complete {
					t.Fatalf("expected %d candidates, found:\n%s", n, tellAll(got))
				}
				if most := 6 + 2*(n-1); server.count() > most {
					t.Errorf("api %v, tag %v, %d candidates: expected at most %d requests, found %d: %v", api, tag, n, most, server.count(), server.requests)
				}
			}
		}
	}
}

// TestTLS trusts the certificate authority that it is given and no other.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	r := newRepository(t)
	r.attach(goodBundle(t, s, r.digest), r.digest)
	plain := r.serve(true)
	secure := httptest.NewUnstartedServer(plain)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	target := Target{Repository: "oci://" + strings.TrimPrefix(secure.URL, "https://") + "/acme/platform", Digest: r.digest}

	got := checker(t, s).Check(deadline(t, time.Minute), target)
	if len(got.Failures) != 1 || got.Failures[0].Code != gate.RegistryUnreachable || got.Failures[0].Transient {
		t.Errorf("expected a final registry-unreachable, found:\n%s", tellAll(got))
	}
	trusting := checker(t, s)
	trusting.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if got := trusting.Check(deadline(t, time.Minute), target); !want().SignedBy(got.Found) || !got.Complete {
		t.Errorf("expected the signature through TLS, found:\n%s", tellAll(got))
	}
	broken := checker(t, s)
	broken.CA = []byte("no certificate")
	if got := broken.Check(deadline(t, time.Minute), target); len(got.Failures) != 1 || got.Failures[0].Code != gate.BadInput {
		t.Errorf("expected bad-input for a CA that is none, found:\n%s", tellAll(got))
	}
}

// TestSeveral is a mixed repository: thirty layers of which one is good, and an
// artifact of which others have signed too.
func TestSeveral(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	r := newRepository(t)
	other := newSigstore(t)
	fillThirty(t, s, other, r)
	b := makeBundle(t, s, testsigstore.Signing{
		Identity: testsigstore.GitHub("acme/elsewhere", "cd.yaml", "refs/heads/main"), At: at, Payload: testsigstore.Statement(cosignPredicate, r.digest),
	})
	r.attach(bundleEvidence(marshal(t, b)), r.digest)
	got := checker(t, s).Check(deadline(t, time.Minute), r.serve(true).target(r))
	if len(got.Found) != 31 || !got.Complete || !want().SignedBy(got.Found) {
		t.Fatalf("expected 31 candidates and a required signer among them, found:\n%s", tellAll(got))
	}
	for n, f := range got.Found {
		if verified := n == 0 || n == 18; f.Verified != verified {
			t.Errorf("candidate %d: expected verified %v, found %+v", n, verified, f)
		}
	}
	if got.Found[0].Layout != gate.LayoutBundle || got.Found[1].Layout != gate.LayoutTag {
		t.Errorf("expected bundles before layers, found:\n%s", tellAll(got))
	}
}

// TestOtherPlaces does not take a signature for what it is not about.
func TestOtherPlaces(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	child := func(t *testing.T) (*repository, string) {
		t.Helper()
		r := newRepository(t)
		index := r.manifest(indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{r.descriptor(r.digest)}})
		r.tags["index"] = index
		return r, index
	}
	hinted := func(t *testing.T, got gate.Signatures, digest string) {
		t.Helper()
		if len(got.Found) != 0 || !got.Complete || len(got.Hints) != 1 || !strings.Contains(got.Hints[0], digest) {
			t.Errorf("expected nothing and a hint about %s, found:\n%s", digest, tellAll(got))
		}
	}
	t.Run("a child of a signed index", func(t *testing.T) {
		t.Parallel()
		r, index := child(t)
		r.attach(goodLayer(t, s, index), index)
		hinted(t, checker(t, s).Check(deadline(t, time.Minute), r.serve(true).target(r)), index)
		k := checker(t, s)
		k.Layout = t.TempDir()
		r.write(k.Layout)
		hinted(t, k.Check(deadline(t, time.Minute), Target{Repository: "registry.example/acme/platform", Digest: r.digest}), index)
	})
	t.Run("an index of a signed child", func(t *testing.T) {
		t.Parallel()
		r, index := child(t)
		signed := r.digest
		r.attach(goodBundle(t, s, signed), signed)
		server := r.serve(true)
		target := server.target(r)
		target.Digest = index
		got := checker(t, s).Check(deadline(t, time.Minute), target)
		hinted(t, got, signed)
		if got.MediaType != indexType {
			t.Errorf("expected an index, found %q", got.MediaType)
		}
	})
	t.Run("another repository", func(t *testing.T) {
		t.Parallel()
		r := newRepository(t)
		r.attach(goodBundle(t, s, r.digest), r.digest)
		target := r.serve(true).target(r)
		target.Repository += "-mirror"
		got := checker(t, s).Check(deadline(t, time.Minute), target)
		if len(got.Failures) != 1 || got.Failures[0].Code != gate.RegistryDenied || got.ManifestRead {
			t.Errorf("expected registry-denied, found:\n%s", tellAll(got))
		}
	})
	t.Run("a mirror without signatures", func(t *testing.T) {
		t.Parallel()
		r := newRepository(t)
		got := checker(t, s).Check(deadline(t, time.Minute), r.serve(false).target(r))
		if len(got.Found) != 0 || !got.Complete || len(got.Hints) != 0 {
			t.Errorf("expected nothing, found:\n%s", tellAll(got))
		}
		findings, _ := gate.JudgeSignatures(want(), got, r.digest)
		if len(findings) != 1 || findings[0].Code != gate.Unsigned || findings[0].Wait != gate.WaitMinute {
			t.Errorf("expected unsigned, found %+v", findings)
		}
	})
}

// A panic of the library on hostile bytes is a refusal.
func TestPanic(t *testing.T) {
	t.Parallel()
	got := run(evidence{layout: gate.LayoutBundle}, func(s *steps) error {
		s.step = gate.StepLog
		var b *protobundle.Bundle
		_ = b.VerificationMaterial.TlogEntries[0]
		return nil
	})
	if got.Verified || got.Step != gate.StepLog || got.Why == "" {
		t.Errorf("expected a refusal, found %+v", got)
	}
}

// TestRedirects follows a registry to its storage, and leaves the credentials at
// home.
func TestRedirects(t *testing.T) {
	t.Parallel()
	s := sharedSigstore(t)
	r := newRepository(t)
	r.attach(goodBundle(t, s, r.digest), r.digest)
	var leaked atomic.Bool
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		leaked.Store(leaked.Load() || req.Header.Get("Authorization") != "")
		_, _ = w.Write(r.blobs[req.URL.Path[1:]])
	}))
	t.Cleanup(storage.Close)
	server := r.serve(true)
	var authorized atomic.Bool
	server.mutex.Lock()
	server.before = func(w http.ResponseWriter, req *http.Request) bool {
		if _, _, ok := req.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		_, digest, ok := strings.Cut(req.URL.Path, "/blobs/")
		if ok {
			authorized.Store(true)
			http.Redirect(w, req, storage.URL+"/"+digest, http.StatusTemporaryRedirect)
		}
		return ok
	}
	server.mutex.Unlock()
	k := checker(t, s)
	k.Credentials = Credentials{Username: "ci", Password: "s3cret"}
	got := k.Check(deadline(t, time.Minute), server.target(r))
	if !want().SignedBy(got.Found) || !got.Complete || !authorized.Load() {
		t.Errorf("expected the bundle from the storage, found:\n%s", tellAll(got))
	}
	if leaked.Load() {
		t.Error("expected the credentials to stay with the registry, found them at the storage")
	}

	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"https://registry.example/v2/", "https://storage.example/x", true},
		{"https://registry.example/v2/", "https://registry.example/x", true},
		{"https://registry.example/v2/", "http://storage.example/x", false},
		{"https://registry.example/v2/", "http://registry.example/x", false},
		{"https://registry.example/v2/", "https://169.254.169.254/latest/meta-data", false},
		{"https://registry.example/v2/", "https://10.0.0.1/x", false},
		{"https://registry.example/v2/", "https://[::1]/x", false},
		{"http://10.0.0.1:5000/v2/", "http://10.0.0.2/x", true},
		{"http://registry.example/v2/", "http://127.0.0.1/x", false},
	} {
		from, err := http.NewRequest(http.MethodGet, c.from, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, err := http.NewRequest(http.MethodGet, c.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkRedirect(to, []*http.Request{from}); (err == nil) != c.ok {
			t.Errorf("%s to %s: expected allowed %v, found %v", c.from, c.to, c.ok, err)
		}
	}
}
