// Asks the published Go modules of Kubernetes, and a kube-apiserver that runs, for what `cargo xtask spec` writes down.
//
//	spec key FILE                     makes a private key for the tokens of service accounts
//	spec fields GROUP/VERSION...      prints the fields of all types of these versions: numbers, names, types (fields.txt)
//	spec tags GROUP/VERSION...        prints the tags of declarative validation in their sources (tags.txt)
//	spec structs FOLDER TYPE...       prints the internal types that these are made of, from the sources of Kubernetes (structs.txt)
//	spec ask ADDRESS TOKEN FOLDER     keeps what a server says of itself, as it says it, in the folder
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "spec:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return fmt.Errorf("a command and what it is about are missing")
	}
	rest := arguments[1:]
	switch arguments[0] {
	case "key":
		return writeKey(rest[0])
	case "fields":
		return printFields(typesOf(rest))
	case "tags":
		return printTags(typesOf(rest))
	case "structs":
		return printStructs(rest[0], rest[1:])
	case "ask":
		if len(rest) != 3 {
			return fmt.Errorf("ask takes an address, a token and a folder")
		}
		return ask(rest[0], rest[1], rest[2])
	}
	return fmt.Errorf("no such command: %s", arguments[0])
}
