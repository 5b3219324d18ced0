package suite_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubewright.dev/envtest-go/harness"
)

func TestRecordedEventsAreServedInBothGroups(t *testing.T) {
	space := namespace(t)
	fern := created(t, plant(space, "fern"))
	m := newManager(t, nil)
	harness.Background(t, m.Start)
	recorder := m.GetEventRecorder("gardener")
	for range 3 {
		recorder.Eventf(fern, nil, corev1.EventTypeNormal, "Watered", "Water", "with %d litres", 2)
	}
	var new eventsv1.EventList
	harness.Eventually(t, "the event is there", func() error {
		harness.Must(t, api.List(t.Context(), &new, client.InNamespace(space)))
		if len(new.Items) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	event := new.Items[0]
	if event.Reason != "Watered" || event.Action != "Water" || event.Note != "with 2 litres" ||
		event.Regarding.UID != fern.UID || event.ReportingController != "gardener" {
		t.Errorf("event: %+v", event)
	}
	var old corev1.EventList
	about := client.MatchingFields{"involvedObject.name": "fern", "reason": "Watered"}
	harness.Must(t, api.List(t.Context(), &old, client.InNamespace(space), about))
	if len(old.Items) != 1 || old.Items[0].Message != "with 2 litres" {
		t.Errorf("as core events: %+v", old.Items)
	}
}
