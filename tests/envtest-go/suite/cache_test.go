package suite_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

// started is a cache that has what it is asked for.
func started(t *testing.T, options cache.Options, prepare func(cache.Cache)) cache.Cache {
	t.Helper()
	options.Scheme = harness.Scheme()
	made, err := cache.New(config, options)
	harness.Must(t, err)
	if prepare != nil {
		prepare(made)
	}
	harness.Background(t, made.Start)
	if !made.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not sync")
	}
	return made
}

func plantNames(t *testing.T, reader client.Reader, options ...client.ListOption) []string {
	t.Helper()
	var list gardenv1.PlantList
	harness.Must(t, reader.List(t.Context(), &list, options...))
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	slices.Sort(names)
	return names
}

// planted is a namespace with an aloe in the sun, and a fern and an ivy in the shade.
func planted(t *testing.T) string {
	t.Helper()
	space := namespace(t)
	for name, bed := range map[string]string{"aloe": "sun", "fern": "shade", "ivy": "shade"} {
		made := plant(space, name)
		made.Spec.Bed, made.Labels = bed, map[string]string{"bed": bed}
		created(t, made)
	}
	return space
}

func TestACacheHoldsWhatItsSelectorsSay(t *testing.T) {
	space, other := planted(t), planted(t)
	for _, tried := range []struct {
		kind    cache.ByObject
		wanted  []string
		meaning string
	}{
		{cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"bed": "shade"})}, []string{"fern", "ivy"}, "labels"},
		{cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", "ivy")}, []string{"ivy"}, "a name"},
		{cache.ByObject{Field: fields.OneTermEqualSelector("spec.bed", "sun")}, []string{"aloe"}, "a selectable field"},
	} {
		tried.kind.Namespaces = map[string]cache.Config{space: {}}
		held := started(t, cache.Options{ByObject: map[client.Object]cache.ByObject{&gardenv1.Plant{}: tried.kind}}, nil)
		if got := plantNames(t, held); !slices.Equal(got, tried.wanted) {
			t.Errorf("by %s it holds %v", tried.meaning, got)
		}
		err := held.Get(t.Context(), client.ObjectKey{Namespace: other, Name: "ivy"}, &gardenv1.Plant{})
		if err == nil {
			t.Errorf("by %s it holds what is in another namespace", tried.meaning)
		}
	}
}

func TestACacheOfSeveralNamespacesFollowsThem(t *testing.T) {
	one, two, three := planted(t), planted(t), planted(t)
	held := started(t, cache.Options{DefaultNamespaces: map[string]cache.Config{
		one: {}, two: {LabelSelector: labels.SelectorFromSet(labels.Set{"bed": "sun"})},
	}}, nil)
	if got := plantNames(t, held); !slices.Equal(got, []string{"aloe", "aloe", "fern", "ivy"}) {
		t.Errorf("it holds %v", got)
	}
	created(t, plant(one, "moss"))
	created(t, plant(two, "moss"))
	created(t, plant(three, "moss"))
	harness.Eventually(t, "the moss of the first is there", func() error {
		if got := plantNames(t, held, client.InNamespace(one)); len(got) != 4 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	if got := plantNames(t, held, client.InNamespace(two)); !slices.Equal(got, []string{"aloe"}) {
		t.Errorf("of the second it holds %v", got)
	}
}

func TestAnIndexFindsByWhatOneLikes(t *testing.T) {
	space := planted(t)
	held := started(t, cache.Options{DefaultNamespaces: map[string]cache.Config{space: {}}}, func(made cache.Cache) {
		species := func(object client.Object) []string { return []string{object.(*gardenv1.Plant).Spec.Species} }
		harness.Must(t, made.IndexField(t.Context(), &gardenv1.Plant{}, "spec.species", species))
	})
	oak := plant(space, "oak")
	oak.Spec.Species = "oak"
	created(t, oak)
	harness.Eventually(t, "the oak is found", func() error {
		if got := plantNames(t, held, client.MatchingFields{"spec.species": "oak"}); !slices.Equal(got, []string{"oak"}) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

func TestAMetadataCacheAndATransformSeeLess(t *testing.T) {
	space := planted(t)
	held := started(t, cache.Options{
		DefaultNamespaces: map[string]cache.Config{space: {}}, DefaultTransform: cache.TransformStripManagedFields(),
	}, nil)
	only := &metav1.PartialObjectMetadata{}
	only.SetGroupVersionKind(gardenv1.GroupVersion.WithKind("Plant"))
	harness.Must(t, held.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "fern"}, only))
	if only.Labels["bed"] != "shade" || len(only.ManagedFields) != 0 {
		t.Errorf("metadata: %+v", only.ObjectMeta)
	}
}

func TestHandlersOfAnInformerSeeEachEvent(t *testing.T) {
	space := namespace(t)
	created(t, configMap(space, "before", nil))
	held := started(t, cache.Options{DefaultNamespaces: map[string]cache.Config{space: {}}}, nil)
	informer, err := held.GetInformer(t.Context(), &corev1.ConfigMap{})
	harness.Must(t, err)
	told := make(chan string, 10)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			told <- fmt.Sprintf("add %s %t", object.(*corev1.ConfigMap).Name, initial)
		},
		UpdateFunc: func(old, new any) {
			told <- fmt.Sprintf("update %s>%s", old.(*corev1.ConfigMap).Data["a"], new.(*corev1.ConfigMap).Data["a"])
		},
		DeleteFunc: func(object any) { told <- "delete " + object.(*corev1.ConfigMap).Name },
	})
	harness.Must(t, err)
	after := configMap(space, "after", map[string]string{"a": "1"})
	for _, step := range []struct {
		wanted string
		do     func() error
	}{
		{"add before true", func() error { return nil }},
		{"add after false", func() error { return api.Create(t.Context(), after) }},
		{"update 1>2", func() error { after.Data["a"] = "2"; return api.Update(t.Context(), after) }},
		{"delete after", func() error { return api.Delete(t.Context(), after) }},
	} {
		harness.Must(t, step.do())
		harness.Eventually(t, step.wanted, func() error {
			select {
			case got := <-told:
				if got != step.wanted {
					t.Fatalf("%s instead of %s", got, step.wanted)
				}
				return nil
			default:
				return errors.New("nothing was told")
			}
		})
	}
}
