package suite_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

const gardener = client.FieldOwner("gardener")

// web is what a gardener's deployment is applied as.
func web(namespace string, image string) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	return appsapply.Deployment("web", namespace).WithSpec(appsapply.DeploymentSpec().
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().
			WithContainers(coreapply.Container().WithName("main").WithImage(image)))))
}

func TestATypedConfigurationIsAppliedTwice(t *testing.T) {
	space := namespace(t)
	harness.Must(t, api.Apply(t.Context(), web(space, "example.com/web:1"), gardener))
	var made appsv1.Deployment
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "web"}, &made))
	version := made.ResourceVersion

	again := web(space, "example.com/web:1")
	harness.Must(t, api.Apply(t.Context(), again, gardener))
	if *again.ResourceVersion != version {
		t.Errorf("what changes nothing writes nothing: %s, %s", version, *again.ResourceVersion)
	}
	if len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != "gardener" ||
		made.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("managed fields: %+v", made.ManagedFields)
	}
}

func TestAnotherOwnerConflictsUnlessItForces(t *testing.T) {
	space := namespace(t)
	harness.Must(t, api.Apply(t.Context(), web(space, "example.com/web:1"), gardener))
	neighbour := client.FieldOwner("neighbour")
	err := api.Apply(t.Context(), web(space, "example.com/web:2"), neighbour)
	want := `Apply failed with 1 conflict: conflict with "gardener": .spec.template.spec.containers[name="main"].image`
	if !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the answer was: %v", err)
	}
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Errorf("causes: %+v", err)
	}
	harness.Must(t, api.Apply(t.Context(), web(space, "example.com/web:2"), neighbour, client.ForceOwnership))
	harness.Must(t, api.Apply(t.Context(), web(space, "example.com/web:2"), gardener))
}

func TestWhatIsNoLongerAppliedGoes(t *testing.T) {
	space := namespace(t)
	settings := func(data map[string]string) *coreapply.ConfigMapApplyConfiguration {
		return coreapply.ConfigMap("settings", space).WithData(data)
	}
	harness.Must(t, api.Apply(t.Context(), settings(map[string]string{"a": "1", "b": "2"}), gardener))
	left := settings(map[string]string{"b": "2"})
	harness.Must(t, api.Apply(t.Context(), left, gardener))
	if len(left.Data) != 1 || left.Data["b"] != "2" {
		t.Errorf("data: %v", left.Data)
	}
}

func TestACustomResourceIsAppliedUnstructured(t *testing.T) {
	space := namespace(t)
	applied := unstructuredPlant(space, "fern", map[string]any{"species": "fern", "neighbours": []any{"moss"}})
	harness.Must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), gardener))
	second := unstructuredPlant(space, "fern", map[string]any{"species": "fern", "neighbours": []any{"ivy"}})
	harness.Must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(second), client.FieldOwner("neighbour")))

	var made gardenv1.Plant
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(applied), &made))
	slices.Sort(made.Spec.Neighbours)
	if !slices.Equal(made.Spec.Neighbours, []string{"ivy", "moss"}) {
		t.Errorf("a set has the items of all who apply: %v", made.Spec.Neighbours)
	}

	wrong := unstructuredPlant(space, "fern", map[string]any{"species": "fern", "smell": "green"})
	err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(wrong), gardener)
	if err == nil || !strings.Contains(err.Error(), `.spec.smell: field not declared in schema`) {
		t.Errorf("the answer was: %v", err)
	}
}

func TestStatusIsAppliedByItself(t *testing.T) {
	space := namespace(t)
	created(t, plant(space, "fern"))
	status := func(message string) *unstructured.Unstructured {
		made := unstructuredPlant(space, "fern", nil)
		delete(made.Object, "spec")
		made.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Wet", "status": "True", "reason": "Rain", "message": message,
			"lastTransitionTime": "2026-01-02T03:04:05Z",
		}}}
		return made
	}
	harness.Must(t, api.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status("much")), gardener))
	var made gardenv1.Plant
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "fern"}, &made))
	if len(made.Status.Conditions) != 1 || made.Status.Conditions[0].Message != "much" || made.Generation != 1 {
		t.Errorf("status: %+v", made.Status)
	}
	if first := made.ManagedFields[0]; first.Manager != "gardener" || first.Subresource != "status" {
		t.Errorf("managed fields: %+v", made.ManagedFields)
	}
}

func TestAGeneratedClientsetExtractsAndAppliesWhatItOwns(t *testing.T) {
	space := namespace(t)
	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	deployments := set.AppsV1().Deployments(space)
	options := metav1.ApplyOptions{FieldManager: string(gardener)}
	made, err := deployments.Apply(t.Context(), web(space, "example.com/web:1"), options)
	harness.Must(t, err)
	own, err := appsapply.ExtractDeployment(made, string(gardener))
	harness.Must(t, err)
	if own.Spec.Replicas != nil || *own.Spec.Template.Spec.Containers[0].Image != "example.com/web:1" {
		t.Errorf("what it owns: %+v", own.Spec)
	}
	own.Spec.WithReplicas(4)
	made, err = deployments.Apply(t.Context(), own, options)
	harness.Must(t, err)
	if *made.Spec.Replicas != 4 {
		t.Errorf("replicas: %d", *made.Spec.Replicas)
	}
}
