// Package v1 has the kind Plant as it is stored: what the suites bring along as "the user's own API".
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is garden.kubewright.dev/v1.
var GroupVersion = schema.GroupVersion{Group: "garden.kubewright.dev", Version: "v1"}

// AddToScheme adds the kinds of this version.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Plant{}, &PlantList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// PlantSpec is what the gardener wants.
type PlantSpec struct {
	// Species cannot change once it is planted.
	Species string `json:"species"`
	// Pots is how many of them there are; the scale subresource reads and writes it.
	Pots *int32 `json:"pots,omitempty"`
	// Litres of water for a day.
	Litres int32 `json:"litres,omitempty"`
	// Bed is where it stands: sun, shade or window, which is the default.
	Bed string `json:"bed,omitempty"`
	// Neighbours are a set.
	Neighbours []string `json:"neighbours,omitempty"`
}

// PlantStatus is what the garden's operator saw.
type PlantStatus struct {
	Pots       int32              `json:"pots,omitempty"`
	Selector   string             `json:"selector,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Plant is one entry of the garden's plan.
type Plant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PlantSpec   `json:"spec,omitempty"`
	Status PlantStatus `json:"status,omitempty"`
}

// PlantList is a list of plants.
type PlantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Plant `json:"items"`
}

// Hub says that other versions are converted through this one.
func (*Plant) Hub() {}

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
	out.Spec.Neighbours = append([]string(nil), p.Spec.Neighbours...)
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
