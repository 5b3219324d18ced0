package suite_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

func TestStatusAndSpecAreWrittenApart(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	made.Spec.Litres, made.Status.Pots = 20, 2
	harness.Must(t, api.Status().Update(t.Context(), made))
	if made.Spec.Litres != 2 || made.Status.Pots != 2 || made.Generation != 1 {
		t.Errorf("a write of the status: %+v", made)
	}
	made.Spec.Litres, made.Status.Pots = 20, 3
	harness.Must(t, api.Update(t.Context(), made))
	if made.Spec.Litres != 20 || made.Status.Pots != 2 || made.Generation != 2 {
		t.Errorf("a write of the object: %+v", made)
	}
	before := made.DeepCopy()
	meta.SetStatusCondition(&made.Status.Conditions, metav1.Condition{Type: "Wet", Status: "True", Reason: "Rain"})
	harness.Must(t, api.Status().Patch(t.Context(), made, client.MergeFrom(before)))
	if !meta.IsStatusConditionTrue(made.Status.Conditions, "Wet") {
		t.Errorf("conditions: %+v", made.Status.Conditions)
	}
	made.Status.Conditions[0].Status = "Maybe"
	if err := api.Status().Update(t.Context(), made); !apierrors.IsInvalid(err) {
		t.Errorf("a status is validated too: %v", err)
	}
}

func TestAStatusOfABuiltInKindIsSetByHand(t *testing.T) {
	space := namespace(t)
	made := created(t, pod(space, "worker", nil))
	if made.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s", made.Status.Phase)
	}
	made.Status.Phase = corev1.PodRunning
	made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	harness.Must(t, api.Status().Update(t.Context(), made))
	var read corev1.Pod
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(made), &read))
	if read.Status.Phase != corev1.PodRunning || len(read.Status.Conditions) != 1 {
		t.Errorf("status: %+v", read.Status)
	}

	web := created(t, deployment(space, "web"))
	web.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, ObservedGeneration: 1}
	harness.Must(t, api.Status().Update(t.Context(), web))
	web.Status.AvailableReplicas = 2
	if err := api.Status().Update(t.Context(), web); !apierrors.IsInvalid(err) {
		t.Errorf("more available than there are: %v", err)
	}
}

func TestAJobIsCompleteOnlyByTheRules(t *testing.T) {
	once := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t), Name: "once"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod("", "", nil).Spec}},
	}
	once.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	created(t, once)
	once.Status.Active = 2
	harness.Must(t, api.Status().Update(t.Context(), once))

	now := metav1.Now()
	complete := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	met := batchv1.JobCondition{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}
	once.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Conditions: []batchv1.JobCondition{complete}}
	err := api.Status().Update(t.Context(), once)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot set Complete=True condition without the SuccessCriteriaMet=true condition") {
		t.Errorf("the answer was: %v", err)
	}
	once.Status.Conditions = []batchv1.JobCondition{met, complete}
	harness.Must(t, api.Status().Update(t.Context(), once))
}

func TestScaleReadsAndWritesReplicas(t *testing.T) {
	space := namespace(t)
	fern, web := created(t, plant(space, "fern")), created(t, deployment(space, "web"))
	fern.Status.Selector = "app=fern"
	harness.Must(t, api.Status().Update(t.Context(), fern))
	for _, scaled := range []client.Object{fern, web} {
		scale := &autoscalingv1.Scale{}
		harness.Must(t, api.SubResource("scale").Get(t.Context(), scaled, scale))
		if scale.Spec.Replicas != 1 || scale.Status.Selector != "app="+scaled.GetName() {
			t.Errorf("scale of %s: %+v", scaled.GetName(), scale)
		}
		scale.Spec.Replicas = 5
		harness.Must(t, api.SubResource("scale").Update(t.Context(), scaled, client.WithSubResourceBody(scale)))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":6}}`))
		harness.Must(t, api.SubResource("scale").Patch(t.Context(), scaled, patch, client.WithSubResourceBody(scale)))
	}
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(fern), fern))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if *fern.Spec.Pots != 6 || *web.Spec.Replicas != 6 {
		t.Errorf("scaled to %d and %d", *fern.Spec.Pots, *web.Spec.Replicas)
	}
}

