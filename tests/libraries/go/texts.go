package main

import (
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

func decodedJSON(asked text) any {
	var value any
	strict, err := kjson.UnmarshalStrict([]byte(asked.Text), &value)
	if err != nil {
		return map[string]any{"refused": true}
	}
	complaints := []string{}
	for _, why := range strict {
		complaints = append(complaints, why.Error())
	}
	return map[string]any{"value": value, "strict": complaints}
}

func decodedYAML(asked text) any {
	out, err := yaml.YAMLToJSON([]byte(asked.Text))
	if err != nil {
		return map[string]any{"refused": true}
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(out, &value); err != nil {
		return map[string]any{"refused": true}
	}
	return map[string]any{"value": value}
}

type operations struct {
	Patch  string          `json:"patch"`
	Object json.RawMessage `json:"object"`
}

// operation is what strict decoding takes for one.
type operation struct {
	Op    string          `json:"op"`
	From  string          `json:"from"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

func patchedByOperations(asked operations) any {
	var strict []operation
	if _, err := kjson.UnmarshalStrict([]byte(asked.Patch), &strict); err != nil {
		return map[string]any{"undecodable": true}
	}
	patch, err := jsonpatch.DecodePatch([]byte(asked.Patch))
	if err != nil {
		return map[string]any{"undecodable": true}
	}
	out, err := patch.Apply(asked.Object)
	if err != nil {
		return map[string]any{"refused": true}
	}
	return map[string]any{"object": json.RawMessage(out)}
}

var structs = map[string]any{
	"io.k8s.api.core.v1.Pod":                 corev1.Pod{},
	"io.k8s.api.core.v1.Service":             corev1.Service{},
	"io.k8s.api.core.v1.ConfigMap":           corev1.ConfigMap{},
	"io.k8s.api.core.v1.ServiceAccount":      corev1.ServiceAccount{},
	"io.k8s.api.core.v1.Node":                corev1.Node{},
	"io.k8s.api.apps.v1.Deployment":          appsv1.Deployment{},
	"io.k8s.api.networking.v1.NetworkPolicy": networkingv1.NetworkPolicy{},
	"io.k8s.api.rbac.v1.ClusterRoleBinding":  rbacv1.ClusterRoleBinding{},
}

type merged struct {
	Type   string         `json:"type"`
	Patch  map[string]any `json:"patch"`
	Object map[string]any `json:"object"`
}

func patchedByStrategy(asked merged) any {
	if structs[asked.Type] == nil {
		return none("there is no such type")
	}
	out, err := strategicpatch.StrategicMergeMapPatch(asked.Object, asked.Patch, structs[asked.Type])
	if err != nil {
		return refused(err)
	}
	return map[string]any{"object": out}
}
