package testcontroller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// FieldManager is the name that source-controller writes under.
const FieldManager = "source-controller"

// Options say what a Controller looks after, and how fast.
type Options struct {
	// Config is how it reaches the API server; the user needs what
	// source-controller needs.
	Config *rest.Config
	// Namespace and Name are those of the one OCIRepository (v1).
	Namespace, Name string
	// Registry is what spec.url points to, whatever it says.
	Registry *Registry
	// Seed decides the delays.
	Seed uint64
	// MaxDelay is the longest pause before a write to the API server or a
	// request to the registry; each is random between zero and it. Zero means
	// no pause.
	MaxDelay time.Duration
	// MinRetry and MaxRetry are the first and the longest time between a failed
	// reconciliation and the next; it doubles in between. Zero means 100 ms and
	// 1 s. (source-controller's defaults are 750 ms and 15 minutes.)
	MinRetry, MaxRetry time.Duration
	// Poll is how often Run looks for a change of the object, in place of a
	// watch. Zero means 50 ms.
	Poll time.Duration
	// Logf, when set, is told about failed reconciliations.
	Logf func(format string, args ...any)
}

// Controller reconciles one OCIRepository. Use New.
type Controller struct {
	options Options
	client  client.Client

	mu      sync.Mutex
	random  *rand.Rand
	storage map[string]bool // the stored revisions of the object with uid
	uid     types.UID
}

// New returns a controller that has not read or written anything yet.
func New(options Options) (*Controller, error) {
	for value, otherwise := range map[*time.Duration]time.Duration{
		&options.MinRetry: 100 * time.Millisecond, &options.MaxRetry: time.Second, &options.Poll: 50 * time.Millisecond,
	} {
		if *value == 0 {
			*value = otherwise
		}
	}
	scheme := runtime.NewScheme()
	if err := sourcev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register the Flux types: %w", err)
	}
	direct, err := client.NewWithWatch(options.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make the controller's client: %w", err)
	}
	c := &Controller{
		options: options,
		random:  rand.New(rand.NewPCG(options.Seed, 0)),
		storage: map[string]bool{},
	}
	// A pause before every write is what pulls the two writes of one status
	// apart.
	c.client = interceptor.NewClient(direct, interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.pause(ctx); err != nil {
				return err
			}
			return next.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, next client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := c.pause(ctx); err != nil {
				return err
			}
			return next.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	return c, nil
}

// Run reconciles until the context ends, and then returns nil: at once when the
// object is new, has a new generation or a new reconcile request, after its
// interval otherwise, and sooner after a failure.
func (c *Controller) Run(ctx context.Context) error {
	var seen trigger
	var due time.Time
	retry := c.options.MinRetry
	for {
		if ctx.Err() != nil {
			return nil
		}
		now, err := c.look(ctx)
		if err != nil && !apierrors.IsNotFound(err) {
			c.logf("cannot read the object: %v", err)
		}
		if err == nil && (now != seen || !time.Now().Before(due)) {
			after, err := c.Reconcile(ctx)
			switch {
			case err == nil:
				due, retry = time.Now().Add(after), c.options.MinRetry
			default:
				c.logf("reconciliation failed: %v", err)
				due, retry = time.Now().Add(retry), min(2*retry, c.options.MaxRetry)
			}
			seen = now
		}
		sleep(ctx, c.options.Poll)
	}
}

// trigger is what makes the controller reconcile at once when it changes.
type trigger struct {
	uid        types.UID
	generation int64
	request    string
	deleted    bool
}

func (c *Controller) look(ctx context.Context) (trigger, error) {
	object := &sourcev1.OCIRepository{}
	if err := c.client.Get(ctx, c.key(), object); err != nil {
		return trigger{}, err
	}
	request, _ := meta.ReconcileAnnotationValue(object.GetAnnotations())
	return trigger{
		uid: object.UID, generation: object.Generation, request: request,
		deleted: !object.DeletionTimestamp.IsZero(),
	}, nil
}

func (c *Controller) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.options.Namespace, Name: c.options.Name}
}

// LoseStorage forgets every stored artifact, as a restart with an emptyDir
// does. The next reconciliation finds out.
func (c *Controller) LoseStorage() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.storage)
}

func (c *Controller) stored(uid types.UID, revision string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uid == uid && c.storage[revision]
}

func (c *Controller) store(uid types.UID, revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uid != uid {
		clear(c.storage)
		c.uid = uid
	}
	c.storage[revision] = true
}

// pause waits for a random time up to MaxDelay.
func (c *Controller) pause(ctx context.Context) error {
	c.mu.Lock()
	d := time.Duration(c.random.Int64N(int64(c.options.MaxDelay) + 1))
	c.mu.Unlock()
	sleep(ctx, d)
	return ctx.Err()
}

func (c *Controller) logf(format string, args ...any) {
	if c.options.Logf != nil {
		c.options.Logf(format, args...)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// errRequeue asks for another reconciliation at once: nothing has failed.
var errRequeue = errors.New("reconcile again")
