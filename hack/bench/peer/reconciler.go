package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	finalizer     = "extensions.gardener.cloud/infrastructure"
	operation     = "gardener.cloud/operation"
	forceDeletion = "confirmation.gardener.cloud/force-deletion"
)

// reconciler makes the calls of Gardener's extension library for an Infrastructure, in its order,
// around an actuator that does nothing. Where the library reads the object from the cache a second
// time, and so now and then meets a conflict, this one goes on with the answer of its own patch.
type reconciler struct {
	client client.Client
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := &Infrastructure{}
	if err := r.client.Get(ctx, request.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch obj.Annotations[operation] {
	case "wait-for-state":
		return reconcile.Result{}, nil
	case "reconcile":
		before := obj.DeepCopyObject().(*Infrastructure)
		delete(obj.Annotations, operation)
		if err := r.client.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	shoot, err := readShoot(ctx, r.client, obj.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if shoot.failed() {
		return reconcile.Result{}, nil
	}
	if obj.DeletionTimestamp != nil {
		return reconcile.Result{}, r.delete(ctx, obj, shoot)
	}
	return reconcile.Result{}, r.reconcile(ctx, obj)
}

func (r *reconciler) reconcile(ctx context.Context, obj *Infrastructure) error {
	kind := "Reconcile"
	if last := obj.Status.LastOperation; last == nil || (last.Type == "Create" && last.State != "Succeeded") {
		kind = "Create"
	}
	if !controllerutil.ContainsFinalizer(obj, finalizer) {
		before := obj.DeepCopyObject().(*Infrastructure)
		controllerutil.AddFinalizer(obj, finalizer)
		if err := r.patchLocked(ctx, obj, before); err != nil {
			return err
		}
	}
	if err := r.report(ctx, obj, kind, "Processing", 1); err != nil {
		return err
	}
	return r.report(ctx, obj, kind, "Succeeded", 100)
}

func (r *reconciler) delete(ctx context.Context, obj *Infrastructure, shoot *Shoot) error {
	if !controllerutil.ContainsFinalizer(obj, finalizer) {
		return nil
	}
	if err := r.report(ctx, obj, "Delete", "Processing", 1); err != nil {
		return err
	}
	if !shoot.forced() {
		return fmt.Errorf("the benchmark deletes by force only, and %s is not forced", obj.Namespace)
	}
	if err := r.report(ctx, obj, "Delete", "Succeeded", 100); err != nil {
		return err
	}
	before := obj.DeepCopyObject().(*Infrastructure)
	controllerutil.RemoveFinalizer(obj, finalizer)
	return client.IgnoreNotFound(r.patchLocked(ctx, obj, before))
}

func (r *reconciler) patchLocked(ctx context.Context, obj, before *Infrastructure) error {
	return r.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *reconciler) report(ctx context.Context, obj *Infrastructure, kind, state string, progress int32) error {
	before := obj.DeepCopyObject().(*Infrastructure)
	obj.Status.LastOperation = &LastOperation{
		Type: kind, State: state, Progress: progress, LastUpdateTime: v1.Now(),
		Description: "Operation of Infrastructure: " + state,
	}
	if state == "Succeeded" {
		obj.Status.LastError = nil
		obj.Status.ObservedGeneration = obj.Generation
	}
	return r.client.Status().Patch(ctx, obj, client.MergeFrom(before))
}

// readShoot reads the Cluster of a namespace from the cache, and the shoot inside it.
func readShoot(ctx context.Context, reader client.Reader, namespace string) (*Shoot, error) {
	cluster := &Cluster{}
	if err := reader.Get(ctx, client.ObjectKey{Name: namespace}, cluster); err != nil {
		return nil, err
	}
	shoot := &Shoot{}
	return shoot, json.Unmarshal(cluster.Spec.Shoot.Raw, shoot)
}

func (s *Shoot) failed() bool {
	return s.Status.LastOperation != nil && s.Status.LastOperation.State == "Failed"
}

func (s *Shoot) forced() bool {
	forced, err := strconv.ParseBool(s.Metadata.Annotations[forceDeletion])
	return err == nil && forced
}
