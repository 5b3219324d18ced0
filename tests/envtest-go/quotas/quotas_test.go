package quotas_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubewright.dev/envtest-go/harness"
	"kubewright.dev/envtest-go/quotas"
)

func TestANamespaceHasTheQuotaOfItsLabel(t *testing.T) {
	config := harness.Start(t, &envtest.Environment{})
	api := harness.Client(t, config)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: harness.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := quotas.SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "team-", Labels: map[string]string{"example.com/pods": "5"},
	}}
	if err := api.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	var quota corev1.ResourceQuota
	read := func() error { return api.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "team"}, &quota) }
	hasFive := func() error {
		if err := read(); err != nil {
			return err
		}
		if pods := quota.Spec.Hard.Pods(); pods.Value() != 5 {
			return fmt.Errorf("%v pods", pods)
		}
		return nil
	}
	if err := harness.Poll(ctx, hasFive); err != nil {
		t.Fatal(err)
	}
	delete(namespace.Labels, "example.com/pods")
	if err := api.Update(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	isGone := func() error {
		if err := read(); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	}
	if err := harness.Poll(ctx, isGone); err != nil {
		t.Fatal(err)
	}
}
