package main

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Types that have a way of their own in JSON or protobuf.
var special = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():                                  "time",
	reflect.TypeFor[meta.MicroTime]():                             "microtime",
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "intstr",
	reflect.TypeFor[runtime.RawExtension]():                       "json",
	reflect.TypeFor[meta.FieldsV1]():                              "json",
	reflect.TypeFor[apiextensions.JSON]():                         "json",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schema-or-bool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schema-or-list",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schema-or-strings",
}

// Kinds of every group that are no objects of one: what is asked for, and what watches tell.
var shared = []reflect.Type{
	reflect.TypeFor[meta.DeleteOptions](), reflect.TypeFor[meta.Status](), reflect.TypeFor[meta.WatchEvent](),
	reflect.TypeFor[meta.PartialObjectMetadata](), reflect.TypeFor[meta.PartialObjectMetadataList](),
	reflect.TypeFor[meta.LabelSelector](), reflect.TypeFor[meta.APIVersions](), reflect.TypeFor[meta.APIGroupList](),
	reflect.TypeFor[meta.APIResourceList](),
	reflect.TypeFor[apidiscovery.APIGroupDiscoveryList](),
}

// typesOf gives all struct types that the objects of these versions are made of, by their short names.
func typesOf(versions []string) map[string]reflect.Type {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	found := map[string]reflect.Type{}
	for _, one := range shared {
		walk(one, found)
	}
	for _, version := range versions {
		group, err := schema.ParseGroupVersion(version)
		if err != nil {
			panic(err)
		}
		for _, one := range known.KnownTypes(group) {
			// Options of every group are types of meta/v1.
			if one.PkgPath() != reflect.TypeFor[meta.Status]().PkgPath() {
				walk(one, found)
			}
		}
	}
	return found
}

func walk(one reflect.Type, found map[string]reflect.Type) {
	switch one.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walk(one.Elem(), found)
		return
	case reflect.Struct:
	default:
		return
	}
	schemas := one.PkgPath() == reflect.TypeFor[apiextensions.JSON]().PkgPath()
	if _, is := special[one]; is && !(schemas && strings.HasPrefix(one.Name(), "JSONSchema")) {
		return
	}
	name := short(one)
	if _, seen := found[name]; seen || one.Name() == "TypeMeta" {
		return
	}
	if _, is := special[one]; !is {
		found[name] = one
	}
	for i := range one.NumField() {
		if field := one.Field(i); field.IsExported() {
			walk(field.Type, found)
		}
	}
}

// short is the name of a type as messages have it: the last two parts of its package, and its name.
func short(one reflect.Type) string {
	return shortPackage(one.PkgPath()) + "." + one.Name()
}

func shortPackage(path string) string {
	parts := strings.Split(path, "/")
	if last := parts[len(parts)-1]; !strings.HasPrefix(last, "v") {
		return last
	}
	return strings.Join(parts[len(parts)-2:], "/")
}

func sorted[V any](all map[string]V) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func printFields(types map[string]reflect.Type) error {
	for _, name := range sorted(types) {
		one := types[name]
		var lines []string
		for i := range one.NumField() {
			field := one.Field(i)
			if !field.IsExported() || field.Type.Name() == "TypeMeta" {
				continue
			}
			made, err := fieldLine(shortPackage(one.PkgPath()), field)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", name, field.Name, err)
			}
			lines = append(lines, made)
		}
		fmt.Printf("[%s]\n", name)
		for _, one := range lines {
			fmt.Println(one)
		}
	}
	return nil
}

// A field of a message: "1 name string!", and "1 name string! v1.Protocol" where its type has a name of its own.
func fieldLine(home string, field reflect.StructField) (string, error) {
	json := strings.Split(field.Tag.Get("json"), ",")
	name := json[0]
	option := func(wanted string) bool {
		for _, one := range json[1:] {
			if one == wanted {
				return true
			}
		}
		return false
	}
	if option("inline") || (field.Anonymous && name == "") {
		name = "."
	}
	number := 0 // no number: the type is not known to protobuf
	if parts := strings.Split(field.Tag.Get("protobuf"), ","); len(parts) > 1 {
		var err error
		if number, err = strconv.Atoi(parts[1]); err != nil {
			return "", err
		}
	}
	of, pointer := field.Type, false
	if of.Kind() == reflect.Pointer {
		of, pointer = of.Elem(), true
	}
	kind, err := typeOf(home, of)
	if err != nil {
		return "", err
	}
	empties := option("omitempty") && (pointer || of.Kind() != reflect.Struct)
	mark := ""
	if pointer {
		mark = "?"
	}
	if name != "." && !empties && !option("omitzero") {
		mark += "!"
	}
	if isNamed(of) {
		mark += " " + of.String()
	}
	return fmt.Sprintf("%d %s %s%s", number, name, kind, mark), nil
}

// isNamed tells whether a type that is no struct, or what it is a list or map of, has a name that Go's messages tell.
func isNamed(one reflect.Type) bool {
	if _, is := special[one]; is || one.Kind() == reflect.Struct {
		return false
	}
	if one.PkgPath() != "" {
		return true
	}
	switch one.Kind() {
	case reflect.Map:
		return isNamed(one.Key()) || isNamed(one.Elem())
	case reflect.Pointer, reflect.Slice:
		return isNamed(one.Elem())
	}
	return false
}

func typeOf(home string, one reflect.Type) (string, error) {
	if kind, is := special[one]; is {
		return kind, nil
	}
	switch one.Kind() {
	case reflect.Pointer:
		return typeOf(home, one.Elem())
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "bool", nil
	case reflect.Int32:
		return "int32", nil
	case reflect.Int64, reflect.Int:
		return "int64", nil
	case reflect.Uint8, reflect.Uint32:
		return "uint32", nil
	case reflect.Float64:
		return "double", nil
	case reflect.Slice:
		if one.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		// Lists of texts that are a message of their own, such as ExtraValue.
		if _, is := reflect.PointerTo(one).MethodByName("MarshalTo"); is {
			return "strings", nil
		}
		of, err := typeOf(home, one.Elem())
		return "[]" + of, err
	case reflect.Map:
		of, err := typeOf(home, one.Elem())
		return "{}" + of, err
	case reflect.Interface:
		return "json", nil
	case reflect.Struct:
		if shortPackage(one.PkgPath()) == home {
			return one.Name(), nil
		}
		return short(one), nil
	}
	return "", fmt.Errorf("no word for %s", one)
}
