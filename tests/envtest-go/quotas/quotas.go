// Package quotas is an operator of controller-runtime, beside which docs/coming-from.md sets the same in Rust.
package quotas

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Quotas gives each Namespace with the label example.com/pods a ResourceQuota of so many pods.
type Quotas struct{ client.Client }

func (r *Quotas) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var namespace corev1.Namespace
	if err := r.Get(ctx, req.NamespacedName, &namespace); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: namespace.Name}}
	pods, ok := namespace.Labels["example.com/pods"]
	if !ok {
		return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, quota))
	}
	hard, err := resource.ParseQuantity(pods)
	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(err)
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, quota, func() error {
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: hard}
		return controllerutil.SetControllerReference(&namespace, quota, r.Scheme())
	})
	return ctrl.Result{}, err
}

func SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("quotas").
		For(&corev1.Namespace{}).Owns(&corev1.ResourceQuota{}).Complete(&Quotas{mgr.GetClient()})
}
