package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	kjson "sigs.k8s.io/json"
)

var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
})

// decoded reads a definition, and fills in what it leaves out.
func decoded(raw json.RawMessage) (*apiextensions.CustomResourceDefinition, error) {
	var versioned apiextensionsv1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &versioned); err != nil {
		return nil, err
	}
	scheme().Default(&versioned)
	var internal apiextensions.CustomResourceDefinition
	if err := scheme().Convert(&versioned, &internal, nil); err != nil {
		return nil, err
	}
	return &internal, nil
}

type defined struct {
	New json.RawMessage `json:"new"`
	Old json.RawMessage `json:"old"`
}

// definition says what is wrong with a definition, or with one that replaces another, and what it is warned of.
func definition(asked defined) any {
	ctx := context.Background()
	strategy := customresourcedefinition.NewStrategy(scheme())
	made, err := decoded(asked.New)
	if err != nil {
		return map[string]any{"undecodable": true}
	}
	var errors field.ErrorList
	var warnings []string
	if len(asked.Old) == 0 || string(asked.Old) == "null" {
		strategy.PrepareForCreate(ctx, made)
		errors = strategy.Validate(ctx, made)
		warnings = strategy.WarningsOnCreate(ctx, made)
	} else {
		old, err := decoded(asked.Old)
		if err != nil {
			return map[string]any{"undecodable": true}
		}
		strategy.PrepareForCreate(ctx, old)
		if errors := strategy.Validate(ctx, old); len(errors) > 0 {
			return none(errors.ToAggregate())
		}
		made.Generation = old.Generation
		strategy.PrepareForUpdate(ctx, made, old)
		errors = strategy.ValidateUpdate(ctx, made, old)
		warnings = strategy.WarningsOnUpdate(ctx, made, old)
	}
	if len(errors) > 0 {
		warnings = nil
	}
	return map[string]any{"errors": texts(errors), "warnings": append([]string{}, warnings...)}
}

func texts(errors field.ErrorList) []string {
	found := []string{}
	for _, err := range errors {
		found = append(found, err.Error())
	}
	return found
}

type written struct {
	Schema json.RawMessage `json:"schema"`
	New    json.RawMessage `json:"new"`
	Old    json.RawMessage `json:"old"`
	Status bool            `json:"status"`
}

// object says what becomes of an object of a schema, and what is wrong with it. It needs a schema that a definition can have.
func object(asked written) any {
	wanted, err := decoded(json.RawMessage(fmt.Sprintf(`{"metadata": {"name": "widgets.example.com"}, "spec": {
		"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": %s}}]}}`, asked.Schema)))
	if err != nil {
		return none(err)
	}
	ctx := context.Background()
	customresourcedefinition.NewStrategy(scheme()).PrepareForCreate(ctx, wanted)
	if errors := apiextensionsvalidation.ValidateCustomResourceDefinition(ctx, wanted); len(errors) > 0 {
		return none(errors.ToAggregate())
	}
	internal := wanted.Spec.Validation.OpenAPIV3Schema
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return none(err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return none(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return none(err)
	}
	var statusValidator validation.SchemaValidator
	if status, found := internal.Properties["status"]; found {
		if statusValidator, _, err = validation.NewSchemaValidator(&status); err != nil {
			return none(err)
		}
	}
	made, unknown, failed := read(asked.New, structural)
	if failed != "" {
		return map[string]any{"undecodable": failed}
	}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	strategy := customresource.NewStrategy(nil, true, kind, validator, statusValidator, structural,
		&apiextensions.CustomResourceSubresourceStatus{}, nil, nil)
	var errors field.ErrorList
	if len(asked.Old) == 0 || string(asked.Old) == "null" {
		errors = strategy.Validate(ctx, made)
	} else {
		old, _, failed := read(asked.Old, structural)
		if failed != "" {
			return map[string]any{"undecodable": failed}
		}
		var update rest.RESTUpdateStrategy = strategy
		if asked.Status {
			update = customresource.NewStatusStrategy(strategy)
		}
		errors = update.ValidateUpdate(ctx, made, old)
	}
	return map[string]any{"unknown": unknown, "object": made.Object, "errors": texts(errors)}
}

// read decodes an object of a schema: defaulted and pruned.
func read(raw json.RawMessage, structural *structuralschema.Structural) (*unstructured.Unstructured, []string, string) {
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		return nil, nil, err.Error()
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, structural)
	defaulting.Default(content, structural)
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown := pruning.PruneWithOptions(content, structural, true, options)
	failed, more := objectmeta.CoerceWithOptions(nil, content, structural, true, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if failed != nil {
		return nil, nil, failed.Error()
	}
	return &unstructured.Unstructured{Object: content}, append(append([]string{}, unknown...), more...), ""
}

type tabled struct {
	Columns []apiextensionsv1.CustomResourceColumnDefinition `json:"columns"`
	Object  map[string]any                                   `json:"object"`
}

// table prints an object in the columns of a definition.
func table(asked tabled) any {
	// A column that cannot be read ends them, and is only logged.
	convertor, _ := tableconvertor.New(asked.Columns)
	table, err := convertor.ConvertToTable(context.Background(), &unstructured.Unstructured{Object: asked.Object}, nil)
	if err != nil {
		return refused(err)
	}
	return map[string]any{"cells": table.Rows[0].Cells}
}
