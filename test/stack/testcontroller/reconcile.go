package testcontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"
	"github.com/fluxcd/pkg/runtime/reconcile"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The conditions that the controller owns, that Ready is made of, and those of
// the latter that are bad when they are True.
var (
	owned = []string{
		sourcev1.StorageOperationFailedCondition, sourcev1.FetchFailedCondition, sourcev1.ArtifactOutdatedCondition,
		sourcev1.ArtifactInStorageCondition, sourcev1.SourceVerifiedCondition,
		meta.ReadyCondition, meta.ReconcilingCondition, meta.StalledCondition,
	}
	summarized = []string{
		sourcev1.StorageOperationFailedCondition, sourcev1.FetchFailedCondition, sourcev1.ArtifactOutdatedCondition,
		sourcev1.ArtifactInStorageCondition, sourcev1.SourceVerifiedCondition,
		meta.StalledCondition, meta.ReconcilingCondition,
	}
	negative = []string{
		sourcev1.StorageOperationFailedCondition, sourcev1.FetchFailedCondition, sourcev1.ArtifactOutdatedCondition,
		meta.StalledCondition, meta.ReconcilingCondition,
	}
)

// failure is what a reconciliation failed with: the reason and message of the
// condition that it left.
type failure struct{ reason, message string }

func (f *failure) Error() string { return f.message }

func failed(reason, format string, args ...any) *failure {
	return &failure{reason: reason, message: fmt.Sprintf(format, args...)}
}

// run is one reconciliation.
type run struct {
	*Controller
	object  *sourcev1.OCIRepository
	patcher *patch.SerialPatcher
}

// Reconcile does one reconciliation and returns when the next one is due. It
// reads the object once; the pauses of Options come before each write and each
// request to the registry. An object that is gone is no error.
func (c *Controller) Reconcile(ctx context.Context) (time.Duration, error) {
	object := &sourcev1.OCIRepository{}
	if err := c.client.Get(ctx, c.key(), object); err != nil {
		return c.options.Poll, client.IgnoreNotFound(err)
	}
	r := &run{Controller: c, object: object, patcher: patch.NewSerialPatcher(object, c.client)}
	err := r.steps(ctx)
	if patchErr := r.finish(ctx, err); patchErr != nil {
		return 0, errors.Join(err, patchErr)
	}
	if errors.Is(err, errRequeue) {
		return 0, nil
	}
	return object.GetRequeueAfter(), err
}

// steps are source-controller's Reconcile and reconcile, in order.
func (r *run) steps(ctx context.Context) error {
	object := r.object
	if !object.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(object, sourcev1.SourceFinalizer)
		return nil
	}
	if controllerutil.AddFinalizer(object, sourcev1.SourceFinalizer) {
		return errRequeue
	}
	if object.Spec.Suspend {
		return nil
	}

	reconcile.ProgressiveStatus(false, object, meta.ProgressingReason, "reconciliation in progress")
	request, _ := meta.ReconcileAnnotationValue(object.GetAnnotations())
	switch {
	case object.Generation != object.Status.ObservedGeneration:
		reconcile.ProgressiveStatus(false, object, meta.ProgressingReason,
			"processing object: new generation %d -> %d", object.Status.ObservedGeneration, object.Generation)
		if err := r.patch(ctx); err != nil {
			return err
		}
	case request != object.Status.GetLastHandledReconcileRequest():
		if err := r.patch(ctx); err != nil {
			return err
		}
	}
	conditions.Delete(object, sourcev1.StorageOperationFailedCondition)

	if err := r.reconcileStorage(ctx); err != nil {
		return err
	}
	revision, err := r.reconcileSource(ctx)
	if err != nil {
		return err
	}
	r.reconcileArtifact(revision)
	conditions.Delete(object, meta.ReconcilingCondition)
	return nil
}

