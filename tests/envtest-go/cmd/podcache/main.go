// Command podcache is an operator that caches all Pods and reads each once: for what that takes. `cargo xtask bench cache` runs it
// beside the same operator in Rust (benches/operator).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubewright.dev/envtest-go/harness"
)

type reader struct {
	client.Client
	expect int
	mu     sync.Mutex
	seen   map[client.ObjectKey]struct{}
}

// Reconcile reads a Pod.
func (r *reader) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.Get(ctx, req.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) < r.expect {
		if r.seen[req.NamespacedName] = struct{}{}; len(r.seen) == r.expect {
			fmt.Println("expected")
		}
	}
	return ctrl.Result{}, nil
}

func main() {
	concurrency := flag.Int("concurrency", 10, "how many are read at a time")
	expect := flag.Int("expect", 0, `print "expected" when so many Pods have been read`)
	flag.Bool("pods", true, "as for the other programs: they can do something else")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config := ctrl.GetConfigOrDie()
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: harness.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		// As little as controller-runtime can keep of a whole object; the SDK does not keep them either.
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		panic(err)
	}
	r := &reader{Client: manager.GetClient(), expect: *expect, seen: map[client.ObjectKey]struct{}{}}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: *concurrency}).Complete(r)
	if err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
