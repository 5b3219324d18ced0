package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
)

// printTags prints the `+k8s:` tags of types ("." stands for the type itself) and of their fields, in the order of the source.
func printTags(types map[string]reflect.Type) error {
	packages := map[string]bool{}
	for _, one := range types {
		packages[one.PkgPath()] = true
	}
	found := map[string][]string{}
	for _, path := range sorted(packages) {
		if err := tagsOf(path, found); err != nil {
			return err
		}
	}
	for _, name := range sorted(found) {
		fmt.Printf("[%s]\n%s\n", name, strings.Join(found[name], "\n"))
	}
	return nil
}

func tagsOf(path string, found map[string][]string) error {
	place, err := build.Import(path, ".", build.FindOnly)
	if err != nil {
		return err
	}
	sources := func(file fs.FileInfo) bool { return !strings.HasSuffix(file.Name(), "_test.go") }
	parsed, err := parser.ParseDir(token.NewFileSet(), place.Dir, sources, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, one := range parsed {
		for _, name := range sorted(one.Files) {
			for _, declared := range one.Files[name].Decls {
				if general, is := declared.(*ast.GenDecl); is && general.Tok == token.TYPE {
					typeTags(shortPackage(path), general, found)
				}
			}
		}
	}
	return nil
}

func typeTags(home string, general *ast.GenDecl, found map[string][]string) {
	for _, specification := range general.Specs {
		one := specification.(*ast.TypeSpec)
		name := home + "." + one.Name.Name
		add := func(field string, comments *ast.CommentGroup) {
			if comments == nil {
				return
			}
			for _, comment := range comments.List {
				text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
				// What makes code, and says nothing of objects.
				generates := strings.HasPrefix(text, "+k8s:deepcopy-gen") || strings.HasPrefix(text, "+k8s:openapi-") ||
					strings.HasPrefix(text, "+k8s:prerelease-") || strings.HasPrefix(text, "+k8s:validation-gen") ||
					strings.HasPrefix(text, "+k8s:protobuf-") || strings.HasPrefix(text, "+k8s:conversion-") ||
					strings.HasPrefix(text, "+k8s:defaulter-")
				if strings.HasPrefix(text, "+k8s:") && !generates {
					found[name] = append(found[name], field+" "+text)
				}
			}
		}
		add(".", general.Doc)
		add(".", one.Doc)
		fields, is := one.Type.(*ast.StructType)
		if !is {
			continue
		}
		for _, field := range fields.Fields.List {
			json := ""
			if field.Tag != nil {
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
				json = strings.Split(tag.Get("json"), ",")[0]
			}
			if json == "" && len(field.Names) > 0 {
				json = field.Names[0].Name
			}
			if json == "" {
				json = "."
			}
			add(json, field.Doc)
		}
	}
}
