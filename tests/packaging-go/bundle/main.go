// Validates a bundle as `operator-sdk bundle validate --select-optional suite=operatorframework` does: one line for each
// finding, `error: ...` or `warning: ...`; ends with 1 when there is an error.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
)

func main() {
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	objects := bundle.ObjectsToValidate()
	results := validation.DefaultBundleValidators.Validate(objects...)
	results = append(results, validation.OperatorHubV2Validator.Validate(objects...)...)
	results = append(results, validation.GoodPracticesValidator.Validate(objects...)...)
	failed := false
	tell := func(level string, all []errors.Error) {
		for _, one := range all {
			fmt.Printf("%s: %s\n", level, one.Error())
		}
	}
	for _, result := range results {
		tell("error", result.Errors)
		tell("warning", result.Warnings)
		failed = failed || result.HasError()
	}
	if failed {
		os.Exit(1)
	}
}
