// Command press is an operator whose bugs can be switched on: a fixture for what looks for the bugs of operators.
//
//	press --bug late-finalizer
//
// It finds its API server as controller-runtime does (--kubeconfig, $KUBECONFIG). Its manifests are in press/config, with those of
// its printers and its webhooks beside.
package main

import (
	"flag"
	"os"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"kubewright.dev/envtest-go/press"
	pressv1 "kubewright.dev/envtest-go/press/v1"
)

func main() {
	reconciler := press.Reconciler{Settle: time.Second}
	flag.Var(&reconciler.Bug, "bug", "the bug that it has; none without")
	flag.StringVar(&reconciler.Ledger, "ledger", "ledger", "the namespace of the ledger")
	flag.BoolVar(&reconciler.HasPrinters, "printers", false, "print pages on pods")
	webhookPort := flag.Int("webhook-port", 0, "the port of its webhooks; none without")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(&reconciler, *webhookPort); err != nil {
		ctrl.Log.Error(err, "the press ends")
		os.Exit(1)
	}
}

func run(reconciler *press.Reconciler, webhookPort int) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := clientgoscheme.Scheme
	if err := pressv1.AddToScheme(scheme); err != nil {
		return err
	}
	options := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	if webhookPort != 0 {
		options.WebhookServer = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: webhookPort})
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	if webhookPort != 0 {
		manager.GetWebhookServer().Register("/admit", press.Admit())
		manager.GetWebhookServer().Register("/default", press.Default())
	}
	reconciler.Client, reconciler.Live = manager.GetClient(), manager.GetAPIReader()
	if err := reconciler.SetupWithManager(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
