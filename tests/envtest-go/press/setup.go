package press

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pressv1 "kubewright.dev/envtest-go/press/v1"
)

// SetupWithManager sets up the controller with the Manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	of := ctrl.NewControllerManagedBy(mgr).Named("press").For(&pressv1.Page{}, builder.WithPredicates(r.ofPages()))
	if r.Bug != MissedDelete {
		of.Owns(&corev1.ConfigMap{}, builder.WithPredicates(r.ofChildren()))
		of.Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.page), builder.WithPredicates(r.ofChildren()))
		if r.HasPrinters {
			of.Owns(&corev1.Pod{})
		}
	}
	return of.Complete(r)
}

// ofPages says which changes of a page are looked at: all, but for a bug.
func (r *Reconciler) ofPages() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, is := e.ObjectOld.(*pressv1.Page)
		now, isToo := e.ObjectNew.(*pressv1.Page)
		if r.Bug != ComparesSpecs || !is || !isToo {
			return true
		}
		return !equality.Semantic.DeepEqual(old.Spec, now.Spec) || !now.DeletionTimestamp.IsZero()
	}}
}

// ofChildren says which changes of a child are looked at: all, but for a bug.
func (r *Reconciler) ofChildren() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(e event.DeleteEvent) bool { return r.Bug != ConfirmedDeletes || !e.DeleteStateUnknown },
		// After a list its informer tells of all that is there.
		UpdateFunc: func(e event.UpdateEvent) bool {
			return r.Bug != ConfirmedDeletes || e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// page is the one that an entry of the ledger is for: <namespace>.<name>.
func (r *Reconciler) page(_ context.Context, entry client.Object) []reconcile.Request {
	namespace, name, found := strings.Cut(entry.GetName(), ".")
	if entry.GetNamespace() != r.Ledger || !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
