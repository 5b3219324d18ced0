package suite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubewright.dev/envtest-go/harness"
)

// newManager is a manager without a port of its own.
func newManager(t *testing.T, change func(*manager.Options)) manager.Manager {
	t.Helper()
	options := manager.Options{Scheme: harness.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}}
	if change != nil {
		change(&options)
	}
	made, err := manager.New(config, options)
	harness.Must(t, err)
	return made
}

func TestLeadershipIsHandedOverOnRelease(t *testing.T) {
	space := namespace(t)
	wait, renew, retry := 15*time.Second, 10*time.Second, 100*time.Millisecond
	candidate := func() manager.Manager {
		return newManager(t, func(options *manager.Options) {
			options.LeaderElection = true
			options.LeaderElectionID = "gardeners"
			options.LeaderElectionNamespace = space
			options.LeaderElectionReleaseOnCancel = true
			options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &wait, &renew, &retry
		})
	}
	first, second := candidate(), candidate()
	ctx, resign := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Start(ctx) }()
	await(t, "the first is elected", first.Elected())
	holder := leaseHolder(t, space)

	harness.Background(t, second.Start)
	select {
	case <-second.Elected():
		t.Fatal("there are two leaders")
	case <-time.After(500 * time.Millisecond):
	}
	resign()
	harness.Must(t, <-ended)
	began := time.Now()
	await(t, "the second is elected", second.Elected())
	if waited := time.Since(began); waited > wait/2 {
		t.Errorf("a lease that was released is free at once, not after %s", waited)
	}
	if now := leaseHolder(t, space); now == holder {
		t.Errorf("%s still holds the lease", now)
	}
}

func leaseHolder(t *testing.T, space string) string {
	t.Helper()
	var lease coordinationv1.Lease
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "gardeners"}, &lease))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func await(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(harness.Patience):
		t.Fatalf("%s: still not so", what)
	}
}

func TestARunnableRunsWithTheManagerAndItsErrorEndsIt(t *testing.T) {
	broken := errors.New("the hose is broken")
	m := newManager(t, nil)
	harness.Must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !m.GetCache().WaitForCacheSync(ctx) {
			return ctx.Err()
		}
		return broken
	})))
	if err := m.Start(t.Context()); !errors.Is(err, broken) {
		t.Errorf("the manager ended with: %v", err)
	}
}
