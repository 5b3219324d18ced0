package suite_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"kubewright.dev/envtest-go/harness"
)

func TestAClusterIsNewAgainAfterARestart(t *testing.T) {
	again := &envtest.Environment{}
	for range 2 {
		config, err := again.Start()
		harness.Must(t, err)
		c := harness.Client(t, config)
		harness.Must(t, c.Create(t.Context(), configMap("default", "mark", nil)))
		harness.Must(t, again.Stop())
		again = &envtest.Environment{}
	}
}

func TestEnvironmentsInParallelDoNotSeeEachOther(t *testing.T) {
	const number = 3
	var waiting sync.WaitGroup
	var lock sync.Mutex
	ports := map[string]bool{}
	for range number {
		waiting.Go(func() {
			alone := &envtest.Environment{CRDDirectoryPaths: []string{"../manifests/crds"}}
			config, err := alone.Start()
			if err != nil {
				t.Errorf("it does not start: %v", err)
				return
			}
			if err := harness.Client(t, config).Create(t.Context(), configMap("default", "mark", nil)); err != nil {
				t.Errorf("it is not alone: %v", err)
			}
			lock.Lock()
			ports[config.Host] = true
			lock.Unlock()
			if err := alone.Stop(); err != nil {
				t.Errorf("it does not stop: %v", err)
			}
		})
	}
	waiting.Wait()
	if len(ports) != number {
		t.Errorf("ports: %v", ports)
	}
}

func TestAfterStopNothingIsLeft(t *testing.T) {
	gone := &envtest.Environment{}
	config, err := gone.Start()
	harness.Must(t, err)
	folder := gone.ControlPlane.GetAPIServer().CertDir
	if _, err := os.Stat(filepath.Join(folder, "apiserver.crt")); err != nil {
		t.Errorf("the certificates: %v", err)
	}
	c := harness.Client(t, config)
	harness.Must(t, c.List(t.Context(), &corev1.NamespaceList{}))
	harness.Must(t, gone.Stop())
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	if err := c.List(t.Context(), &corev1.NamespaceList{}); err == nil {
		t.Error("it still answers")
	}
}

func TestWhatANewClusterHas(t *testing.T) {
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		harness.Must(t, api.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}))
	}
	var service corev1.Service
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &service))
	if service.Spec.ClusterIP != "10.0.0.1" {
		t.Errorf("the first address of --service-cluster-ip-range: %+v", service.Spec)
	}
}

func TestFlagsOfTheServerAreFollowed(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	harness.Must(t, os.WriteFile(tokens, []byte("s3cret,toni,1001,\"system:masters\"\n"), 0o600))
	strict := &envtest.Environment{}
	strict.ControlPlane.GetAPIServer().Configure().
		Set("disable-admission-plugins").
		Set("token-auth-file", tokens).
		Append("enable-admission-plugins", "AlwaysPullImages")
	config := harness.Start(t, strict)
	toni := rest.AnonymousClientConfig(config)
	toni.BearerToken = "s3cret"
	c := harness.Client(t, toni)
	err := c.Create(t.Context(), pod("default", "early", nil))
	if !apierrors.IsForbidden(err) {
		t.Errorf("ServiceAccount is on and nobody makes accounts: %v", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	harness.Must(t, c.Create(t.Context(), account))
	made := pod("default", "late", nil)
	harness.Must(t, c.Create(t.Context(), made))
	if made.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways || made.Spec.ServiceAccountName != "default" {
		t.Errorf("pod: %+v", made.Spec)
	}
}

func TestTheKubeconfigOfTheEnvironmentWorks(t *testing.T) {
	read, err := clientcmd.RESTConfigFromKubeConfig(environment.KubeConfig)
	harness.Must(t, err)
	harness.Must(t, harness.Client(t, read).List(t.Context(), &corev1.NamespaceList{}))
}
