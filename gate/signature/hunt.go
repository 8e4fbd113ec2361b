package signature

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"flux-verify-gate/gate"
)

// bundleType begins the media type of every Sigstore bundle.
const bundleType = "application/vnd.dev.sigstore.bundle"

// hunt is one search through one place.
type hunt struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	where    place
	fail     failures
	verifier verifier
	digest   string
	checker  *Checker

	// verifying lets one candidate be read at a time: fetching is slow and
	// small, reading is quick and may take much memory.
	verifying sync.Mutex

	mutex    sync.Mutex
	slots    []*gate.Signature // in the order of the candidates; nil: none
	failures []gate.Failure
	lost     map[gate.Code]*lostCandidates
	tested   *evidence // what the self-test runs on
	counted  bool      // tested is by a required signer
	timer    *time.Timer
	other    map[string]int // media types of referrers that hold no bundle
	absent   int            // referrers that are listed and not there

	payloads map[string]*payload
}

// lostCandidates gathers candidates that were not read for the same reason.
type lostCandidates struct {
	n     int
	first error
}

// payload is fetched once, however many layers share it.
type payload struct {
	once sync.Once
	body []byte
	err  error
}

// job fetches one candidate into evidence. Without an error, nil evidence means
// that it is no candidate after all.
type job struct {
	layout gate.Layout
	digest string
	fetch  func(context.Context) (*evidence, error)
}

func newHunt(ctx context.Context, where place, fail failures, v verifier, digest string, c *Checker) *hunt {
	h := &hunt{
		where: where, fail: fail, verifier: v, digest: digest, checker: c,
		lost: make(map[gate.Code]*lostCandidates), other: make(map[string]int), payloads: make(map[string]*payload),
	}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	return h
}

// run looks in both places at once, and begins with the candidates of one
// before the other has answered.
func (h *hunt) run() {
	defer h.cancel(nil)
	jobs := make([][]job, 2)
	var places sync.WaitGroup
	places.Go(func() { jobs[0] = h.bundles() })
	places.Go(func() { jobs[1] = h.layers() })
	places.Wait()
	all := append(jobs[0], jobs[1]...)

	h.slots = make([]*gate.Signature, len(all))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(concurrency, len(all)) {
		workers.Go(func() {
			for n := range next {
				h.candidate(n, all[n])
			}
		})
	}
	for n := range all {
		next <- n
	}
	close(next)
	workers.Wait()
	h.mutex.Lock()
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mutex.Unlock()
}

// bundles lists the candidates among the referrers.
func (h *hunt) bundles() []job {
	list, err := h.where.referrers(h.ctx, h.digest)
	if err != nil {
		h.failed1(h.fail.of("the list of referrers", err))
		return nil
	}
	if list.truncated != nil {
		h.failed1(h.fail.of("the whole list of referrers", list.truncated))
	}
	var jobs []job
	seen := make(map[string]bool)
	for _, d := range list.descriptors {
		if seen[d.Digest] {
			continue
		}
		seen[d.Digest] = true
		jobs = append(jobs, job{layout: gate.LayoutBundle, digest: d.Digest, fetch: func(ctx context.Context) (*evidence, error) {
			return h.fetchBundle(ctx, d.Digest)
		}})
	}
	return jobs
}

