package kubewright_test

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/kubewright/kubewright/bindings/go"
)

func TestAConflictStrikesAsOftenAsItIsTold(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	maps := clientsOf(t, cluster).CoreV1().ConfigMaps("default")
	made, err := maps.Create(t.Context(), configMap("settings"), metav1.CreateOptions{})
	must(t, err)
	id, err := cluster.AddFault(t.Context(), kubewright.FaultRule{
		Match: kubewright.Match{Verbs: []string{"update"}, Group: ptr.To(""), Resource: "configmaps"},
		Fault: kubewright.Conflict{},
		Times: 2,
	})
	must(t, err)

	conflicts := 0
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, err := maps.Update(t.Context(), made, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			conflicts++
		}
		return err
	}))

	if conflicts != 2 {
		t.Errorf("there were %d conflicts", conflicts)
	}
	faults, err := cluster.Faults(t.Context())
	must(t, err)
	if len(faults) != 1 || faults[0].ID != id || faults[0].Hits != 2 || !faults[0].Spent {
		t.Errorf("the faults are %+v", faults)
	}
	log, err := cluster.Requests(t.Context(), kubewright.RequestFilter{Match: kubewright.Match{Verbs: []string{"update"}, Resource: "configmaps"}})
	must(t, err)
	if first := log.Requests[0]; first.Fault != id || first.Code != http.StatusConflict {
		t.Errorf("the log has %+v", first)
	}
}

func TestAFaultThatIsRemovedStrikesNoMore(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	maps := clientsOf(t, cluster).CoreV1().ConfigMaps("default")
	rule := kubewright.FaultRule{
		Match: kubewright.Match{Resource: "configmaps"},
		Fault: kubewright.ErrorStatus{Code: 507, Reason: "Full", Message: "the disk is full"},
		Times: kubewright.Forever,
	}
	list := func() error {
		_, err := maps.List(t.Context(), metav1.ListOptions{})
		return err
	}
	id, err := cluster.AddFault(t.Context(), rule)
	must(t, err)
	for range 3 {
		if err := list(); apierrors.ReasonForError(err) != "Full" || !strings.Contains(err.Error(), "the disk is full") {
			t.Fatalf("the error is %v", err)
		}
	}
	must(t, cluster.RemoveFault(t.Context(), id))
	must(t, list())
	if err := cluster.RemoveFault(t.Context(), id); !apierrors.IsNotFound(err) || strings.Contains(err.Error(), "--admin") {
		t.Errorf("the error is %v", err)
	}
	_, err = cluster.AddFault(t.Context(), rule)
	must(t, err)
	must(t, cluster.ClearFaults(t.Context()))
	must(t, list())
}

func TestEveryFaultIsTakenAndTold(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	// Nobody matches.
	match := kubewright.Match{Resource: "configmaps", Namespace: "nowhere", Name: "none", User: "nobody*", UserAgent: "none",
		Group: ptr.To(""), Subresource: ptr.To("")}
	var rules []kubewright.FaultRule
	for _, fault := range []kubewright.Fault{
		kubewright.Conflict{},
		kubewright.TooManyRequests{RetryAfter: 3 * time.Second},
		kubewright.ErrorStatus{Code: 503, Reason: "Down", Message: "later"},
		kubewright.Timeout{Done: true, Answer: kubewright.GatewayTimeout},
		kubewright.Latency{By: 1500 * time.Millisecond},
		kubewright.DropWatch{How: kubewright.ByReset},
		kubewright.ExpireWatch{},
		kubewright.RepeatWatch{},
		kubewright.SkipWatch{},
		kubewright.HoldWatch{For: 30 * time.Second},
		kubewright.HoldWatch{},
		kubewright.OldList{Revision: 7},
	} {
		rules = append(rules, kubewright.FaultRule{
			Match: match, Fault: fault, Times: 4, After: 1, Every: 2, Probability: 0.5, Seed: ptr.To[uint64](7),
		})
	}
	rules = append(rules, kubewright.FaultRule{
		Match: kubewright.Match{Verbs: []string{"get", "deletecollection"}}, Fault: kubewright.ErrorStatus{Code: 500}, Times: kubewright.Forever,
		Every: 1, Probability: 1, Seed: ptr.To[uint64](1),
	})
	for _, rule := range rules {
		if _, err := cluster.AddFault(t.Context(), rule); err != nil {
			t.Errorf("%+v: %v", rule, err)
		}
	}
	faults, err := cluster.Faults(t.Context())
	must(t, err)
	if len(faults) != len(rules) {
		t.Fatalf("%d of %d are there", len(faults), len(rules))
	}
	for index, fault := range faults {
		if !reflect.DeepEqual(fault.FaultRule, rules[index]) {
			t.Errorf("%+v came back as %+v", rules[index], fault.FaultRule)
		}
	}
}

