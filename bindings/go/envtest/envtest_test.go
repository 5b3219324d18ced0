package envtest_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kubewright/kubewright/bindings/go"
	kwenvtest "github.com/kubewright/kubewright/bindings/go/envtest"
)

func TestMain(m *testing.M) {
	// The links go where this run can be sure that nothing is yet.
	cache, err := os.MkdirTemp("", "kubewright-envtest-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_CACHE_HOME", cache)
	// What points elsewhere does not count.
	_ = os.Setenv("KUBEBUILDER_ASSETS", "/nowhere")
	_ = os.Setenv("TEST_ASSET_ETCD", "/nowhere/etcd")
	code := m.Run()
	removeAll(cache)
	os.Exit(code)
}

func TestASuiteRunsOnKubewrightWithOneLine(t *testing.T) {
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{plants()}}
	must(t, kwenvtest.Use(t.Context(), environment, kwenvtest.Options{}))
	config := start(t, environment)

	objects := clientOf(t, config)
	plant := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "garden.example.com/v1", "kind": "Plant",
		"metadata": map[string]any{"namespace": "default", "name": "rose"},
	}}
	must(t, objects.Create(t.Context(), plant))
	must(t, objects.Get(t.Context(), client.ObjectKeyFromObject(plant), plant))
	if version := serverVersion(t, config); !strings.Contains(version, "kubewright") {
		t.Errorf("the server is %s", version)
	}
}

func TestASuiteAdvancesTimeAddsFaultsAndResets(t *testing.T) {
	environment := &envtest.Environment{}
	must(t, kwenvtest.Use(t.Context(), environment, kwenvtest.Options{Clock: "2030-01-01T00:00:00Z,speed=0"}))
	config := start(t, environment)
	admin, err := kubewright.NewAdmin(config)
	must(t, err)

	before, err := admin.Now(t.Context())
	must(t, err)
	after, err := admin.Advance(t.Context(), time.Hour)
	must(t, err)
	if after.Sub(before) != time.Hour || after.Year() != 2030 {
		t.Errorf("it was %s and is %s", before, after)
	}
	_, err = admin.AddFault(t.Context(), kubewright.FaultRule{
		Match: kubewright.Match{Verbs: []string{"create"}}, Fault: kubewright.ErrorStatus{Code: 503},
	})
	must(t, err)
	objects := clientOf(t, config)
	if err := objects.Create(t.Context(), configMap()); err == nil {
		t.Error("the fault did not strike")
	}
	must(t, objects.Create(t.Context(), configMap()))
	must(t, admin.Reset(t.Context()))
	must(t, objects.Create(t.Context(), configMap()))
}

func TestNothingRunsByItselfUnlessItIsAskedFor(t *testing.T) {
	for _, options := range []kwenvtest.Options{{}, {Controllers: []string{"*"}, Nodes: 2}} {
		environment := &envtest.Environment{}
		must(t, kwenvtest.Use(t.Context(), environment, options))
		objects := clientOf(t, start(t, environment))
		must(t, objects.Create(t.Context(), web()))
		if options.Nodes == 0 {
			nodes := &corev1.NodeList{}
			must(t, objects.List(t.Context(), nodes))
			if len(nodes.Items) != 0 {
				t.Errorf("there are nodes: %v", nodes.Items)
			}
			continue
		}
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				read := web()
				err := objects.Get(ctx, client.ObjectKeyFromObject(read), read)
				return read.Status.ReadyReplicas == 2, err
			})
		must(t, err)
	}
}

func TestTheVersionIsTheOneThatIsAskedFor(t *testing.T) {
	for _, version := range []string{"1.35", "1.36.x", "<1.37"} {
		environment := &envtest.Environment{}
		must(t, kwenvtest.Use(t.Context(), environment, kwenvtest.Options{KubernetesVersion: version}))
		want := "v1.36."
		if version == "1.35" {
			want = "v1.35."
		}
		if served := serverVersion(t, start(t, environment)); !strings.HasPrefix(served, want) {
			t.Errorf("%s is %s", version, served)
		}
	}
}

func TestWhatMakesNoSenseIsRefusedWithTheRemedy(t *testing.T) {
	yes := true
	for want, environment := range map[string]*envtest.Environment{
		"DownloadBinaryAssets": {DownloadBinaryAssets: true},
		"UseExistingCluster":   {UseExistingCluster: &yes},
	} {
		if err := kwenvtest.Use(t.Context(), environment, kwenvtest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
	err := kwenvtest.Use(t.Context(), &envtest.Environment{}, kwenvtest.Options{KubernetesVersion: "1.30"})
	if err == nil || !strings.Contains(err.Error(), "1.37") {
		t.Errorf("the supported versions are not named: %v", err)
	}
	t.Run("two versions", func(t *testing.T) {
		t.Setenv("KUBEWRIGHT_KUBERNETES_VERSION", "1.36")
		err := kwenvtest.Use(t.Context(), &envtest.Environment{}, kwenvtest.Options{KubernetesVersion: "1.35"})
		if err == nil || !strings.Contains(err.Error(), "KUBEWRIGHT_KUBERNETES_VERSION") {
			t.Errorf("the variable is not named: %v", err)
		}
	})
	t.Setenv("KUBEWRIGHT", "")
	t.Setenv("PATH", "")
	if err := kwenvtest.Use(t.Context(), &envtest.Environment{}, kwenvtest.Options{}); err == nil || !strings.Contains(err.Error(), "KUBEWRIGHT") {
		t.Errorf("the ways to the program are not named: %v", err)
	}
}

func start(t *testing.T, environment *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := environment.Start()
	must(t, err)
	t.Cleanup(func() { must(t, environment.Stop()) })
	return config
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	made, err := client.New(config, client.Options{})
	must(t, err)
	return made
}

func serverVersion(t *testing.T, config *rest.Config) string {
	t.Helper()
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	version, err := asked.ServerVersion()
	must(t, err)
	return version.GitVersion
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
}

func web() *appsv1.Deployment {
	labels, replicas := map[string]string{"app": "web"}, int32(2)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
			},
		},
	}
}

func plants() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "plants.garden.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "garden.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "plants", Singular: "plant", Kind: "Plant", ListKind: "PlantList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// removeAll removes a folder with those of links in it, which are read-only.
func removeAll(folder string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	_ = os.RemoveAll(folder)
}
