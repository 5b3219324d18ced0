package suite_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

func TestAFinalizerHoldsAnObjectUntilItIsTakenAway(t *testing.T) {
	held := plant(namespace(t), "fern")
	controllerutil.AddFinalizer(held, "garden.kubewright.dev/compost")
	created(t, held)
	harness.Must(t, api.Delete(t.Context(), held))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	if held.DeletionTimestamp == nil || *held.DeletionGracePeriodSeconds != 0 || held.Generation != 2 {
		t.Errorf("it is marked: %+v", held.ObjectMeta)
	}
	more := held.DeepCopy()
	controllerutil.AddFinalizer(more, "garden.kubewright.dev/late")
	if err := api.Update(t.Context(), more); !apierrors.IsInvalid(err) {
		t.Errorf("no finalizer is added to what goes: %v", err)
	}
	controllerutil.RemoveFinalizer(held, "garden.kubewright.dev/compost")
	harness.Must(t, api.Update(t.Context(), held))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(held), held); !apierrors.IsNotFound(err) {
		t.Errorf("then it goes: %v", err)
	}
}

func TestPreconditionsOfADeletionAreChecked(t *testing.T) {
	made := created(t, configMap(namespace(t), "settings", nil))
	wrong, old := types.UID("0c0ffee0-0000-4000-8000-000000000000"), "1"
	for _, condition := range []client.Preconditions{{UID: &wrong}, {ResourceVersion: &old}} {
		if err := api.Delete(t.Context(), made, condition); !apierrors.IsConflict(err) {
			t.Errorf("%v: %v", condition, err)
		}
	}
	harness.Must(t, api.Delete(t.Context(), made, client.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}))
}

func TestAPodOnANodeTakesItsGracePeriod(t *testing.T) {
	bound := pod(namespace(t), "worker", nil)
	bound.Spec.NodeName = "a-node-that-nobody-made"
	created(t, bound)
	harness.Must(t, api.Delete(t.Context(), bound))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(bound), bound))
	if bound.DeletionTimestamp == nil || *bound.DeletionGracePeriodSeconds != 30 {
		t.Errorf("its node is asked to end it: %+v", bound.ObjectMeta)
	}
	harness.Must(t, api.Delete(t.Context(), bound, client.GracePeriodSeconds(0)))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(bound), bound); !apierrors.IsNotFound(err) {
		t.Errorf("without grace it goes at once: %v", err)
	}
}

func TestPropagationIsLeftToWhoeverCollects(t *testing.T) {
	made := created(t, deployment(namespace(t), "web"))
	harness.Must(t, api.Delete(t.Context(), made, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(made), made))
	if !controllerutil.ContainsFinalizer(made, metav1.FinalizerDeleteDependents) {
		t.Errorf("finalizers: %v", made.Finalizers)
	}
	made.Finalizers = nil
	harness.Must(t, api.Update(t.Context(), made))
}

func TestDeleteAllOfTakesWhatIsSelected(t *testing.T) {
	space, other := namespace(t), namespace(t)
	for _, where := range []string{space, other} {
		for name, bed := range map[string]string{"aloe": "sun", "fern": "shade", "ivy": "shade"} {
			made := plant(where, name)
			made.Labels = map[string]string{"bed": bed}
			created(t, made)
		}
	}
	count := func(where string) int {
		var list gardenv1.PlantList
		harness.Must(t, api.List(t.Context(), &list, client.InNamespace(where)))
		return len(list.Items)
	}
	inShade := client.MatchingLabels{"bed": "shade"}
	harness.Must(t, api.DeleteAllOf(t.Context(), &gardenv1.Plant{}, client.InNamespace(space), inShade, client.DryRunAll))
	if count(space) != 3 {
		t.Errorf("a dry run deletes nothing")
	}
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	harness.Must(t, api.DeleteAllOf(t.Context(), &gardenv1.Plant{}, client.InNamespace(space), inShade, background))
	if count(space) != 1 || count(other) != 3 {
		t.Errorf("%d and %d are left", count(space), count(other))
	}
	byField := client.MatchingFields{"metadata.name": "aloe"}
	harness.Must(t, api.DeleteAllOf(t.Context(), &gardenv1.Plant{}, client.InNamespace(space), byField))
	if count(space) != 0 {
		t.Errorf("%d are left", count(space))
	}
}

func TestANamespaceWithoutItsControllerKeepsTerminating(t *testing.T) {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stays-"}}
	created(t, space)
	harness.Must(t, api.Delete(t.Context(), space))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(space), space))
	if space.Status.Phase != corev1.NamespaceTerminating || len(space.Spec.Finalizers) != 1 {
		t.Errorf("namespace: %+v", space)
	}
	err := api.Create(t.Context(), configMap(space.Name, "late", nil))
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("nothing is created in it: %v", err)
	}
	space.Spec.Finalizers = nil
	harness.Must(t, api.SubResource("finalize").Update(t.Context(), space))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(space), space); !apierrors.IsNotFound(err) {
		t.Errorf("finalized, it goes: %v", err)
	}
}
