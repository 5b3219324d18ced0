// Package v1 has the kind Page: what the users of the press ask for.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is press.example/v1.
var GroupVersion = schema.GroupVersion{Group: "press.example", Version: "v1"}

// AddToScheme adds the kinds of this version.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// PageSpec is what a user asks for.
type PageSpec struct {
	// Text is what is to be printed.
	Text string `json:"text"`
	// Footer is what stands below it.
	Footer string `json:"footer,omitempty"`
	// Languages are those into which it is translated.
	Languages []string `json:"languages,omitempty"`
	// Printers is on how many pods it is printed, where the operator has printers.
	Printers int64 `json:"printers,omitempty"`
}

// PageStatus is what the operator last saw.
type PageStatus struct {
	// Ready is whether the page is printed.
	Ready bool `json:"ready"`
	// ObservedGeneration is the generation for which that was found out.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Passes is how often the page was looked at; only the operator with a hot loop counts.
	Passes int64 `json:"passes,omitempty"`
	// Printing is how many printers are ready.
	Printing int64 `json:"printing,omitempty"`
	// Broken is whether a printer is; only the operator that gives up says so.
	Broken bool `json:"broken,omitempty"`
}

// Page is a text that is to be printed.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PageSpec   `json:"spec,omitempty"`
	Status PageStatus `json:"status,omitempty"`
}

// PageList is a list of pages.
type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Page `json:"items"`
}

// DeepCopyObject copies.
func (p *Page) DeepCopyObject() runtime.Object {
	return p.DeepCopy()
}

// DeepCopy copies.
func (p *Page) DeepCopy() *Page {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	out.Spec.Languages = append([]string(nil), p.Spec.Languages...)
	return &out
}

// DeepCopyObject copies.
func (l *PageList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = make([]Page, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}
