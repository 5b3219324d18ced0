// Package suite_test is what operators' test suites do with an API server, one subject a file, in one environment that
// TestMain starts. What it asserts holds for kube-apiserver; `TEST_ASSET_KUBE_APISERVER` and `TEST_ASSET_ETCD` say what
// it is asked of.
package suite_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"kubewright.dev/envtest-go/harness"
)

// What all tests share; each works in a namespace of its own.
var (
	environment *envtest.Environment
	config      *rest.Config
	api         client.WithWatch
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := runWithEnvironment(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithEnvironment(m *testing.M) (code int, err error) {
	environment = &envtest.Environment{
		Scheme:                harness.Scheme(),
		CRDDirectoryPaths:     []string{"../manifests/crds"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"../manifests/webhooks"}},
	}
	if config, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("the environment does not start: %w", err)
	}
	defer func() {
		if stopped := environment.Stop(); stopped != nil && err == nil {
			err = fmt.Errorf("the environment does not stop: %w", stopped)
		}
	}()
	if api, err = client.NewWithWatch(config, client.Options{Scheme: harness.Scheme()}); err != nil {
		return 1, err
	}
	stop, err := serveWebhooks()
	if err != nil {
		return 1, err
	}
	defer stop()
	return m.Run(), nil
}

// serveWebhooks serves the plants' webhooks where the environment says that they are, until it is told to stop.
func serveWebhooks() (stop func(), err error) {
	where := environment.WebhookInstallOptions
	served, err := manager.New(config, manager.Options{
		Scheme:  harness.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: where.LocalServingHost, Port: where.LocalServingPort, CertDir: where.LocalServingCertDir,
		}),
	})
	if err != nil {
		return nil, err
	}
	if err := addPlantWebhooks(served); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := served.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the webhooks' manager:", err)
		}
	}()
	if err := waitUntilServed(ctx, served); err != nil {
		cancel()
		return nil, err
	}
	return func() { cancel(); <-ended }, nil
}

func waitUntilServed(ctx context.Context, served manager.Manager) error {
	started := served.GetWebhookServer().StartedChecker()
	return harness.Poll(ctx, func() error { return started(nil) })
}
