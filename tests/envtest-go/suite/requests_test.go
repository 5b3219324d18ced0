package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubewright.dev/envtest-go/harness"
)

func TestUnknownFieldsAreIgnoredWarnedOfOrRefused(t *testing.T) {
	space := namespace(t)
	warnings := &collected{}
	asked := rest.CopyConfig(config)
	asked.WarningHandler = warnings
	c := harness.Client(t, asked)
	try := func(name, validation string) error {
		odd := unstructuredPlant(space, name, map[string]any{"species": "fern", "scent": "sweet"})
		return c.Create(t.Context(), odd, client.FieldValidation(validation))
	}
	harness.Must(t, try("ignored", metav1.FieldValidationIgnore))
	if got := warnings.all(); len(got) != 0 {
		t.Errorf("nothing is said when it is not asked for: %q", got)
	}
	harness.Must(t, try("warned", metav1.FieldValidationWarn))
	if got := warnings.all(); !slices.Equal(got, []string{`unknown field "spec.scent"`}) {
		t.Errorf("warnings: %q", got)
	}
	err := try("refused", metav1.FieldValidationStrict)
	if !apierrors.IsBadRequest(err) || !strings.HasSuffix(err.Error(), `strict decoding error: unknown field "spec.scent"`) {
		t.Errorf("the answer was: %v", err)
	}
}

func TestUnknownFieldsOfBuiltInKindsAreFoundToo(t *testing.T) {
	space := namespace(t)
	odd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": space, "name": "odd", "owner": "me"},
		"dato":     map[string]any{},
	}}
	err := api.Create(t.Context(), odd, client.FieldValidation(metav1.FieldValidationStrict))
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "dato", unknown field "metadata.owner"`) {
		t.Errorf("the answer was: %v", err)
	}
	strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
	made := created(t, configMap(space, "plain", nil))
	err = strict.Patch(t.Context(), made, client.RawPatch(types.MergePatchType, []byte(`{"dato":{}}`)))
	if !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `unknown field "dato"`) {
		t.Errorf("a patch: %v", err)
	}
}

func TestWhatIsOfTheWrongTypeIsRefused(t *testing.T) {
	wrong := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "default", "name": "wrong"},
		"spec":     map[string]any{"replicas": "three"},
	}}
	err := api.Create(t.Context(), wrong)
	want := `Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`
	if !apierrors.IsBadRequest(err) || err.Error() != want {
		t.Errorf("the answer was: %v", err)
	}
	err = api.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "empty"}})
	want = `Pod "empty" is invalid: spec.containers: Required value`
	if !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("the answer was: %v", err)
	}
}

func TestADryRunAnswersAndLeavesNothing(t *testing.T) {
	space := namespace(t)
	dry := client.NewDryRunClient(api)
	tried := configMap(space, "tried", nil)
	harness.Must(t, dry.Create(t.Context(), tried))
	if tried.UID == "" {
		t.Errorf("the answer has a uid: %+v", tried.ObjectMeta)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(tried), tried); !apierrors.IsNotFound(err) {
		t.Errorf("after the creation: %v", err)
	}
	made := created(t, configMap(space, "made", map[string]string{"a": "1"}))
	version := made.ResourceVersion
	made.Data["a"] = "2"
	harness.Must(t, dry.Update(t.Context(), made))
	harness.Must(t, dry.Delete(t.Context(), made))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(made), made))
	if made.Data["a"] != "1" || made.ResourceVersion != version {
		t.Errorf("after the update and the deletion: %+v", made)
	}
}

func TestALongListComesInPages(t *testing.T) {
	space := namespace(t)
	for i := range 7 {
		created(t, configMap(space, fmt.Sprintf("page-%d", i), nil))
	}
	var names []string
	var version, next string
	for page := 0; page == 0 || next != ""; page++ {
		var list corev1.ConfigMapList
		harness.Must(t, api.List(t.Context(), &list, client.InNamespace(space), client.Limit(3), client.Continue(next)))
		if page == 0 {
			version = list.ResourceVersion
			created(t, configMap(space, "page-55-late", nil))
			if list.RemainingItemCount == nil || *list.RemainingItemCount != 4 {
				t.Errorf("remaining: %v", list.RemainingItemCount)
			}
		}
		if list.ResourceVersion != version {
			t.Errorf("page %d is of %s, not of %s", page, list.ResourceVersion, version)
		}
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		next = list.Continue
	}
	if len(names) != 7 || slices.Contains(names, "page-55-late") {
		t.Errorf("what comes later is in no page: %v", names)
	}
	err := api.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(space), client.Continue("no-token"))
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a token that the server did not give: %v", err)
	}
}

func TestNamesAreGeneratedAndChecked(t *testing.T) {
	space := namespace(t)
	seen := map[string]bool{}
	for range 5 {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, GenerateName: "seed-"}}
		created(t, made)
		if !strings.HasPrefix(made.Name, "seed-") || seen[made.Name] {
			t.Errorf("name %s", made.Name)
		}
		seen[made.Name] = true
	}
	if err := api.Create(t.Context(), configMap(space, "No_Name", nil)); !apierrors.IsInvalid(err) {
		t.Errorf("a name that is none: %v", err)
	}
	if err := api.Create(t.Context(), configMap(space, "", nil)); !apierrors.IsInvalid(err) {
		t.Errorf("no name at all: %v", err)
	}
	if err := api.Create(t.Context(), configMap("nowhere", "settings", nil)); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace that is not there: %v", err)
	}
}

func TestAnUpdateOfWhatIsNotThereCreatesNothing(t *testing.T) {
	missing := configMap(namespace(t), "missing", nil)
	if err := api.Update(t.Context(), missing); !apierrors.IsNotFound(err) {
		t.Errorf("a config map: %v", err)
	}
	fern := plant(missing.Namespace, "missing")
	fern.ResourceVersion = "1"
	if err := api.Update(t.Context(), fern); !apierrors.IsNotFound(err) {
		t.Errorf("a plant: %v", err)
	}
	fern.UID = "0c0ffee0-0000-4000-8000-000000000000"
	if err := api.Create(t.Context(), fern); err == nil || err.Error() != "resourceVersion should not be set on objects to be created" {
		t.Errorf("a creation with a version: %v", err)
	}
}
