package testcontroller

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

// Registry stands in for an OCI registry with one repository, and for what the
// controller's verification would say of the artifacts in it. Its methods may
// be called from several goroutines. Use NewRegistry.
type Registry struct {
	mu     sync.Mutex
	tags   map[string]string
	signed map[string]bool
	outage string
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{tags: map[string]string{}, signed: map[string]bool{}}
}

// Digest returns the digest, sha256:<64 hex digits>, that stands for an
// artifact with some content.
func Digest(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

// Tag lets a tag point to a digest.
func (r *Registry) Tag(tag, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[tag] = digest
}

// Sign adds a signature that every policy accepts.
func (r *Registry) Sign(digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signed[digest] = true
}

// Break lets every request fail with a message, until Repair.
func (r *Registry) Break(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outage = message
}

// Repair ends what Break began.
func (r *Registry) Repair() { r.Break("") }

// Resolve returns the digest that a tag points to.
func (r *Registry) Resolve(tag string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outage != "" {
		return "", errors.New(r.outage)
	}
	digest, ok := r.tags[tag]
	if !ok {
		return "", fmt.Errorf("MANIFEST_UNKNOWN: no tag %s", tag)
	}
	return digest, nil
}

// verify says whether the digest has a signature, in the controller's words.
func (r *Registry) verify(repository, digest string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outage != "" {
		return errors.New(r.outage)
	}
	if !r.signed[digest] {
		return fmt.Errorf("no matching signatures were found for '%s@%s'", repository, digest)
	}
	return nil
}

// pull fails when the registry is down.
func (r *Registry) pull() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outage != "" {
		return errors.New(r.outage)
	}
	return nil
}
