package suite_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

// next is the next event of a watch.
func next(t *testing.T, watched watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-watched.ResultChan():
		if !open {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(harness.Patience):
		t.Fatal("no event came")
	}
	panic("not reached")
}

func name(t *testing.T, object runtime.Object) string {
	t.Helper()
	named, ok := object.(client.Object)
	if !ok {
		t.Fatalf("%T has no name: %+v", object, object)
	}
	return named.GetName()
}

func TestAWatchTellsOfAllThatHappens(t *testing.T) {
	space := namespace(t)
	watched, err := api.Watch(t.Context(), &gardenv1.PlantList{}, client.InNamespace(space))
	harness.Must(t, err)
	defer watched.Stop()
	fern := created(t, plant(space, "fern"))
	fern.Spec.Litres = 3
	harness.Must(t, api.Update(t.Context(), fern))
	harness.Must(t, api.Delete(t.Context(), fern))
	for _, wanted := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event := next(t, watched)
		if event.Type != wanted || name(t, event.Object) != "fern" {
			t.Errorf("%s instead of %s: %+v", event.Type, wanted, event.Object)
		}
	}
}

func TestAWatchWithASelectorSeesObjectsComeAndGo(t *testing.T) {
	space := namespace(t)
	watched, err := api.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(space), client.MatchingLabels{"on": "yes"})
	harness.Must(t, err)
	defer watched.Stop()
	created(t, configMap(space, "other", nil))
	lamp := configMap(space, "lamp", nil)
	lamp.Labels = map[string]string{"on": "yes"}
	created(t, lamp)
	lamp.Labels["on"] = "no"
	harness.Must(t, api.Update(t.Context(), lamp))
	lamp.Labels["on"] = "yes"
	harness.Must(t, api.Update(t.Context(), lamp))
	for _, wanted := range []watch.EventType{watch.Added, watch.Deleted, watch.Added} {
		if event := next(t, watched); event.Type != wanted || name(t, event.Object) != "lamp" {
			t.Errorf("%s of %s instead of %s of lamp", event.Type, name(t, event.Object), wanted)
		}
	}
}

func TestAWatchListBeginsWithWhatIsThereAndSaysWhereItEnds(t *testing.T) {
	space := namespace(t)
	for _, name := range []string{"a", "b"} {
		created(t, configMap(space, name, nil))
	}
	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	initial := true
	watched, err := set.CoreV1().ConfigMaps(space).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &initial, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	harness.Must(t, err)
	defer watched.Stop()
	var names []string
	event := next(t, watched)
	for ; event.Type == watch.Added; event = next(t, watched) {
		names = append(names, name(t, event.Object))
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("initial events: %v", names)
	}
	bookmark, ok := event.Object.(*corev1.ConfigMap)
	if event.Type != watch.Bookmark || !ok || bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" ||
		bookmark.ResourceVersion == "" {
		t.Errorf("then the bookmark: %s %+v", event.Type, event.Object)
	}
}

func TestAWatchFromARevisionGoesOnFromThere(t *testing.T) {
	space := namespace(t)
	first := created(t, configMap(space, "first", nil))
	created(t, configMap(space, "second", nil))
	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	watched, err := set.CoreV1().ConfigMaps(space).Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	harness.Must(t, err)
	defer watched.Stop()
	if event := next(t, watched); event.Type != watch.Added || name(t, event.Object) != "second" {
		t.Errorf("%s of %s", event.Type, name(t, event.Object))
	}
	_, err = set.CoreV1().ConfigMaps(space).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "yesterday"})
	if err == nil || !strings.Contains(err.Error(), `resourceVersion: Invalid value: "yesterday"`) {
		t.Errorf("a version that is none: %v", err)
	}
}

func TestAWatchEndsWhenItsTimeIsOver(t *testing.T) {
	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	seconds := int64(1)
	watched, err := set.CoreV1().ConfigMaps(namespace(t)).Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: &seconds})
	harness.Must(t, err)
	select {
	case event, open := <-watched.ResultChan():
		if open {
			t.Errorf("an event: %+v", event)
		}
	case <-time.After(harness.Patience):
		t.Error("it goes on")
	}
}
