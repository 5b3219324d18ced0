package suite_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       pod("", "", nil).Spec,
			},
		},
	}
}

func TestATypedClientWritesAndReadsABuiltInKind(t *testing.T) {
	made := created(t, deployment(namespace(t), "web"))
	if *made.Spec.Replicas != 1 || made.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways ||
		made.Spec.Strategy.RollingUpdate.MaxSurge.String() != "25%" || made.Generation != 1 {
		t.Errorf("what is answered has its defaults: %+v", made.Spec)
	}
	if err := api.Create(t.Context(), deployment(made.Namespace, "web")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one: %v", err)
	}

	stale := made.DeepCopy()
	replicas := int32(3)
	made.Spec.Replicas = &replicas
	harness.Must(t, api.Update(t.Context(), made))
	if made.Generation != 2 {
		t.Errorf("generation %d", made.Generation)
	}
	stale.Spec.Replicas = new(int32)
	if err := api.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("an update of what has changed since: %v", err)
	}

	var read appsv1.Deployment
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(made), &read))
	if *read.Spec.Replicas != 3 || read.UID != made.UID || read.ResourceVersion != made.ResourceVersion {
		t.Errorf("read: %+v", read.ObjectMeta)
	}
	harness.Must(t, api.Delete(t.Context(), made))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(made), &read); !apierrors.IsNotFound(err) {
		t.Errorf("after its end: %v", err)
	}
}

func TestAnImmutableFieldStays(t *testing.T) {
	made := created(t, deployment(namespace(t), "web"))
	made.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
	made.Spec.Template.Labels = map[string]string{"app": "other"}
	err := api.Update(t.Context(), made)
	if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) {
		t.Errorf("the answer was: %v", err)
	}
}

func TestAnUnstructuredClientWritesAndReadsWhatATypedOneDoes(t *testing.T) {
	space := namespace(t)
	made := unstructuredPlant(space, "fern", map[string]any{"species": "fern"})
	harness.Must(t, api.Create(t.Context(), made))
	harness.Must(t, unstructured.SetNestedField(made.Object, "sun", "spec", "bed"))
	harness.Must(t, api.Update(t.Context(), made))

	var typed gardenv1.Plant
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(made), &typed))
	if typed.Spec.Bed != "sun" || typed.Generation != 2 {
		t.Errorf("typed: %+v", typed)
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(gardenv1.GroupVersion.WithKind("PlantList"))
	harness.Must(t, api.List(t.Context(), all, client.InNamespace(space)))
	if len(all.Items) != 1 || all.Items[0].GetKind() != "Plant" || all.GetResourceVersion() == "" {
		t.Errorf("list: %+v", all)
	}
}

func TestAMetadataOnlyClientSeesAndPatchesMetadata(t *testing.T) {
	space := namespace(t)
	created(t, configMap(space, "settings", map[string]string{"colour": "green"}))
	only := &metav1.PartialObjectMetadata{}
	only.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "settings"}, only))
	if only.UID == "" || only.Kind != "ConfigMap" {
		t.Errorf("metadata: %+v", only)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"yes"}}}`))
	harness.Must(t, api.Patch(t.Context(), only, patch))
	if only.Labels["seen"] != "yes" {
		t.Errorf("labels: %v", only.Labels)
	}

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	harness.Must(t, api.List(t.Context(), list, client.InNamespace(space), client.MatchingLabels{"seen": "yes"}))
	if len(list.Items) != 1 || list.Items[0].Name != "settings" {
		t.Errorf("list: %+v", list.Items)
	}
	harness.Must(t, api.Delete(t.Context(), only))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(only), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its end: %v", err)
	}
}

func TestAGeneratedClientsetWorksBeside(t *testing.T) {
	space := namespace(t)
	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	secrets := set.CoreV1().Secrets(space)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "seed-"}, StringData: map[string]string{"kind": "poppy"},
	}
	made, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	harness.Must(t, err)
	if string(made.Data["kind"]) != "poppy" || made.Type != corev1.SecretTypeOpaque || len(made.Name) != len("seed-")+5 {
		t.Errorf("secret: %+v", made)
	}
	all, err := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "type=Opaque"})
	harness.Must(t, err)
	if len(all.Items) != 1 {
		t.Errorf("%d secrets", len(all.Items))
	}
	made.Type = corev1.SecretTypeBasicAuth
	if _, err := secrets.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("the type of a secret stays: %v", err)
	}
}

func TestListsAreOfLabelsAndFields(t *testing.T) {
	space := namespace(t)
	for name, bed := range map[string]string{"aloe": "sun", "fern": "shade", "ivy": "shade"} {
		made := plant(space, name)
		made.Spec.Bed = bed
		made.Labels = map[string]string{"bed": bed, "name": name}
		created(t, made)
	}
	names := func(options ...client.ListOption) (names []string) {
		var list gardenv1.PlantList
		harness.Must(t, api.List(t.Context(), &list, append(options, client.InNamespace(space))...))
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names
	}
	notIvy, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: "NotIn", Values: []string{"ivy"}}},
	})
	harness.Must(t, err)
	for _, asked := range []struct {
		option client.ListOption
		wanted []string
	}{
		{client.MatchingLabels{"bed": "shade"}, []string{"fern", "ivy"}},
		{client.HasLabels{"bed"}, []string{"aloe", "fern", "ivy"}},
		{client.MatchingLabelsSelector{Selector: notIvy}, []string{"aloe", "fern"}},
		{client.MatchingFields{"metadata.name": "ivy"}, []string{"ivy"}},
		{client.MatchingFields{"spec.bed": "sun"}, []string{"aloe"}},
		{client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("spec.bed", "sun")}, []string{"fern", "ivy"}},
	} {
		if got := names(asked.option); !slices.Equal(got, asked.wanted) {
			t.Errorf("%v lists %v", asked.option, got)
		}
	}
	err = api.List(t.Context(), &gardenv1.PlantList{}, client.MatchingFields{"spec.species": "fern"})
	if !apierrors.IsBadRequest(err) || err.Error() != "field label not supported: spec.species" {
		t.Errorf("a field that is not selectable: %v", err)
	}
}

func TestCreateOrUpdateWritesOnlyWhatDiffers(t *testing.T) {
	wanted := plant(namespace(t), "fern")
	want := func() error { wanted.Spec.Litres = 7; return nil }
	for _, result := range []controllerutil.OperationResult{
		controllerutil.OperationResultCreated, controllerutil.OperationResultNone,
	} {
		got, err := controllerutil.CreateOrUpdate(t.Context(), api, wanted, want)
		harness.Must(t, err)
		if got != result {
			t.Errorf("%s instead of %s", got, result)
		}
	}
	got, err := controllerutil.CreateOrPatch(t.Context(), api, wanted, func() error {
		wanted.Spec.Litres = 8
		meta.SetStatusCondition(&wanted.Status.Conditions, metav1.Condition{Type: "Wet", Status: "True", Reason: "Rain"})
		return nil
	})
	harness.Must(t, err)
	if got != controllerutil.OperationResultUpdatedStatus || wanted.Spec.Litres != 8 || len(wanted.Status.Conditions) != 1 {
		t.Errorf("%s: %+v", got, wanted)
	}
}
