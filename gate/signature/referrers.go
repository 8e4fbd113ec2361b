package signature

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"flux-verify-gate/gate"
)

// errUnsupported says that the registry has no referrers API.
var errUnsupported = errors.New("no referrers API")

// referrers asks the referrers API page by page, and where there is none reads
// the index under the fallback tag (OCI distribution specification 1.1). It
// takes every descriptor, whatever artifact type it claims: registries report
// wrong ones.
func (r *registry) referrers(ctx context.Context, digest string) (referrerList, error) {
	var list referrerList
	next := r.url("referrers", digest)
	for page := 0; next != ""; page++ {
		if page == maxPages {
			list.truncated = &limitError{fmt.Sprintf("expected at most %d pages of referrers, found more", maxPages)}
			return list, nil
		}
		var found referrerList
		var following string
		err := retry(ctx, r.dials, r.attempt, func(ctx context.Context) (err error) {
			found, following, err = r.referrersPage(ctx, next)
			return err
		})
		if page == 0 && errors.Is(err, errUnsupported) {
			return r.referrersByTag(ctx, digest)
		}
		if err != nil {
			// What the pages before have shown is not lost.
			if page == 0 {
				return referrerList{}, err
			}
			list.truncated = err
			return list, nil
		}
		list.descriptors = append(list.descriptors, found.descriptors...)
		list.truncated = found.truncated
		if len(list.descriptors) > maxCandidates {
			list.descriptors = list.descriptors[:maxCandidates]
			list.truncated = tooMany()
		}
		if list.truncated != nil {
			return list, nil
		}
		next = following
	}
	return list, nil
}

func tooMany() error {
	return &limitError{fmt.Sprintf("expected at most %d referrers, found more", maxCandidates)}
}

// referrersPage reads one page and the address of the next, empty at the end.
func (r *registry) referrersPage(ctx context.Context, address string) (referrerList, string, error) {
	resp, err := r.get(ctx, address, string(types.OCIImageIndex))
	var answer *answerError
	switch {
	case errors.Is(err, errAbsent):
		return referrerList{}, "", errUnsupported
	case errors.As(err, &answer) && unsupported(answer.status):
		return referrerList{}, "", errUnsupported
	case err != nil:
		return referrerList{}, "", err
	}
	defer resp.Body.Close()
	if contentType(resp.Header) != string(types.OCIImageIndex) {
		return referrerList{}, "", errUnsupported
	}
	following, err := nextPage(resp)
	if err != nil {
		return referrerList{}, "", err
	}
	list, err := readIndex(resp.Body)
	return list, following, err
}

// unsupported are the answers of registries that do not know the API.
func unsupported(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusGone, http.StatusNotImplemented:
		return true
	}
	return false
}

// nextPage reads the Link header with rel="next" (RFC 8288), which must stay
// with the same host.
func nextPage(resp *http.Response) (string, error) {
	for _, header := range resp.Header.Values("Link") {
		for _, link := range strings.Split(header, ",") {
			target, parameters, found := strings.Cut(strings.TrimSpace(link), ">")
			if !found || !strings.HasPrefix(target, "<") {
				continue
			}
			relation := strings.ReplaceAll(strings.ToLower(parameters), " ", "")
			if !strings.Contains(relation, `rel="next"`) && !strings.Contains(relation, "rel=next") {
				continue
			}
			reference, err := url.Parse(target[1:])
			if err != nil {
				return "", &contentError{fmt.Sprintf("expected the address of the next page, found %q", clip(target[1:]))}
			}
			next := resp.Request.URL.ResolveReference(reference)
			if next.Host != resp.Request.URL.Host || next.Scheme != resp.Request.URL.Scheme {
				return "", &contentError{fmt.Sprintf("expected the next page at %s, found it at %s://%s", resp.Request.URL.Host, next.Scheme, next.Host)}
			}
			return next.String(), nil
		}
	}
	return "", nil
}

func (r *registry) referrersByTag(ctx context.Context, digest string) (referrerList, error) {
	var list referrerList
	err := retry(ctx, r.dials, r.attempt, func(ctx context.Context) error {
		resp, err := r.get(ctx, r.url("manifests", tagOf(digest)), string(types.OCIImageIndex))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		sum := sha256.New()
		body := io.TeeReader(io.LimitReader(resp.Body, maxIndex+1), sum)
		if list, err = readIndex(body); err != nil || list.truncated != nil {
			return err
		}
		// A tag says nothing of the content, but the registry may.
		if want := resp.Header.Get("Docker-Content-Digest"); gate.WellFormedDigest(want) {
			if _, err := io.Copy(io.Discard, body); err != nil {
				return err
			}
			if found := "sha256:" + hex.EncodeToString(sum.Sum(nil)); found != want {
				return &contentError{fmt.Sprintf("expected an index with the digest %s, found %s", want, found)}
			}
		}
		return nil
	})
	if errors.Is(err, errAbsent) {
		return referrerList{}, nil
	}
	return list, err
}

// readIndex reads the descriptors of an OCI image index as they come, so that a
// flood of them costs no memory: those up to the limit are kept, and the list
// is then truncated.
func readIndex(body io.Reader) (referrerList, error) {
	var list referrerList
	source := &meter{reader: io.LimitReader(body, maxIndex)}
	dec := json.NewDecoder(source)
	fail := func(err error) (referrerList, error) {
		if source.read >= maxIndex {
			list.truncated = &limitError{fmt.Sprintf("expected an index of referrers of at most %d bytes, found more", maxIndex)}
			return list, nil
		}
		if source.err != nil {
			return referrerList{}, fmt.Errorf("expected the whole index of referrers: %w", source.err)
		}
		return referrerList{}, &contentError{"expected an OCI image index: " + clip(err.Error())}
	}
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		if err == nil {
			err = errors.New("found no JSON object")
		}
		return fail(err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return fail(err)
		}
		if name != "manifests" {
			var skipped json.RawMessage
			if err := dec.Decode(&skipped); err != nil {
				return fail(err)
			}
			continue
		}
		start, err := dec.Token()
		if err != nil {
			return fail(err)
		}
		if start == nil { // null
			continue
		}
		if start != json.Delim('[') {
			return fail(errors.New("found manifests that are no list"))
		}
		for dec.More() {
			if len(list.descriptors) == maxCandidates {
				list.truncated = tooMany()
				return list, nil
			}
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return fail(err)
			}
			list.descriptors = append(list.descriptors, readDescriptor(raw))
		}
		if _, err := dec.Token(); err != nil {
			return fail(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return fail(err)
	}
	return list, nil
}

// meter counts what is read, and remembers an error other than the end.
type meter struct {
	reader io.Reader
	read   int64
	err    error
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.reader.Read(p)
	m.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}