// reconcileStorage drops an artifact that is no longer stored.
func (r *run) reconcileStorage(ctx context.Context) error {
	message := "building artifact"
	if artifact := r.object.GetArtifact(); artifact != nil {
		if r.stored(r.object.UID, artifact.Revision) {
			return nil
		}
		message += ": disappeared from storage"
		r.object.Status.Artifact, r.object.Status.URL = nil, ""
	}
	reconcile.ProgressiveStatus(true, r.object, meta.ProgressingReason, "%s", message)
	conditions.Delete(r.object, sourcev1.ArtifactInStorageCondition)
	return r.patch(ctx)
}

// reconcileSource resolves the revision, verifies it where that is due, and
// pulls it.
func (r *run) reconcileSource(ctx context.Context) (string, error) {
	object := r.object
	if conditions.IsFalse(object, sourcev1.SourceVerifiedCondition) {
		conditions.Delete(object, sourcev1.SourceVerifiedCondition)
	}

	if err := r.pause(ctx); err != nil {
		return "", err
	}
	reference, revision, digest, err := r.resolve()
	if err != nil {
		return "", r.fetchFailed("failed to determine artifact digest: %s", err)
	}

	// Whatever happens next, a new revision is announced, and with it the
	// outcome of its verification is written for the first time.
	defer func() {
		if object.GetArtifact().HasRevision(revision) {
			return
		}
		message := fmt.Sprintf("new revision '%s' for '%s'", revision, reference)
		if object.GetArtifact() != nil {
			conditions.MarkTrue(object, sourcev1.ArtifactOutdatedCondition, "NewRevision", "%s", message)
		}
		reconcile.ProgressiveStatus(true, object, meta.ProgressingReason, "building artifact: %s", message)
		if patchErr := r.patch(ctx); patchErr != nil {
			r.logf("cannot announce a new revision: %v", patchErr)
		}
	}()

	if err := r.reconcileVerification(ctx, revision, digest); err != nil {
		return "", err
	}
	if !object.GetArtifact().HasRevision(revision) {
		if err := r.pause(ctx); err != nil {
			return "", err
		}
		if err := r.options.Registry.pull(); err != nil {
			return "", r.fetchFailed("failed to pull artifact from '%s': %s", object.Spec.URL, err)
		}
	}
	conditions.Delete(object, sourcev1.FetchFailedCondition)
	return revision, nil
}

// reconcileVerification verifies the signature of a new revision or for a new
// generation, and drops the condition when verification is switched off.
func (r *run) reconcileVerification(ctx context.Context, revision, digest string) error {
	object := r.object
	verify := object.Spec.Verify
	if verify == nil {
		conditions.Delete(object, sourcev1.SourceVerifiedCondition)
		return nil
	}
	if object.GetArtifact().HasRevision(revision) &&
		conditions.GetObservedGeneration(object, sourcev1.SourceVerifiedCondition) == object.Generation {
		return nil
	}
	if err := r.pause(ctx); err != nil {
		return err
	}
	if err := r.options.Registry.verify(r.repository(), digest); err != nil {
		provider := verify.Provider
		if verify.SecretRef == nil && provider == "cosign" {
			provider += " keyless"
		}
		f := failed(sourcev1.VerificationError, "failed to verify the signature using provider '%s': %s", provider, err)
		conditions.MarkFalse(object, sourcev1.SourceVerifiedCondition, f.reason, "%s", f.message)
		return f
	}
	conditions.MarkTrue(object, sourcev1.SourceVerifiedCondition, meta.SucceededReason, "verified signature of revision %s", revision)
	return nil
}

