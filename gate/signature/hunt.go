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
	// ctx ends with the search, outer with the check.
	ctx      context.Context
	outer    context.Context
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
	slots    [2][]*gate.Signature // bundles and layers, in the order of the place; nil: none
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

// ticket is a job with the place of its outcome.
type ticket struct {
	job
	place, slot int
}

func newHunt(ctx context.Context, where place, fail failures, v verifier, digest string, c *Checker) *hunt {
	h := &hunt{
		outer: ctx,
		where: where, fail: fail, verifier: v, digest: digest, checker: c,
		lost: make(map[gate.Code]*lostCandidates), other: make(map[string]int), payloads: make(map[string]*payload),
	}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	return h
}

// run looks in both places at once. The candidates of the one are opened while
// the other has not answered yet: it may never do.
func (h *hunt) run() {
	defer h.cancel(nil)
	queue := make(chan ticket)
	var places, workers sync.WaitGroup
	for n, list := range []func() []job{h.bundles, h.layers} {
		places.Go(func() {
			jobs := list()
			h.mutex.Lock()
			h.slots[n] = make([]*gate.Signature, len(jobs))
			h.mutex.Unlock()
			for i, j := range jobs {
				queue <- ticket{job: j, place: n, slot: i}
			}
		})
	}
	for range concurrency {
		workers.Go(func() {
			for t := range queue {
				h.candidate(t)
			}
		})
	}
	places.Wait()
	close(queue)
	workers.Wait()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// bundles lists the candidates among the referrers.
func (h *hunt) bundles() []job {
	list, err := h.where.referrers(h.ctx, h.digest)
	if err != nil {
		h.missed("the list of referrers", err)
		return nil
	}
	if list.truncated != nil {
		h.missed("the whole list of referrers", list.truncated)
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
		h.missed("the tag "+signatureTagOf(h.digest), err)
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
				h.missed("the tag "+signatureTagOf(h.digest), &limitError{fmt.Sprintf("expected at most %d signatures, found more", maxCandidates)})
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
func (h *hunt) candidate(t ticket) {
	e, err := t.fetch(h.ctx)
	if err == nil && e == nil {
		return
	}
	var found gate.Signature
	if err != nil {
		found = h.unread(t.job, err)
	} else {
		h.verifying.Lock()
		found = h.verifier.verify(*e, question{digest: h.digest})
		h.verifying.Unlock()
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.slots[t.place][t.slot] = &found
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
	err = h.givenUp(err)
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
	return gate.Signature{Layout: j.layout, Digest: j.digest, Step: gate.StepFetch, Why: tellError(err)}
}

// givenUp tells an error that is the end of the waiting from others.
func (h *hunt) givenUp(err error) error {
	if errors.Is(err, errGivenUp) || (errors.Is(context.Cause(h.ctx), errGivenUp) && errors.Is(err, context.Canceled)) {
		return errGivenUp
	}
	return err
}

// missed writes down something that could not be looked at.
func (h *hunt) missed(what string, err error) {
	f := h.fail.of(what, h.givenUp(err))
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.failures = append(h.failures, f)
}

// so are the candidates that are done; h.mutex is held.
func (h *hunt) so() []gate.Signature {
	var found []gate.Signature
	for _, place := range h.slots {
		for _, s := range place {
			if s != nil {
				found = append(found, *s)
			}
		}
	}
	return found
}

// candidates is how many there were.
func (h *hunt) candidates() int { return len(h.slots[0]) + len(h.slots[1]) }

// found are the candidates in the order in which the place lists them, bundles
// first.
func (h *hunt) found() []gate.Signature { return h.so() }

// failed are the failures, one for all candidates that were lost alike.
func (h *hunt) failed() []gate.Failure {
	all := h.failures
	for _, code := range []gate.Code{gate.RegistryDenied, gate.RegistryUnreachable} {
		if lost := h.lost[code]; lost != nil {
			all = append(all, h.fail.of(fmt.Sprintf("%d of %d candidates", lost.n, h.candidates()), lost.first))
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
