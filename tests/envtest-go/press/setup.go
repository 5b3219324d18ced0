package press

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pressv1 "kubewright.dev/envtest-go/press/v1"
)

// SetupWithManager sets up the controller with the Manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	builder := ctrl.NewControllerManagedBy(mgr).Named("press").For(&pressv1.Page{})
	if r.Bug != MissedDelete {
		builder.Owns(&corev1.ConfigMap{}).Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.page))
	}
	return builder.Complete(r)
}

// page is the one that an entry of the ledger is for: <namespace>.<name>.
func (r *Reconciler) page(_ context.Context, entry client.Object) []reconcile.Request {
	namespace, name, found := strings.Cut(entry.GetName(), ".")
	if entry.GetNamespace() != r.Ledger || !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
