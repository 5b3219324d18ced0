package suite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	gardenv1alpha1 "kubewright.dev/envtest-go/garden/v1alpha1"
	"kubewright.dev/envtest-go/harness"
)

func TestAnInstalledDefinitionIsEstablishedAndConvertedByTheTest(t *testing.T) {
	if len(environment.CRDs) != 1 {
		t.Fatalf("the environment installed %d definitions", len(environment.CRDs))
	}
	installed := environment.CRDs[0]
	if installed.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		t.Errorf("conversion: %+v", installed.Spec.Conversion)
	}
	seen := &unstructured.Unstructured{}
	seen.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Name: "plants.garden.kubewright.dev"}, seen))
	conditions, _, err := unstructured.NestedSlice(seen.Object, "status", "conditions")
	harness.Must(t, err)
	for _, wanted := range []string{"NamesAccepted", "Established"} {
		if !slices.ContainsFunc(conditions, func(condition any) bool {
			fields := condition.(map[string]any)
			return fields["type"] == wanted && fields["status"] == "True"
		}) {
			t.Errorf("no condition %s=True in %v", wanted, conditions)
		}
	}
	stored, _, err := unstructured.NestedStringSlice(seen.Object, "status", "storedVersions")
	harness.Must(t, err)
	if !slices.Equal(stored, []string{"v1"}) {
		t.Errorf("stored versions: %v", stored)
	}
}

func TestDiscoveryTellsOfAllVersionsAndSubresources(t *testing.T) {
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	harness.Must(t, err)
	for version, wanted := range map[string][]string{
		"v1":       {"plants", "plants/scale", "plants/status"},
		"v1alpha1": {"plants", "plants/status"},
	} {
		listed, err := asked.ServerResourcesForGroupVersion("garden.kubewright.dev/" + version)
		harness.Must(t, err)
		var names []string
		for _, resource := range listed.APIResources {
			names = append(names, resource.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, wanted) {
			t.Errorf("%s lists %v", version, names)
		}
	}
}

func TestTheMapperFindsTheCustomKind(t *testing.T) {
	mapping, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: "garden.kubewright.dev", Kind: "Plant"})
	harness.Must(t, err)
	if mapping.Resource != gardenv1.GroupVersion.WithResource("plants") || mapping.Scope.Name() != "namespace" {
		t.Errorf("mapping: %+v", mapping)
	}
}

func TestObjectsAreConvertedBetweenVersions(t *testing.T) {
	space := namespace(t)
	modern := plant(space, "modern")
	modern.Spec.Neighbours = []string{"moss", "ivy"}
	created(t, modern)

	var old gardenv1alpha1.Plant
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(modern), &old))
	if old.Spec.Millilitres != 2000 || old.Annotations["garden.kubewright.dev/neighbours"] != `["moss","ivy"]` {
		t.Errorf("as v1alpha1: %+v %v", old.Spec, old.Annotations)
	}
	old.Spec.Millilitres = 5000
	harness.Must(t, api.Update(t.Context(), &old))
	harness.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(modern), modern))
	if modern.Spec.Litres != 5 || !slices.Equal(modern.Spec.Neighbours, []string{"moss", "ivy"}) {
		t.Errorf("as v1 again: %+v", modern.Spec)
	}

	var all gardenv1alpha1.PlantList
	harness.Must(t, api.List(t.Context(), &all, client.InNamespace(space)))
	if len(all.Items) != 1 || all.Items[0].Spec.Millilitres != 5000 {
		t.Errorf("a list is converted too: %+v", all.Items)
	}
}

func TestADeprecatedVersionWarns(t *testing.T) {
	warnings := &collected{}
	asked := rest.CopyConfig(config)
	asked.WarningHandler = warnings
	var all gardenv1alpha1.PlantList
	harness.Must(t, harness.Client(t, asked).List(t.Context(), &all))
	if !warnings.has("plants are grown in garden.kubewright.dev/v1 now") {
		t.Errorf("warnings: %q", warnings.all())
	}
}

func TestTheSchemaDefaultsValidatesAndPrunes(t *testing.T) {
	space := namespace(t)
	made := unstructuredPlant(space, "made", map[string]any{"species": "fern", "scent": "sweet"})
	harness.Must(t, api.Create(t.Context(), made))
	spec := made.Object["spec"].(map[string]any)
	if spec["pots"] != int64(1) || spec["bed"] != "window" {
		t.Errorf("defaults: %v", spec)
	}
	if _, found := spec["scent"]; found {
		t.Errorf("unknown fields are pruned: %v", spec)
	}

	bad := unstructuredPlant(space, "bad", map[string]any{"species": "x", "bed": "cellar", "litres": int64(51)})
	err := api.Create(t.Context(), bad)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("the answer was: %v", err)
	}
	for _, part := range []string{
		`Plant.garden.kubewright.dev "bad" is invalid: [`,
		`spec.species: Invalid value: "x": spec.species in body should be at least 2 chars long`,
		`spec.bed: Unsupported value: "cellar": supported values: "sun", "shade", "window"`,
		`spec.litres: Invalid value: 51: spec.litres in body should be less than or equal to 50`,
		`some validation rules were not checked because the object was invalid`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || len(status.Status().Details.Causes) != 4 {
		t.Errorf("causes: %+v", err)
	}
}

func TestARuleOfTheSchemaSeesTheOldValue(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	made.Spec.Species = "oak"
	err := api.Update(t.Context(), made)
	want := `Plant.garden.kubewright.dev "fern" is invalid: spec.species: Invalid value: "oak": a plant keeps its species`
	if !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("the answer was: %v", err)
	}
}

func TestADefinitionCanBeUpdatedAndUninstalled(t *testing.T) {
	definition := bulbs("bulbs")
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}}
	_, err := envtest.InstallCRDs(config, options)
	harness.Must(t, err)
	bulb := &unstructured.Unstructured{}
	bulb.SetAPIVersion("bulbs.kubewright.dev/v1")
	bulb.SetKind("Bulb")
	bulb.SetName("tulip")
	harness.Must(t, harness.Client(t, config).Create(t.Context(), bulb))

	more := bulbs("bulbs")
	more.Spec.Versions = append(more.Spec.Versions, *more.Spec.Versions[0].DeepCopy())
	more.Spec.Versions[1].Name, more.Spec.Versions[1].Storage = "v2", false
	options.CRDs[0] = more
	_, err = envtest.InstallCRDs(config, options)
	harness.Must(t, err)
	bulb.SetAPIVersion("bulbs.kubewright.dev/v2")
	harness.Must(t, harness.Client(t, config).Get(t.Context(), client.ObjectKey{Name: "tulip"}, bulb))

	harness.Must(t, envtest.UninstallCRDs(config, options))
	harness.Eventually(t, "the kind is gone", func() error {
		err := harness.Client(t, config).Get(t.Context(), client.ObjectKey{Name: "tulip"}, bulb)
		if err == nil {
			return errors.New("the object is still there")
		}
		return nil
	})
}

// bulbs is a definition of a cluster-scoped kind of which the schema says nothing.
func bulbs(plural string) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.bulbs.kubewright.dev", plural)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "bulbs.kubewright.dev",
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Bulb", ListKind: "BulbList", Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &anything,
				}},
			}},
		},
	}
}