func TestAnEvictionAsksTheBudget(t *testing.T) {
	space := namespace(t)
	labels := map[string]string{"app": "worker"}
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "keep-one"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	created(t, budget)
	worker := created(t, pod(space, "worker", labels))
	worker.Status.Phase = corev1.PodRunning
	worker.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	harness.Must(t, api.Status().Update(t.Context(), worker))

	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	// A client that asks once: others wait and ask again when they are told that it is too early.
	once := set.CoreV1().RESTClient().Post().MaxRetries(0).Namespace(space).Resource("pods").Name("worker").SubResource("eviction")
	refused := once.Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "worker"}})
	if err := refused.Do(t.Context()).Error(); !apierrors.IsTooManyRequests(err) ||
		err.Error() != "Cannot evict pod as it would violate the pod's disruption budget." {
		t.Errorf("a budget that nobody has counted yet: %v", err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 1, ExpectedPods: 1,
	}
	harness.Must(t, api.Status().Update(t.Context(), budget))
	harness.Must(t, api.SubResource("eviction").Create(t.Context(), worker, &policyv1.Eviction{}))
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(worker), worker); !apierrors.IsNotFound(err) {
		t.Errorf("evicted, it is gone: %v", err)
	}
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
	if budget.Status.DisruptionsAllowed != 0 || len(budget.Status.DisruptedPods) != 1 {
		t.Errorf("the budget is charged: %+v", budget.Status)
	}
}

func TestATokenOfAServiceAccountIsGoodForIt(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t), Name: "robot"}}
	created(t, account)
	token := &authenticationv1.TokenRequest{}
	harness.Must(t, api.SubResource("token").Create(t.Context(), account, token))
	if token.Status.Token == "" || len(token.Spec.Audiences) != 1 || *token.Spec.ExpirationSeconds != 3600 {
		t.Errorf("token: %+v", token)
	}
	robot := rest.AnonymousClientConfig(config)
	robot.BearerToken = token.Status.Token
	err := harness.Client(t, robot).List(t.Context(), &corev1.SecretList{}, client.InNamespace(account.Namespace))
	user := "system:serviceaccount:" + account.Namespace + ":robot"
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "`+user+`" cannot list resource "secrets"`) {
		t.Errorf("the answer was: %v", err)
	}

	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
	harness.Must(t, api.Create(t.Context(), review))
	if !review.Status.Authenticated || review.Status.User.Username != user {
		t.Errorf("review: %+v", review.Status)
	}
}

func TestABindingPutsAPodOnANode(t *testing.T) {
	worker := created(t, pod(namespace(t), "worker", nil))
	bind := func() error {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
		return api.SubResource("binding").Create(t.Context(), worker, binding)
	}
	harness.Must(t, bind())
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(worker), worker))
	if worker.Spec.NodeName != "nowhere" {
		t.Errorf("node %q", worker.Spec.NodeName)
	}
	if err := bind(); !apierrors.IsConflict(err) {
		t.Errorf("it is bound once: %v", err)
	}
}

func TestASubresourceThatIsNotThereIsNotFound(t *testing.T) {
	made := created(t, configMap(namespace(t), "settings", nil))
	if err := api.Status().Update(t.Context(), made); !apierrors.IsNotFound(err) {
		t.Errorf("the answer was: %v", err)
	}
	fern := &gardenv1.Plant{ObjectMeta: metav1.ObjectMeta{Namespace: made.Namespace, Name: "nobody"}}
	if err := api.Status().Patch(t.Context(), fern, client.RawPatch(types.MergePatchType, []byte(`{}`))); !apierrors.IsNotFound(err) {
		t.Errorf("the status of what is not there: %v", err)
	}
}
