package suite_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

// user is a client of somebody with a certificate that the environment made.
func user(t *testing.T, name string, groups ...string) (client.Client, *rest.Config) {
	t.Helper()
	added, err := environment.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	harness.Must(t, err)
	return harness.Client(t, added.Config()), added.Config()
}

// mayReadPlants lets a subject read plants in a namespace.
func mayReadPlants(t *testing.T, space string, subject rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "readers"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"garden.kubewright.dev"}, Resources: []string{"plants"}, Verbs: []string{"get", "list"},
		}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "readers"},
		Subjects:   []rbacv1.Subject{subject},
	}
	created(t, role)
	created(t, binding)
}

func TestAUserMayDoNothingUntilARoleIsBound(t *testing.T) {
	space := namespace(t)
	ada, _ := user(t, "ada")
	err := ada.List(t.Context(), &gardenv1.PlantList{}, client.InNamespace(space))
	want := `plants.garden.kubewright.dev is forbidden: User "ada" cannot list resource "plants" ` +
		`in API group "garden.kubewright.dev" in the namespace "` + space + `"`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("the answer was: %v", err)
	}
	if err := ada.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}); err == nil ||
		err.Error() != `namespaces "kube-system" is forbidden: User "ada" cannot get resource "namespaces" in API group "" in the namespace "kube-system"` {
		t.Errorf("the answer was: %v", err)
	}
	mayReadPlants(t, space, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ada"})
	harness.Eventually(t, "the role is in force", func() error {
		return ada.List(t.Context(), &gardenv1.PlantList{}, client.InNamespace(space))
	})
	if err := ada.Create(t.Context(), plant(space, "fern")); !apierrors.IsForbidden(err) {
		t.Errorf("reading is not writing: %v", err)
	}
}

func TestGroupsOfACertificateCount(t *testing.T) {
	space := namespace(t)
	mayReadPlants(t, space, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "gardeners"})
	grace, _ := user(t, "grace", "gardeners", "singers")
	harness.Eventually(t, "the role is in force", func() error {
		return grace.List(t.Context(), &gardenv1.PlantList{}, client.InNamespace(space))
	})
	root, _ := user(t, "root", "system:masters")
	harness.Must(t, root.Create(t.Context(), plant(space, "fern")))
}

func TestImpersonationIsAllowedToWhomItIs(t *testing.T) {
	space := namespace(t)
	mayReadPlants(t, space, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: space, Name: "robot"})
	asRobot := rest.CopyConfig(config)
	asRobot.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + space + ":robot"}
	robot := harness.Client(t, asRobot)
	harness.Eventually(t, "the role is in force", func() error {
		return robot.List(t.Context(), &gardenv1.PlantList{}, client.InNamespace(space))
	})
	if err := robot.List(t.Context(), &corev1.SecretList{}, client.InNamespace(space)); !apierrors.IsForbidden(err) {
		t.Errorf("it has no more than its rights: %v", err)
	}

	_, eve := user(t, "eve")
	eve.Impersonate = rest.ImpersonationConfig{UserName: "admin"}
	err := listSecrets(t, eve)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "eve" cannot impersonate`) {
		t.Errorf("the answer was: %v", err)
	}
}

func TestNobodyGivesAwayRightsThatTheyDoNotHave(t *testing.T) {
	space := namespace(t)
	maker := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "maker"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create"},
		}},
	}
	created(t, maker)
	created(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "maker"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "maker"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
	})
	mallory, _ := user(t, "mallory")
	greedy := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "greedy"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	harness.Eventually(t, "it is the greed that is denied", func() error {
		err := mallory.Create(t.Context(), greedy)
		if err != nil && strings.Contains(err.Error(), "is attempting to grant RBAC permissions not currently held") {
			return nil
		}
		return err
	})
}

func TestAnAccessReviewAnswersForOneself(t *testing.T) {
	space := namespace(t)
	mayReadPlants(t, space, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alan"})
	alan, _ := user(t, "alan")
	may := func(verb string) bool {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: space, Verb: verb, Group: "garden.kubewright.dev", Resource: "plants",
			},
		}}
		harness.Must(t, alan.Create(t.Context(), review))
		return review.Status.Allowed
	}
	harness.Eventually(t, "alan may list", func() error {
		if !may("list") {
			return apierrors.NewUnauthorized("not yet")
		}
		return nil
	})
	if may("delete") {
		t.Errorf("alan may not delete")
	}
}

func TestWithoutAnyCredentialsOneIsAnonymous(t *testing.T) {
	nobody := rest.AnonymousClientConfig(config)
	err := listSecrets(t, nobody)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:anonymous" cannot list resource "secrets"`) {
		t.Errorf("the answer was: %v", err)
	}
	nobody.BearerToken = "no-token-of-anybody"
	if err := listSecrets(t, nobody); !apierrors.IsUnauthorized(err) {
		t.Errorf("the answer was: %v", err)
	}
}

// listSecrets asks without discovery, which not everybody may read.
func listSecrets(t *testing.T, config *rest.Config) error {
	t.Helper()
	set, err := kubernetes.NewForConfig(config)
	harness.Must(t, err)
	_, err = set.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	return err
}