// reconcileArtifact stores the revision.
func (r *run) reconcileArtifact(revision string) {
	object := r.object
	if !object.GetArtifact().HasRevision(revision) {
		_, digest, _ := strings.Cut(revision, "@")
		if digest == "" {
			digest = revision
		}
		path := fmt.Sprintf("ocirepository/%s/%s/%s.tar.gz", object.Namespace, object.Name, digest)
		size := int64(len(digest))
		object.Status.Artifact = &meta.Artifact{
			Path: path, URL: "http://source-controller.stack.test/" + path, Revision: revision,
			// Of the tarball, which is another than the artifact's.
			Digest: Digest("tarball of " + digest), Size: &size,
			LastUpdateTime: metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
			Metadata:       map[string]string{"org.opencontainers.image.source": "https://github.com/acme/platform"},
		}
		object.Status.URL = fmt.Sprintf("http://source-controller.stack.test/ocirepository/%s/%s/latest.tar.gz", object.Namespace, object.Name)
		object.Status.ObservedIgnore = object.Spec.Ignore
		object.Status.ObservedLayerSelector = object.Spec.LayerSelector
		r.store(object.UID, revision)
	}
	conditions.Delete(object, sourcev1.ArtifactOutdatedCondition)
	conditions.MarkTrue(object, sourcev1.ArtifactInStorageCondition, meta.SucceededReason, "stored artifact for digest '%s'", revision)
}

// resolve returns what spec.ref refers to, its revision, and its digest.
func (r *run) resolve() (reference, revision, digest string, err error) {
	tag := "latest"
	if ref := r.object.Spec.Reference; ref != nil {
		if ref.Digest != "" {
			return r.repository() + "@" + ref.Digest, ref.Digest, ref.Digest, r.options.Registry.pull()
		}
		if ref.SemVer != "" {
			return "", "", "", errors.New("the test controller knows no semver, use a tag or a digest")
		}
		if ref.Tag != "" {
			tag = ref.Tag
		}
	}
	if digest, err = r.options.Registry.Resolve(tag); err != nil {
		return "", "", "", err
	}
	return r.repository() + ":" + tag, tag + "@" + digest, digest, nil
}

// repository returns spec.url without its scheme.
func (r *run) repository() string {
	return strings.TrimPrefix(r.object.Spec.URL, sourcev1.OCIRepositoryPrefix)
}

func (r *run) fetchFailed(format string, args ...any) error {
	f := failed(sourcev1.OCIPullFailedReason, format, args...)
	conditions.MarkTrue(r.object, sourcev1.FetchFailedCondition, f.reason, "%s", f.message)
	return f
}

// finish is source-controller's SummarizeAndPatch.
func (r *run) finish(ctx context.Context, err error) error {
	object := r.object
	if request, ok := meta.ReconcileAnnotationValue(object.GetAnnotations()); ok {
		object.Status.SetLastHandledReconcileRequest(request)
	}
	if reconciling := conditions.Get(object, meta.ReconcilingCondition); reconciling != nil {
		reconciling.Reason = meta.ProgressingWithRetryReason
		conditions.Set(object, reconciling)
	}
	var options []patch.Option
	if err == nil && len(object.GetConditions()) > 0 {
		options = append(options, patch.WithStatusObservedGeneration{})
	}
	conditions.Delete(object, meta.StalledCondition)
	conditions.SetSummary(object, meta.ReadyCondition,
		conditions.WithConditions(summarized...), conditions.WithNegativePolarityConditions(negative...))
	if v := conditions.Get(object, sourcev1.SourceVerifiedCondition); v != nil && v.Status == metav1.ConditionFalse {
		conditions.MarkFalse(object, meta.ReadyCondition, v.Reason, "%s", v.Message)
	}
	patchErr := r.patch(ctx, options...)
	if !object.DeletionTimestamp.IsZero() {
		// Without its finalizer the object is gone before its status is written.
		patchErr = client.IgnoreNotFound(patchErr)
	}
	return patchErr
}

func (r *run) patch(ctx context.Context, options ...patch.Option) error {
	options = append(options, patch.WithOwnedConditions{Conditions: owned}, patch.WithFieldOwner(FieldManager))
	return r.patcher.Patch(ctx, r.object, options...)
}
