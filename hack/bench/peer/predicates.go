package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// predicates are those of Gardener's DefaultPredicates for an Infrastructure of one type.
func predicates(reader client.Reader, kind string) predicate.Predicate {
	return predicate.And(hasType(kind), shootNotFailed(reader), requested())
}

func hasType(kind string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		infrastructure, ok := obj.(*Infrastructure)
		if !ok {
			return false
		}
		class := infrastructure.Spec.Class
		return infrastructure.Spec.Type == kind && (class == nil || *class == "" || *class == "shoot")
	})
}

func shootNotFailed(reader client.Reader) predicate.Predicate {
	passes := func(obj client.Object) bool {
		ctx := context.Background()
		namespace := &corev1.Namespace{}
		if err := reader.Get(ctx, client.ObjectKey{Name: obj.GetNamespace()}, namespace); err != nil {
			return true
		}
		if namespace.Labels["gardener.cloud/role"] != "shoot" {
			return true
		}
		shoot, err := readShoot(ctx, reader, obj.GetNamespace())
		return err == nil && !shoot.failed()
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return passes(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return passes(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func requested() predicate.Predicate {
	asked := func(obj client.Object) bool {
		switch obj.GetAnnotations()[operation] {
		case "reconcile", "restore", "migrate":
			return true
		}
		return false
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			last := e.Object.(*Infrastructure).Status.LastOperation
			return asked(e.Object) || e.Object.GetDeletionTimestamp() != nil ||
				last == nil || last.State != "Succeeded"
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if asked(e.ObjectNew) {
				return true
			}
			before, after := e.ObjectOld.(*Infrastructure), e.ObjectNew.(*Infrastructure)
			return after.DeletionTimestamp != nil && equality.Semantic.DeepEqual(before.Status, after.Status)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