func TestZeroValuesOfFaultsAreTheServersDefaults(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	for _, fault := range []kubewright.Fault{
		kubewright.TooManyRequests{}, kubewright.ErrorStatus{}, kubewright.Timeout{}, kubewright.DropWatch{},
	} {
		if _, err := cluster.AddFault(t.Context(), kubewright.FaultRule{Fault: fault, After: 1000}); err != nil {
			t.Errorf("%T: %v", fault, err)
		}
	}
	faults, err := cluster.Faults(t.Context())
	must(t, err)
	want := []kubewright.Fault{
		kubewright.TooManyRequests{RetryAfter: time.Second}, kubewright.ErrorStatus{Code: 500},
		kubewright.Timeout{Answer: kubewright.Cut}, kubewright.DropWatch{How: kubewright.Cleanly},
	}
	for index, fault := range faults {
		if fault.Fault != want[index] || fault.Times != 1 {
			t.Errorf("%+v is not %+v, once", fault, want[index])
		}
	}
}

func TestARuleThatMakesNoSenseIsRefused(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	for want, rule := range map[string]kubewright.FaultRule{
		"needs a Fault":         {},
		"whole seconds":         {Fault: kubewright.TooManyRequests{RetryAfter: time.Millisecond}},
		"Forever":               {Fault: kubewright.Conflict{}, Times: -2},
		"not the code":          {Fault: kubewright.ErrorStatus{Code: 200}},
		"expected one of `get`": {Fault: kubewright.Conflict{}, Match: kubewright.Match{Verbs: []string{"put"}}},
		"is negative":           {Fault: kubewright.Latency{By: -time.Second}},
	} {
		if _, err := cluster.AddFault(t.Context(), rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not said: %v", want, err)
		}
	}
	if _, err := cluster.AddFault(t.Context(), kubewright.FaultRule{Fault: kubewright.ErrorStatus{Code: 200}}); !apierrors.IsBadRequest(err) {
		t.Errorf("it is no Status: %v", err)
	}
}

func TestTheLogTellsWhoCalledWhat(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	maps := clientsOf(t, cluster).CoreV1().ConfigMaps("default")
	_, err := maps.Create(t.Context(), configMap("one"), metav1.CreateOptions{})
	must(t, err)
	for range 2 {
		_, err = maps.Patch(t.Context(), "one", "application/merge-patch+json", []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		must(t, err)
	}
	filter := kubewright.RequestFilter{
		Match: kubewright.Match{
			Verbs: []string{"create", "patch"}, Group: ptr.To(""), Resource: "configmaps", Subresource: ptr.To(""),
			Namespace: "default", UserAgent: "kubewright-go",
		},
	}

	log, err := cluster.Requests(t.Context(), filter)
	must(t, err)

	counts := map[string]uint64{}
	for _, count := range log.Counts {
		counts[count.Verb+" "+count.Resource] += count.Count
		if count.UserAgent != "kubewright-go-test" {
			t.Errorf("the user agent is %q", count.UserAgent)
		}
	}
	if want := map[string]uint64{"create configmaps": 1, "patch configmaps": 2}; !reflect.DeepEqual(counts, want) {
		t.Errorf("the counts are %v", counts)
	}
	if len(log.Requests) != 3 {
		t.Fatalf("the requests are %+v", log.Requests)
	}
	last := log.Requests[2]
	if last.Name != "one" || last.Patch != "merge" || last.Code != http.StatusOK || last.Version != "v1" || last.User == "" ||
		last.Duration <= 0 || time.Since(last.Time) > time.Minute {
		t.Errorf("the last request is %+v", last)
	}
	filter.Limit = 1
	log, err = cluster.Requests(t.Context(), filter)
	must(t, err)
	if len(log.Requests) != 1 || log.Requests[0].Verb != "patch" {
		t.Errorf("the last one is %+v", log.Requests)
	}
	must(t, cluster.ClearRequests(t.Context()))
	if log, err = cluster.Requests(t.Context(), filter); err != nil || len(log.Counts) != 0 {
		t.Errorf("the log still has %+v (%v)", log, err)
	}
}

func TestWhoMayNotUseTheAdminPathsIsToldWhatTheyNeed(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	config := cluster.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody"}
	admin, err := kubewright.NewAdmin(config)
	must(t, err)
	if err := admin.Reset(t.Context()); err == nil || !strings.Contains(err.Error(), "--admin") {
		t.Errorf("the error is %v", err)
	}
}

func TestAContextThatHasEndedEndsTheRequest(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cluster.Reset(ctx); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("the error is %v", err)
	}
}
