// Package harness starts envtest environments for the suites and has what all of them say again and again.
package harness

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	gardenv1alpha1 "kubewright.dev/envtest-go/garden/v1alpha1"
)

// Patience is how long Eventually waits before it fails the test.
const Patience = 15 * time.Second

// Scheme knows the built-in kinds and the garden's.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardenv1.AddToScheme, gardenv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// Start starts an environment that is stopped when the test ends.
func Start(t testing.TB, environment *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("the environment does not start: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("the environment does not stop: %v", err)
		}
	})
	return config
}

// Client is a client of the suites' scheme.
func Client(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	made, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	return made
}

// Namespace is a new namespace; its name is the answer.
func Namespace(t testing.TB, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "garden-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatalf("no namespace: %v", err)
	}
	return namespace.Name
}

// Poll asks until there is no error any more; the last one is the answer when patience ends.
func Poll(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(Patience)
	for {
		err := ask()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Eventually polls, and fails the test when patience ends.
func Eventually(t testing.TB, what string, ask func() error) {
	t.Helper()
	if err := Poll(context.Background(), ask); err != nil {
		t.Fatalf("%s: still not so: %v", what, err)
	}
}

// Must fails the test when there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Background runs it until the test ends, and waits for its end.
func Background(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("what ran in the background ended with: %v", err)
		}
	})
}

// OnlyOnKubewright skips the test on a real kube-apiserver, which has no controllers beside it.
func OnlyOnKubewright(t testing.TB, config *rest.Config, why string) {
	t.Helper()
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	Must(t, err)
	version, err := asked.ServerVersion()
	Must(t, err)
	if !strings.Contains(version.GitVersion, "kubewright") {
		t.Skipf("%s; this server is %s", why, version.GitVersion)
	}
}
