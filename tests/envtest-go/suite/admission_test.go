package suite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

const (
	// bornBy is the annotation that the mutating webhook sets.
	bornBy = "garden.kubewright.dev/planted-by"
	// forbiddenSpecies is what the validating webhook does not let in.
	forbiddenSpecies = "hogweed"
	// keep is the annotation of plants that the validating webhook does not let go.
	keep = "garden.kubewright.dev/keep"
)

type plantWebhook struct{}

func addPlantWebhooks(served manager.Manager) error {
	return builder.WebhookManagedBy(served, &gardenv1.Plant{}).
		WithDefaulter(plantWebhook{}).
		WithValidator(plantWebhook{}).
		Complete()
}

// Default writes down who planted it.
func (plantWebhook) Default(ctx context.Context, plant *gardenv1.Plant) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if _, found := plant.Annotations[bornBy]; !found {
		if plant.Annotations == nil {
			plant.Annotations = map[string]string{}
		}
		plant.Annotations[bornBy] = request.UserInfo.Username
	}
	return nil
}

// ValidateCreate has nothing against anything but hogweed, and warns of cacti in the shade.
func (plantWebhook) ValidateCreate(_ context.Context, plant *gardenv1.Plant) (admission.Warnings, error) {
	if plant.Spec.Species == forbiddenSpecies {
		return nil, fmt.Errorf("%s burns the skin", forbiddenSpecies)
	}
	if plant.Spec.Species == "cactus" && plant.Spec.Bed == "shade" {
		return admission.Warnings{"a cactus wants sun"}, nil
	}
	return nil, nil
}

// ValidateUpdate lets nobody take the name of who planted it away.
func (plantWebhook) ValidateUpdate(_ context.Context, old, new *gardenv1.Plant) (admission.Warnings, error) {
	if old.Annotations[bornBy] != new.Annotations[bornBy] {
		return nil, fmt.Errorf("%s is not %s", new.Annotations[bornBy], old.Annotations[bornBy])
	}
	return nil, nil
}

// ValidateDelete guards what is to be kept.
func (plantWebhook) ValidateDelete(_ context.Context, plant *gardenv1.Plant) (admission.Warnings, error) {
	if _, found := plant.Annotations[keep]; found {
		return nil, apierrors.NewForbidden(
			gardenv1.GroupVersion.WithResource("plants").GroupResource(), plant.Name, fmt.Errorf("it is to be kept"))
	}
	return nil, nil
}

func TestTheInstalledConfigurationsPointAtTheTestItself(t *testing.T) {
	var mutating admissionv1.MutatingWebhookConfiguration
	harness.Must(t, api.Get(t.Context(), client.ObjectKey{Name: "plants-mutating"}, &mutating))
	called := mutating.Webhooks[0].ClientConfig
	if called.Service != nil || called.URL == nil || !strings.HasSuffix(*called.URL, "//mutate-garden-kubewright-dev-v1-plant") {
		t.Errorf("envtest turns the service into a URL: %+v", called)
	}
	if *mutating.Webhooks[0].TimeoutSeconds != 10 || *mutating.Webhooks[0].MatchPolicy != admissionv1.Equivalent {
		t.Errorf("defaults: %+v", mutating.Webhooks[0])
	}
}

func TestAMutatingWebhookSeesWhoAsksAndChangesTheObject(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	if made.Annotations[bornBy] != "admin" {
		t.Errorf("annotations: %v", made.Annotations)
	}
}

func TestAValidatingWebhookDeniesWithItsName(t *testing.T) {
	denied := plant(namespace(t), "giant")
	denied.Spec.Species = forbiddenSpecies
	err := api.Create(t.Context(), denied)
	want := `admission webhook "validate.plants.garden.kubewright.dev" denied the request: hogweed burns the skin`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("the answer was: %v", err)
	}
}

func TestAValidatingWebhookSeesTheOldObjectOfAnUpdate(t *testing.T) {
	made := created(t, plant(namespace(t), "fern"))
	made.Annotations[bornBy] = "somebody else"
	err := api.Update(t.Context(), made)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "somebody else is not admin") {
		t.Errorf("the answer was: %v", err)
	}
}

func TestAValidatingWebhookSeesTheObjectThatIsDeleted(t *testing.T) {
	guarded := plant(namespace(t), "old-oak")
	guarded.Annotations = map[string]string{keep: ""}
	created(t, guarded)
	err := api.Delete(t.Context(), guarded)
	want := `admission webhook "validate.plants.garden.kubewright.dev" denied the request: ` +
		`plants.garden.kubewright.dev "old-oak" is forbidden: it is to be kept`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("the answer was: %v", err)
	}
	without := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+keep+`":null}}}`))
	harness.Must(t, api.Patch(t.Context(), guarded, without))
	harness.Must(t, api.Delete(t.Context(), guarded))
}

func TestWarningsOfAWebhookReachTheClient(t *testing.T) {
	warnings := &collected{}
	asked := rest.CopyConfig(config)
	asked.WarningHandler = warnings
	cactus := plant(namespace(t), "cactus")
	cactus.Spec.Species = "cactus"
	harness.Must(t, harness.Client(t, asked).Create(t.Context(), cactus))
	if !warnings.has("a cactus wants sun") {
		t.Errorf("warnings: %q", warnings.all())
	}
}

func TestWebhooksAreAskedInADryRunToo(t *testing.T) {
	tried := plant(namespace(t), "fern")
	harness.Must(t, api.Create(t.Context(), tried, client.DryRunAll))
	if tried.Annotations[bornBy] != "admin" {
		t.Errorf("annotations: %v", tried.Annotations)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(tried), tried); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run leaves nothing behind: %v", err)
	}
}
