// Package v1alpha1 has the kind Plant as it was once: water in millilitres, and no neighbours.
package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "kubewright.dev/envtest-go/garden/v1"
)

// GroupVersion is garden.kubewright.dev/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "garden.kubewright.dev", Version: "v1alpha1"}

// keptNeighbours is the annotation that carries what this version has no field for.
const keptNeighbours = "garden.kubewright.dev/neighbours"

// AddToScheme adds the kinds of this version.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Plant{}, &PlantList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// PlantSpec is what the gardener wants.
type PlantSpec struct {
	Species     string `json:"species"`
	Pots        *int32 `json:"pots,omitempty"`
	Millilitres int32  `json:"millilitres,omitempty"`
	Bed         string `json:"bed,omitempty"`
}

// Plant is one entry of the garden's plan.
type Plant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PlantSpec      `json:"spec,omitempty"`
	Status v1.PlantStatus `json:"status,omitempty"`
}

// PlantList is a list of plants.
type PlantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Plant `json:"items"`
}

// ConvertTo gives it as the hub.
func (p *Plant) ConvertTo(hub conversion.Hub) error {
	stored := hub.(*v1.Plant)
	in := p.DeepCopy()
	stored.ObjectMeta = in.ObjectMeta
	stored.Status = in.Status
	stored.Spec = v1.PlantSpec{
		Species: in.Spec.Species,
		Pots:    in.Spec.Pots,
		Litres:  in.Spec.Millilitres / 1000,
		Bed:     in.Spec.Bed,
	}
	if kept, found := stored.Annotations[keptNeighbours]; found {
		delete(stored.Annotations, keptNeighbours)
		return json.Unmarshal([]byte(kept), &stored.Spec.Neighbours)
	}
	return nil
}

// ConvertFrom takes it from the hub.
func (p *Plant) ConvertFrom(hub conversion.Hub) error {
	stored := hub.(*v1.Plant).DeepCopy()
	p.ObjectMeta = stored.ObjectMeta
	p.Status = stored.Status
	p.Spec = PlantSpec{
		Species:     stored.Spec.Species,
		Pots:        stored.Spec.Pots,
		Millilitres: stored.Spec.Litres * 1000,
		Bed:         stored.Spec.Bed,
	}
	if len(stored.Spec.Neighbours) == 0 {
		return nil
	}
	kept, err := json.Marshal(stored.Spec.Neighbours)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, keptNeighbours, string(kept))
	return nil
}

// DeepCopyObject copies.
func (p *Plant) DeepCopyObject() runtime.Object {
	return p.DeepCopy()
}

// DeepCopy copies.
func (p *Plant) DeepCopy() *Plant {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	if p.Spec.Pots != nil {
		pots := *p.Spec.Pots
		out.Spec.Pots = &pots
	}
	out.Status.Conditions = append([]metav1.Condition(nil), p.Status.Conditions...)
	return &out
}

// DeepCopyObject copies.
func (l *PlantList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = make([]Plant, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}
