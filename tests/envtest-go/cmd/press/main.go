// Command press is an operator whose bugs can be switched on: a fixture for what looks for the bugs of operators.
//
//	press --bug late-finalizer
//
// It finds its API server as controller-runtime does (--kubeconfig, $KUBECONFIG). Its manifests are in press/config.
package main

import (
	"flag"
	"os"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubewright.dev/envtest-go/press"
	pressv1 "kubewright.dev/envtest-go/press/v1"
)

func main() {
	var reconciler press.Reconciler
	flag.Var(&reconciler.Bug, "bug", "the bug that it has; none without")
	flag.StringVar(&reconciler.Ledger, "ledger", "ledger", "the namespace of the ledger")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(&reconciler); err != nil {
		ctrl.Log.Error(err, "the press ends")
		os.Exit(1)
	}
}

func run(reconciler *press.Reconciler) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := clientgoscheme.Scheme
	if err := pressv1.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	reconciler.Client, reconciler.Live = manager.GetClient(), manager.GetAPIReader()
	if err := reconciler.SetupWithManager(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
