package suite_test

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"kubewright.dev/envtest-go/harness"
)

// withControllers is a client of an environment with built-in controllers, which only Kubewright has, and of its programs only
// the command: KUBE_APISERVER_WITH_CONTROLLERS says where that is.
func withControllers(t *testing.T, selection string) client.Client {
	t.Helper()
	harness.OnlyOnKubewright(t, config, "KUBEWRIGHT_CONTROLLERS switches controllers on, and kube-apiserver brings none along")
	if command := os.Getenv("KUBE_APISERVER_WITH_CONTROLLERS"); command != "" {
		t.Setenv("TEST_ASSET_KUBE_APISERVER", command)
	}
	t.Setenv("KUBEWRIGHT_CONTROLLERS", selection)
	return harness.Client(t, harness.Start(t, &envtest.Environment{CRDDirectoryPaths: []string{"../manifests/crds"}}))
}

func eventuallyGone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	harness.Eventually(t, object.GetName()+" is gone", func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// family is an owner and what it owns, one of which blocks its deletion.
func family(t *testing.T, c client.Client) (owner, owned *corev1.ConfigMap) {
	t.Helper()
	owner, owned = configMap("default", "owner", nil), configMap("default", "owned", nil)
	harness.Must(t, c.Create(t.Context(), owner))
	harness.Must(t, controllerutil.SetControllerReference(owner, owned, c.Scheme()))
	harness.Must(t, c.Create(t.Context(), owned))
	return owner, owned
}

func TestTheGarbageCollectorDeletesWhatNobodyOwns(t *testing.T) {
	c := withControllers(t, "garbagecollector")
	owner, owned := family(t, c)
	harness.Must(t, c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	eventuallyGone(t, c, owned)

	owner, owned = family(t, c)
	harness.Must(t, c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	eventuallyGone(t, c, owner)
	eventuallyGone(t, c, owned)

	owner, owned = family(t, c)
	harness.Must(t, c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	eventuallyGone(t, c, owner)
	harness.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(owned), owned))
	if len(owned.OwnerReferences) != 0 {
		t.Errorf("an orphan has no owner: %+v", owned.OwnerReferences)
	}
}

func TestTheNamespaceControllerEmptiesAndEnds(t *testing.T) {
	c := withControllers(t, "namespace")
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "brief"}}
	harness.Must(t, c.Create(t.Context(), space))
	harness.Must(t, c.Create(t.Context(), plant("brief", "fern")))
	harness.Must(t, c.Delete(t.Context(), space))
	eventuallyGone(t, c, space)
}

func TestControllersThatWereNotAskedForStayOff(t *testing.T) {
	c := withControllers(t, "namespace")
	web := deployment("default", "web")
	harness.Must(t, c.Create(t.Context(), web))
	owner, owned := family(t, c)
	harness.Must(t, c.Delete(t.Context(), owner))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "brief"}}
	harness.Must(t, c.Create(t.Context(), space))
	harness.Must(t, c.Delete(t.Context(), space))
	eventuallyGone(t, c, space)
	harness.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(owned), owned))
	harness.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.Status.ObservedGeneration != 0 {
		t.Errorf("nobody looks at deployments: %+v", web.Status)
	}
}

func TestAllControllersMakeADeploymentReady(t *testing.T) {
	c := withControllers(t, "*")
	t.Setenv("KUBEWRIGHT_NODES", "1")
	web := deployment("default", "web")
	harness.Must(t, c.Create(t.Context(), web))
	harness.Eventually(t, "its replica set is made", func() error {
		harness.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), web))
		if web.Status.Replicas != 1 {
			return fmt.Errorf("status: %+v", web.Status)
		}
		return nil
	})
}
