package testcontroller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Resource is OCIRepository, version v1.
func Resource() schema.GroupVersionResource {
	return sourcev1.GroupVersion.WithResource("ocirepositories")
}

// Event is something that somebody does to a scene.
type Event string

const (
	// Edit changes spec.interval: a new generation with the same meaning.
	Edit Event = "edit"
	// Request asks for a reconciliation by annotation.
	Request Event = "request"
	// PushSigned moves the tag to a new artifact with a signature.
	PushSigned Event = "push signed"
	// PushUnsigned moves the tag to a new artifact without one.
	PushUnsigned Event = "push unsigned"
	// Sign signs the artifact that the tag points to.
	Sign Event = "sign"
	// RequireVerification sets spec.verify.
	RequireVerification Event = "require verification"
	// DropVerification removes spec.verify.
	DropVerification Event = "drop verification"
	// Suspend sets spec.suspend.
	Suspend Event = "suspend"
	// Resume removes spec.suspend.
	Resume Event = "resume"
	// Break takes the registry down.
	Break Event = "break"
	// Repair brings it back.
	Repair Event = "repair"
	// LoseStorage makes the controller lose its stored artifacts.
	LoseStorage Event = "lose storage"
	// Recreate deletes the object, waits until it is gone, and makes it anew.
	Recreate Event = "recreate"
)

// Step is an event and how long after the step before it happens.
type Step struct {
	After time.Duration
	Event Event
}

// RandomSchedule returns as many steps as asked for, the same for the same
// arguments. Each comes between zero and maxGap after the one before, and makes
// sense after those before: only what is suspended is resumed. It begins with
// an object that is not suspended and has spec.verify if verified is true, an
// artifact without a signature, and a registry that is up.
func RandomSchedule(seed uint64, steps int, maxGap time.Duration, verified bool) []Step {
	random := rand.New(rand.NewPCG(seed, 1))
	var suspended, broken bool
	schedule := make([]Step, 0, steps)
	for range steps {
		events := []Event{Edit, Request, PushSigned, PushSigned, PushUnsigned, Sign, LoseStorage, Recreate}
		toggle := func(on bool, off, back Event) {
			if on {
				// Twice: or half of all schedules would stand still most of the time.
				events = append(events, back, back)
			} else {
				events = append(events, off)
			}
		}
		toggle(suspended, Suspend, Resume)
		toggle(broken, Break, Repair)
		toggle(!verified, DropVerification, RequireVerification)
		event := events[random.IntN(len(events))]
		switch event {
		case Suspend, Resume:
			suspended = event == Suspend
		case Break, Repair:
			broken = event == Break
		case DropVerification, RequireVerification:
			verified = event == RequireVerification
		}
		schedule = append(schedule, Step{After: time.Duration(random.Int64N(int64(maxGap) + 1)), Event: event})
	}
	return schedule
}

// Scene is an OCIRepository, those who write its spec, its registry and its
// controller. It is used by one goroutine at a time.
type Scene struct {
	// Client writes the spec; it needs create, patch and delete, too.
	Client dynamic.Interface
	// Manager is the field manager of the spec.
	Manager string
	// Namespace and Name are those of the OCIRepository.
	Namespace, Name string
	// Tag is spec.ref.tag.
	Tag string
	// Registry and Controller are what the events are done to. A Controller
	// that nobody runs never reacts.
	Registry   *Registry
	Controller *Controller
	// Verify is spec.verify when it is required. Nil means cosign with a key.
	Verify map[string]any

	verified, suspended bool
	events              int
	digest              string
}

// Create pushes a first artifact, unsigned, and makes the object, with
// spec.verify or without.
func (s *Scene) Create(ctx context.Context, verified bool) error {
	s.verified = verified
	s.push(false)
	return s.apply(ctx)
}

// Digest returns the digest that the tag points to.
func (s *Scene) Digest() string { return s.digest }

// Play does the steps at their times. It ends early only with an error.
func (s *Scene) Play(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		sleep(ctx, step.After)
		if err := s.Do(ctx, step.Event); err != nil {
			return err
		}
	}
	return nil
}

// Do does one event now.
func (s *Scene) Do(ctx context.Context, event Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.events++
	var err error
	switch event {
	case Edit:
		err = s.apply(ctx)
	case Request:
		err = s.request(ctx)
	case PushSigned, PushUnsigned:
		s.push(event == PushSigned)
	case Sign:
		s.Registry.Sign(s.digest)
	case RequireVerification, DropVerification:
		s.verified = event == RequireVerification
		err = s.apply(ctx)
	case Suspend, Resume:
		s.suspended = event == Suspend
		err = s.apply(ctx)
	case Break:
		s.Registry.Break("connect: connection refused")
	case Repair:
		s.Registry.Repair()
	case LoseStorage:
		s.Controller.LoseStorage()
	case Recreate:
		err = s.recreate(ctx)
	default:
		return fmt.Errorf("no event is called %q", event)
	}
	if err != nil {
		return fmt.Errorf("cannot %s: %w", event, err)
	}
	return nil
}

func (s *Scene) push(signed bool) {
	s.digest = Digest(fmt.Sprintf("%s/%s %d", s.Namespace, s.Name, s.events))
	if signed {
		s.Registry.Sign(s.digest)
	}
	s.Registry.Tag(s.Tag, s.digest)
}

func (s *Scene) objects() dynamic.ResourceInterface {
	return s.Client.Resource(Resource()).Namespace(s.Namespace)
}

// apply applies the whole spec. Every event gives it another interval, so that
// none of them leaves the generation as it is.
func (s *Scene) apply(ctx context.Context) error {
	spec := map[string]any{
		"url":      "oci://registry.stack.test/acme/" + s.Name,
		"interval": fmt.Sprintf("%dms", 500+s.events),
		"ref":      map[string]any{"tag": s.Tag},
	}
	if s.suspended {
		spec["suspend"] = true
	}
	if s.verified {
		spec["verify"] = s.Verify
		if s.Verify == nil {
			spec["verify"] = map[string]any{"provider": "cosign", "secretRef": map[string]any{"name": "cosign"}}
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind))
	object.SetName(s.Name)
	_, err := s.objects().Apply(ctx, s.Name, object, metav1.ApplyOptions{FieldManager: s.Manager, Force: true})
	return err
}

func (s *Scene) request(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
	_, err := s.objects().Patch(ctx, s.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "flux"})
	return err
}

func (s *Scene) recreate(ctx context.Context) error {
	if err := s.objects().Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for {
		_, err := s.objects().Get(ctx, s.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return s.apply(ctx)
		}
		if err != nil {
			return err
		}
		sleep(ctx, 20*time.Millisecond)
	}
}
