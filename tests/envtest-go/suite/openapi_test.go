package suite_test

import (
	"encoding/json"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"kubewright.dev/envtest-go/harness"
)

// What a document says as messages: what these leave open is text in YAML, of which there are many for one value.
func said(t *testing.T, document proto.Message) any {
	t.Helper()
	text, err := protojson.Marshal(document)
	harness.Must(t, err)
	var value any
	harness.Must(t, json.Unmarshal(text, &value))
	return readYAML(t, value)
}

func readYAML(t *testing.T, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if text, ok := member.(string); ok && name == "yaml" {
				var read any
				harness.Must(t, yaml.Unmarshal([]byte(text), &read))
				value[name] = read
			} else {
				value[name] = readYAML(t, member)
			}
		}
	case []any:
		for index, item := range value {
			value[index] = readYAML(t, item)
		}
	}
	return value
}

func document(t *testing.T, path, mediaType string) []byte {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	harness.Must(t, err)
	bytes, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", mediaType).DoRaw(t.Context())
	harness.Must(t, err)
	return bytes
}

// differs says where two values are not the same, or nothing.
func differs(path string, one, other any) string {
	switch one := one.(type) {
	case map[string]any:
		other, ok := other.(map[string]any)
		if !ok {
			return path
		}
		for name := range other {
			if _, ok := one[name]; !ok {
				return path + "/" + name
			}
		}
		for name, member := range one {
			if where := differs(path+"/"+name, member, other[name]); where != "" {
				return where
			}
		}
		return ""
	case []any:
		other, ok := other.([]any)
		if !ok || len(one) != len(other) {
			return path
		}
		for index, item := range one {
			if where := differs(path+"/-", item, other[index]); where != "" {
				return where
			}
		}
		return ""
	}
	if one != other {
		return path
	}
	return ""
}

func TestDiscoveryHasTheSchemasOfAllKinds(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	harness.Must(t, err)
	document, err := client.OpenAPISchema()
	harness.Must(t, err)
	kinds := map[string]bool{}
	for _, definition := range document.Definitions.AdditionalProperties {
		for _, extension := range definition.Value.VendorExtension {
			if extension.Name == "x-kubernetes-group-version-kind" {
				var of []struct{ Group, Version, Kind string }
				harness.Must(t, yaml.Unmarshal([]byte(extension.Value.Yaml), &of))
				for _, one := range of {
					kinds[one.Group+"/"+one.Version+"/"+one.Kind] = true
				}
			}
		}
	}
	for _, kind := range []string{"/v1/Pod", "apps/v1/Deployment", "garden.kubewright.dev/v1/Plant"} {
		if !kinds[kind] {
			t.Errorf("there is no %s among %d kinds", kind, len(kinds))
		}
	}
}

// kube-apiserver makes the messages of the JSON, by gnostic.
func TestOpenAPIInProtobufSaysWhatItSaysInJSON(t *testing.T) {
	ours := &openapi_v2.Document{}
	harness.Must(t, proto.Unmarshal(document(t, "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), ours))
	parsed, err := openapi_v2.ParseDocument(document(t, "/openapi/v2", "application/json"))
	if err != nil {
		t.Fatalf("%.2000s", err.Error())
	}
	if where := differs("", said(t, ours), said(t, parsed)); where != "" {
		t.Errorf("v2 differs at %s", where)
	}

	var index struct{ Paths map[string]any }
	harness.Must(t, json.Unmarshal(document(t, "/openapi/v3", "application/json"), &index))
	compared := 0
	for path := range index.Paths {
		ours := &openapi_v3.Document{}
		harness.Must(t, proto.Unmarshal(document(t, "/openapi/v3/"+path, "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"), ours))
		parsed, err := openapi_v3.ParseDocument(document(t, "/openapi/v3/"+path, "application/json"))
		if err != nil {
			t.Fatalf("%s: %.2000s", path, err.Error())
		}
		if where := differs("", said(t, ours), said(t, parsed)); where != "" {
			t.Errorf("%s differs at %s", path, where)
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("only %d versions were compared", compared)
	}
}