// fetchBundle opens a referrer. What it is, its one layer says: the artifact
// types that registries report and the annotations that tools write are wrong
// too often to go by.
func (h *hunt) fetchBundle(ctx context.Context, digest string) (*evidence, error) {
	found, err := h.where.manifest(ctx, digest, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(found.body)
	if err != nil {
		return nil, &contentError{"expected the manifest of a referrer: " + err.Error()}
	}
	var held []descriptor
	for _, layer := range m.layers {
		if strings.HasPrefix(layer.MediaType, bundleType) {
			held = append(held, layer)
		}
	}
	if len(held) == 0 {
		h.noBundle(m)
		return nil, nil
	}
	if len(m.layers) != 1 {
		return nil, &contentError{fmt.Sprintf("expected a bundle alone in its manifest, found %d layers", len(m.layers))}
	}
	if held[0].Size > maxBundle {
		return nil, &limitError{fmt.Sprintf("expected a bundle of at most %d bytes, found %d", maxBundle, held[0].Size)}
	}
	body, err := h.where.blob(ctx, held[0].Digest, maxBundle)
	if err != nil {
		return nil, err
	}
	return &evidence{layout: gate.LayoutBundle, digest: digest, bundle: body}, nil
}

// noBundle counts what else refers to the artifact.
func (h *hunt) noBundle(m manifest) {
	kind := "something without layers"
	if len(m.layers) > 0 && m.layers[0].MediaType != "" {
		kind = m.layers[0].MediaType
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.other[kind]++
}

// layers lists the candidates under the .sig tag: every layer.
func (h *hunt) layers() []job {
	manifests, err := h.where.signatures(h.ctx, h.digest)
	if err != nil {
		h.failed1(h.fail.of("the tag "+signatureTagOf(h.digest), err))
		return nil
	}
	var jobs []job
	for _, found := range manifests {
		m, err := readManifest(found.body)
		if err != nil {
			jobs = append(jobs, job{layout: gate.LayoutTag, digest: found.digest, fetch: func(context.Context) (*evidence, error) {
				return nil, &contentError{"expected the manifest of cosign signatures: " + err.Error()}
			}})
			continue
		}
		for _, layer := range m.layers {
			if len(jobs) == maxCandidates {
				h.failed1(h.fail.of("the tag "+signatureTagOf(h.digest), &limitError{fmt.Sprintf("expected at most %d signatures, found more", maxCandidates)}))
				return jobs
			}
			jobs = append(jobs, job{layout: gate.LayoutTag, digest: layer.Digest, fetch: func(ctx context.Context) (*evidence, error) {
				return h.fetchLayer(ctx, layer)
			}})
		}
	}
	return jobs
}

func (h *hunt) fetchLayer(ctx context.Context, layer descriptor) (*evidence, error) {
	if layer.Size > maxPayload {
		return nil, &limitError{fmt.Sprintf("expected a payload of at most %d bytes, found %d", maxPayload, layer.Size)}
	}
	h.mutex.Lock()
	shared, ok := h.payloads[layer.Digest]
	if !ok {
		shared = &payload{}
		h.payloads[layer.Digest] = shared
	}
	h.mutex.Unlock()
	shared.once.Do(func() { shared.body, shared.err = h.where.blob(ctx, layer.Digest, maxPayload) })
	if shared.err != nil {
		return nil, shared.err
	}
	return &evidence{layout: gate.LayoutTag, digest: layer.Digest, payload: shared.body, annotations: layer.Annotations}, nil
}

// candidate fetches and verifies one candidate.
func (h *hunt) candidate(n int, j job) {
	e, err := j.fetch(h.ctx)
	if err == nil && e == nil {
		return
	}
	var found gate.Signature
	if err != nil {
		found = h.unread(j, err)
	} else {
		h.verifying.Lock()
		found = h.verifier.verify(*e, question{digest: h.digest})
		h.verifying.Unlock()
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.slots[n] = &found
	if !found.Verified {
		return
	}
	counts := h.checker.Want.SignedBy([]gate.Signature{found})
	if h.tested == nil || (counts && !h.counted) {
		h.tested, h.counted = e, counts
	}
	if h.timer == nil && h.checker.Want.SignedBy(h.so()) {
		grace := h.checker.grace
		if grace == 0 {
			grace = defaultGrace
		}
		h.timer = time.AfterFunc(grace, func() { h.cancel(errGivenUp) })
	}
}

// unread is a candidate whose bytes were not had. Where that is because the
// place could not be asked, or is more than the gate reads, the search is not
// complete.
func (h *hunt) unread(j job, err error) gate.Signature {
	if cause := context.Cause(h.ctx); errors.Is(cause, errGivenUp) && errors.Is(err, context.Canceled) {
		err = errGivenUp
	}
	var content *contentError
	switch {
	case errors.Is(err, errAbsent):
		h.mutex.Lock()
		h.absent++
		h.mutex.Unlock()
		err = errors.New("expected content, found that the registry does not have it")
	case errors.As(err, &content):
	default:
		code := h.fail.of("", err).Code
		h.mutex.Lock()
		if h.lost[code] == nil {
			h.lost[code] = &lostCandidates{first: err}
		}
		h.lost[code].n++
		h.mutex.Unlock()
	}
	return gate.Signature{Layout: j.layout, Digest: j.digest, Step: gate.StepFetch, Why: clip(err.Error())}
}

func (h *hunt) failed1(f gate.Failure) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.failures = append(h.failures, f)
}

// so are the candidates that are done; h.mutex is held.
func (h *hunt) so() []gate.Signature {
	var found []gate.Signature
	for _, s := range h.slots {
		if s != nil {
			found = append(found, *s)
		}
	}
	return found
}

// found are the candidates in the order in which the place lists them, bundles
// first.
func (h *hunt) found() []gate.Signature { return h.so() }

// failed are the failures, one for all candidates that were lost alike.
func (h *hunt) failed() []gate.Failure {
	all := h.failures
	for _, code := range []gate.Code{gate.RegistryDenied, gate.RegistryUnreachable} {
		if lost := h.lost[code]; lost != nil {
			all = append(all, h.fail.of(fmt.Sprintf("%d of %d candidates", lost.n, len(h.slots)), lost.first))
		}
	}
	return all
}

func (h *hunt) selfTest() *gate.VerifierTest {
	if h.tested == nil {
		return nil
	}
	return selfTest(h.verifier, *h.tested, h.digest, h.checker.Want.Required)
}
