// Package program finds the kubewright program.
package program

import (
	"fmt"
	"os"
	"os/exec"
)

// Variable is the environment variable that names the program.
const Variable = "KUBEWRIGHT"

// Find returns the path of the program: that in the variable KUBEWRIGHT, else `kubewright` on the PATH.
// It fails when the variable names no program that can be run, or when there is neither.
func Find() (string, error) {
	if named := os.Getenv(Variable); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("the variable %s is %q, which cannot be run: %w; "+
				"give it the absolute path of the kubewright program (go test runs in the folder of the package)",
				Variable, named, err)
		}
		return path, nil
	}
	path, err := exec.LookPath("kubewright")
	if err != nil {
		return "", fmt.Errorf("there is no kubewright program: set the variable %s to its path, "+
			"put a `kubewright` on the PATH, or install one there with `cargo install --locked kubewright-cli` "+
			"or from a release archive", Variable)
	}
	return path, nil
}
