package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// History is every state of one object since Record.
type History struct {
	mu       sync.Mutex
	versions []Version
	err      error
	changed  chan struct{} // closed and replaced at every change
}

// Version is one state of an object, or its absence.
type Version struct {
	// Event is what led to it: Added, Modified, or Deleted.
	Event watch.EventType
	// Object is the state; the last one there was, after Deleted.
	Object *unstructured.Unstructured
}

// Record follows one object, as the administrator, until the context ends: a
// test can then say which states there were while something else looked. It
// works on one watch, and so not over a stop of the API server.
func (c *Cluster) Record(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*History, error) {
	objects := c.dynamic.Resource(resource).Namespace(namespace)
	selector := "metadata.name=" + name
	list, err := objects.List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list the object to record: %w", err)
	}
	w, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the object to record: %w", err)
	}
	h := &History{changed: make(chan struct{})}
	for i := range list.Items {
		h.add(Version{Event: watch.Added, Object: &list.Items[i]}, nil)
	}
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				h.add(Version{}, fmt.Errorf("the recording was ended by the API server: %w", apierrors.FromObject(event.Object)))
				return
			}
			h.add(Version{Event: event.Type, Object: object}, nil)
		}
		h.add(Version{}, fmt.Errorf("the recording has ended: %w", context.Cause(ctx)))
	}()
	return h, nil
}

func (h *History) add(v Version, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.err = err
	} else {
		h.versions = append(h.versions, v)
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// Versions returns the states so far, oldest first.
func (h *History) Versions() []Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions)
}

// Err returns why the recording ended, and nil while it goes on.
func (h *History) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Wait returns when a state so far, or one that is still to come, meets the
// condition. Errors: the context's, and the end of the recording.
func (h *History) Wait(ctx context.Context, condition func(Version) bool) (Version, error) {
	for next := 0; ; {
		h.mu.Lock()
		versions, err, changed := h.versions, h.err, h.changed
		h.mu.Unlock()
		for ; next < len(versions); next++ {
			if condition(versions[next]) {
				return versions[next], nil
			}
		}
		if err != nil {
			return Version{}, err
		}
		select {
		case <-ctx.Done():
			return Version{}, fmt.Errorf("none of %d states met the condition: %w", next, ctx.Err())
		case <-changed:
		}
	}
}
