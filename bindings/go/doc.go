// Package kubewright starts Kubernetes control planes for tests, in milliseconds and without containers.
//
// A test takes a cluster with [ForTest] and gives its [Cluster.RESTConfig] to any client of Kubernetes:
//
//	func TestDeploymentsGetPods(t *testing.T) {
//		cluster := kubewright.ForTest(t, kubewright.Options{})
//		clients := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
//		...
//	}
//
// A cluster has an API server, the built-in controllers, a scheduler and simulated nodes. Beyond that its [Admin] lets
// cluster time pass, makes requests fail, tells who called what, and resets the cluster in about a millisecond.
//
// The kubewright program is looked for in the environment variable KUBEWRIGHT (its path), then on the PATH.
//
// Suites that use controller-runtime's envtest keep it: see the package envtest below this one.
package kubewright
