package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
)

// The groups whose internal types are read: the folder in pkg/apis, and the package that publishes them.
var groups = map[string]string{
	"admissionregistration": "k8s.io/api/admissionregistration/v1",
	"apps":                  "k8s.io/api/apps/v1",
	"batch":                 "k8s.io/api/batch/v1",
	"core":                  "k8s.io/api/core/v1",
	"storage":               "k8s.io/api/storage/v1",
}

// What types of other packages are called.
var foreign = map[string]string{
	"resource.Quantity": "quantity", "intstr.IntOrString": "intstr", "metav1.Time": "time", "metav1.MicroTime": "microtime",
	"types.UID": "string", "runtime.Object": "json", "runtime.RawExtension": "json",
}

// The types of the packages that were read, by group and name.
type declared map[string]map[string]ast.Expr

// printStructs prints the internal types that the roots ("core.PodSpec") are made of, in the order of the source: the name in
// Go, the name in JSON of the published type, and what it is.
func printStructs(kubernetes string, roots []string) error {
	internal, published := declared{}, declared{}
	for group, path := range groups {
		if err := internal.read(group, filepath.Join(kubernetes, "pkg/apis", group)); err != nil {
			return err
		}
		place, err := build.Import(path, ".", build.FindOnly)
		if err != nil {
			return err
		}
		if err := published.read(group, place.Dir); err != nil {
			return err
		}
	}
	found := map[string][]string{}
	for len(roots) > 0 {
		name := roots[0]
		roots = roots[1:]
		if _, seen := found[name]; seen {
			continue
		}
		lines, more, err := internal.lines(name, published)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found[name] = lines
		roots = append(roots, more...)
	}
	for _, name := range sorted(found) {
		fmt.Printf("[%s]\n%s", name, strings.Join(append(found[name], ""), "\n"))
	}
	return nil
}

func (all declared) read(group, folder string) error {
	sources := func(file fs.FileInfo) bool { return !strings.HasSuffix(file.Name(), "_test.go") }
	parsed, err := parser.ParseDir(token.NewFileSet(), folder, sources, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	all[group] = map[string]ast.Expr{}
	for _, one := range parsed {
		for _, file := range one.Files {
			for _, declaration := range file.Decls {
				general, is := declaration.(*ast.GenDecl)
				if !is || general.Tok != token.TYPE {
					continue
				}
				for _, specification := range general.Specs {
					one := specification.(*ast.TypeSpec)
					all[group][one.Name.Name] = one.Type
				}
			}
		}
	}
	return nil
}

// lines are those of a struct, and the other structs that it is made of.
func (all declared) lines(name string, published declared) (lines, more []string, err error) {
	group, of, _ := strings.Cut(name, ".")
	fields, is := all[group][of].(*ast.StructType)
	if !is {
		return nil, nil, fmt.Errorf("no struct has that name")
	}
	tags := map[string]string{}
	if published, is := published[group][of].(*ast.StructType); is {
		for _, field := range published.Fields.List {
			for _, name := range field.Names {
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
				tags[name.Name], _, _ = strings.Cut(tag.Get("json"), ",")
			}
		}
	}
	for _, field := range fields.Fields.List {
		kind, err := all.kind(group, field.Type, &more)
		if err != nil {
			return nil, nil, err
		}
		if len(field.Names) == 0 {
			if kind != "meta/v1.TypeMeta" {
				lines = append(lines, ". . "+kind)
			}
			continue
		}
		for _, name := range field.Names {
			json := tags[name.Name]
			if json == "" {
				json = string(unicode.ToLower(rune(name.Name[0]))) + name.Name[1:]
			}
			lines = append(lines, strings.Join([]string{name.Name, json, kind}, " "))
		}
	}
	return lines, more, nil
}

func (all declared) kind(group string, of ast.Expr, more *[]string) (string, error) {
	switch of := of.(type) {
	case *ast.StarExpr:
		kind, err := all.kind(group, of.X, more)
		return "*" + kind, err
	case *ast.ArrayType:
		if element, is := of.Elt.(*ast.Ident); is && element.Name == "byte" {
			return "bytes", nil
		}
		kind, err := all.kind(group, of.Elt, more)
		return "[]" + kind, err
	case *ast.MapType:
		kind, err := all.kind(group, of.Value, more)
		return "{}" + kind, err
	case *ast.SelectorExpr:
		home, name := of.X.(*ast.Ident).Name, of.Sel.Name
		if kind, is := foreign[home+"."+name]; is {
			return kind, nil
		}
		if home == "metav1" {
			return "meta/v1." + name, nil
		}
		if home == "api" {
			home = "core"
		}
		return all.kind(home, of.Sel, more)
	case *ast.Ident:
		switch of.Name {
		case "string", "bool", "int32", "int64":
			return of.Name, nil
		case "int":
			return "int64", nil
		}
		declared, is := all[group][of.Name]
		if !is {
			return "", fmt.Errorf("%s.%s is not known", group, of.Name)
		}
		if _, is := declared.(*ast.StructType); is {
			name := group + "." + of.Name
			*more = append(*more, name)
			return name, nil
		}
		return all.kind(group, declared, more)
	}
	return "", fmt.Errorf("no word for %T", of)
}
