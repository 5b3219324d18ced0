package suite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

const compost = "garden.kubewright.dev/compost"

// gardening keeps a label of paper for each plant, in a config map, and waters by the weather of a secret.
type gardening struct {
	client.Client
}

// Reconcile makes one plant as it should be.
func (g *gardening) Reconcile(ctx context.Context, asked ctrl.Request) (ctrl.Result, error) {
	var plant gardenv1.Plant
	if err := g.Get(ctx, asked.NamespacedName, &plant); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if plant.DeletionTimestamp != nil {
		if controllerutil.RemoveFinalizer(&plant, compost) {
			return ctrl.Result{}, g.Update(ctx, &plant)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&plant, compost) {
		if err := g.Update(ctx, &plant); err != nil {
			return ctrl.Result{}, err
		}
	}
	label := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: plant.Namespace, Name: plant.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, g, label, func() error {
		label.Data = map[string]string{"text": fmt.Sprintf("%s, %d l", plant.Spec.Species, plant.Spec.Litres)}
		return controllerutil.SetControllerReference(&plant, label, g.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	var weather corev1.Secret
	err = g.Get(ctx, client.ObjectKey{Namespace: plant.Namespace, Name: "weather"}, &weather)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	meta.SetStatusCondition(&plant.Status.Conditions, metav1.Condition{
		Type: "Labelled", Status: metav1.ConditionTrue, Reason: "Written",
		Message: "weather: " + string(weather.Data["now"]), ObservedGeneration: plant.Generation,
	})
	return ctrl.Result{}, g.Status().Update(ctx, &plant)
}

// addGardening adds the controller of plants; what happens in other namespaces is not in the manager's cache.
func addGardening(m manager.Manager, name string) error {
	everyPlant := func(ctx context.Context, weather client.Object) []reconcile.Request {
		var plants gardenv1.PlantList
		if err := m.GetClient().List(ctx, &plants, client.InNamespace(weather.GetNamespace())); err != nil {
			return nil
		}
		var requests []reconcile.Request
		for i := range plants.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&plants.Items[i])})
		}
		return requests
	}
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		For(&gardenv1.Plant{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(everyPlant)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(&gardening{Client: m.GetClient()})
}

// garden is a namespace with a gardener at work.
func garden(t *testing.T, name string) string {
	t.Helper()
	space := namespace(t)
	m := newManager(t, func(options *manager.Options) {
		options.Cache.DefaultNamespaces = map[string]cache.Config{space: {}}
	})
	harness.Must(t, addGardening(m, name))
	harness.Background(t, m.Start)
	return space
}

// labelIs waits for the text of a plant's label.
func labelIs(t *testing.T, key types.NamespacedName, text string) *corev1.ConfigMap {
	t.Helper()
	label := &corev1.ConfigMap{}
	harness.Eventually(t, "the label says "+text, func() error {
		if err := api.Get(t.Context(), key, label); err != nil {
			return err
		}
		if label.Data["text"] != text {
			return fmt.Errorf("it says %s", label.Data["text"])
		}
		return nil
	})
	return label
}

func TestAControllerFollowsItsKind(t *testing.T) {
	fern := created(t, plant(garden(t, "follows"), "fern"))
	key := client.ObjectKeyFromObject(fern)
	label := labelIs(t, key, "fern, 2 l")
	if owner := metav1.GetControllerOf(label); owner == nil || owner.UID != fern.UID || owner.Kind != "Plant" {
		t.Errorf("owner: %+v", label.OwnerReferences)
	}
	thirsty := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"litres":4}}`))
	harness.Must(t, api.Patch(t.Context(), fern, thirsty))
	labelIs(t, key, "fern, 4 l")
	harness.Eventually(t, "the status follows", func() error {
		harness.Must(t, api.Get(t.Context(), key, fern))
		condition := meta.FindStatusCondition(fern.Status.Conditions, "Labelled")
		if condition == nil || condition.ObservedGeneration != fern.Generation {
			return fmt.Errorf("condition: %+v", condition)
		}
		return nil
	})
}

func TestAControllerRestoresWhatItOwns(t *testing.T) {
	fern := created(t, plant(garden(t, "restores"), "fern"))
	key := client.ObjectKeyFromObject(fern)
	label := labelIs(t, key, "fern, 2 l")
	label.Data["text"] = "a weed"
	harness.Must(t, api.Update(t.Context(), label))
	labelIs(t, key, "fern, 2 l")
	first := label.UID
	harness.Must(t, api.Delete(t.Context(), label))
	if again := labelIs(t, key, "fern, 2 l"); again.UID == first {
		t.Errorf("it is a new one")
	}
}

func TestAControllerLooksAtWhatItWatches(t *testing.T) {
	space := garden(t, "watches")
	fern := created(t, plant(space, "fern"))
	labelIs(t, client.ObjectKeyFromObject(fern), "fern, 2 l")
	rain := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "weather"}, StringData: map[string]string{"now": "rain"},
	}
	created(t, rain)
	harness.Eventually(t, "the plant knows of the rain", func() error {
		harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(fern), fern))
		if condition := meta.FindStatusCondition(fern.Status.Conditions, "Labelled"); condition.Message != "weather: rain" {
			return errors.New(condition.Message)
		}
		return nil
	})
}

func TestAControllerCleansUpBeforeTheEnd(t *testing.T) {
	fern := created(t, plant(garden(t, "cleans"), "fern"))
	labelIs(t, client.ObjectKeyFromObject(fern), "fern, 2 l")
	harness.Must(t, api.Delete(t.Context(), fern))
	harness.Eventually(t, "the plant is gone", func() error {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(fern), fern)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("finalizers %v, %w", fern.Finalizers, err)
		}
		return nil
	})
}
