package suite_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubewright.dev/envtest-go/harness"
)

func TestAMergePatchSendsOnlyWhatDiffers(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	before := made.DeepCopy()
	made.Spec.Litres = 9
	made.Labels = map[string]string{"thirsty": "yes"}
	harness.Must(t, api.Patch(t.Context(), made, client.MergeFrom(before)))
	if made.Spec.Litres != 9 || made.Labels["thirsty"] != "yes" || made.Generation != 2 {
		t.Errorf("patched: %+v", made)
	}
	harness.Must(t, api.Patch(t.Context(), made, client.MergeFrom(made.DeepCopy())))
	if made.Generation != 2 {
		t.Errorf("an empty patch changes nothing")
	}
}

func TestAMergePatchWithALockConflicts(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	stale := made.DeepCopy()
	made.Spec.Litres = 3
	harness.Must(t, api.Update(t.Context(), made))
	changed := stale.DeepCopy()
	changed.Spec.Litres = 4
	patch := client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})
	if err := api.Patch(t.Context(), changed, patch); !apierrors.IsConflict(err) {
		t.Errorf("the answer was: %v", err)
	}
}

func TestAStrategicPatchMergesListsByTheirKey(t *testing.T) {
	made := created(t, deployment(namespace(t), "web"))
	before := made.DeepCopy()
	made.Spec.Template.Spec.Containers = append(made.Spec.Template.Spec.Containers,
		corev1.Container{Name: "sidecar", Image: "example.com/sidecar:1"})
	made.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "1"}}
	harness.Must(t, api.Patch(t.Context(), made, client.StrategicMergeFrom(before)))

	raw := client.RawPatch(types.StrategicMergePatchType, []byte(
		`{"spec":{"template":{"spec":{"containers":[{"name":"main","$patch":"delete"}]}}}}`))
	harness.Must(t, api.Patch(t.Context(), made, raw))
	var names []string
	for _, container := range made.Spec.Template.Spec.Containers {
		names = append(names, container.Name)
	}
	if !slices.Equal(names, []string{"sidecar"}) {
		t.Errorf("containers: %v", names)
	}
}

func TestAStrategicPatchIsNotForCustomResources(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	err := api.Patch(t.Context(), made, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"litres":1}}`)))
	if !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("the answer was: %v", err)
	}
}

func TestAJSONPatchTestsAndChanges(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	patch := func(operations string) error {
		return api.Patch(t.Context(), made, client.RawPatch(types.JSONPatchType, []byte(operations)))
	}
	harness.Must(t, patch(`[{"op":"test","path":"/spec/litres","value":2},{"op":"replace","path":"/spec/litres","value":6}]`))
	if made.Spec.Litres != 6 {
		t.Errorf("litres: %d", made.Spec.Litres)
	}
	if err := patch(`[{"op":"test","path":"/spec/litres","value":2}]`); !apierrors.IsInvalid(err) {
		t.Errorf("a test that fails: %v", err)
	}
	err := patch(`[{"op":"remove","path":"/spec/nothing"}]`)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the server rejected our request due to an error in our request") {
		t.Errorf("a path that is not there: %v", err)
	}
}
