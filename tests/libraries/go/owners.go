package main

import (
	"encoding/json"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// converter knows the schemas of built-in types.
var converter = sync.OnceValue(func() managedfields.TypeConverter {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return applyconfigurations.NewTypeConverter(scheme)
})

type step struct {
	Manager string         `json:"manager"`
	Apply   bool           `json:"apply"`
	Force   bool           `json:"force"`
	Object  map[string]any `json:"object"`
}

type owned struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Steps      []step `json:"steps"`
}

// kinds are types that are made blank, and neither converted nor defaulted.
type kinds struct{}

func (kinds) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object, err := clientscheme.Scheme.New(kind)
	if err == nil {
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	return object, err
}

func (kinds) Default(runtime.Object) {}

func (kinds) Convert(in, out, context any) error { return errors.New("there is one version") }

func (kinds) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (kinds) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// owners says who owns which fields after each of several writes, or why one is refused.
func owners(asked owned) any {
	kind := schema.FromAPIVersionAndKind(asked.APIVersion, asked.Kind)
	status := map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(asked.APIVersion): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
	manager, err := managedfields.NewDefaultFieldManager(converter(), kinds{}, kinds{}, kinds{}, kind, kind.GroupVersion(), "",
		fieldpath.NewExcludeFilterSetMap(status))
	if err != nil {
		return none(err)
	}
	live, err := kinds{}.New(kind)
	if err != nil {
		return none(err)
	}
	after := []any{}
	for _, step := range asked.Steps {
		object := &unstructured.Unstructured{Object: step.Object}
		object.SetGroupVersionKind(kind)
		var written runtime.Object = object
		if step.Apply {
			if written, err = manager.Apply(live.DeepCopyObject(), object, step.Manager, step.Force); err != nil {
				after = append(after, refused(err))
				continue
			}
		}
		made, err := typed(kind, written)
		if err != nil {
			after = append(after, map[string]any{"undecodable": true})
			continue
		}
		if !step.Apply {
			made = manager.UpdateNoErrors(live.DeepCopyObject(), made, step.Manager)
		}
		// As it is read once it is stored: without what is empty.
		if live, err = typed(kind, made); err != nil {
			return none(err)
		}
		// A stored object has one: who writes to such a one without owners does not own what is written.
		if accessor, err := meta.Accessor(live); err == nil {
			accessor.SetUID("u")
		}
		after = append(after, owning(live))
	}
	return map[string]any{"after": after}
}

// typed reads an object as its type.
func typed(kind schema.GroupVersionKind, object runtime.Object) (runtime.Object, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	read, err := kinds{}.New(kind)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, read); err != nil {
		return nil, err
	}
	read.GetObjectKind().SetGroupVersionKind(kind)
	return read, nil
}

// owning has the owners of an object, without since when they are.
func owning(object runtime.Object) []any {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	entries := []any{}
	for _, entry := range accessor.GetManagedFields() {
		entries = append(entries, map[string]any{"manager": entry.Manager, "operation": entry.Operation, "fields": entry.FieldsV1})
	}
	return entries
}
