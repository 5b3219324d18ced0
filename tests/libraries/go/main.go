// Answers cases by the Go libraries that kube-apiserver is made of: a case a line, the subject and what is asked as JSON; an answer a line.
// `cargo xtask differ --libraries` asks it beside what Kubewright has in their place.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	kjson "sigs.k8s.io/json"
)

// answers has what answers the cases of each subject.
var answers = map[string]func(asked json.RawMessage) any{
	"built-in":   ask(builtIn),
	"cron":       ask(scheduled),
	"definition": ask(definition),
	"duration":   ask(duration),
	"expression": ask(expression),
	"format":     ask(format),
	"json":       ask(decodedJSON),
	"json-patch": ask(patchedByOperations),
	"name":       ask(name),
	"owners":     ask(owners),
	"object":     ask(object),
	"pattern":    ask(pattern),
	"quantity":   ask(quantity),
	"selector":   ask(selector),
	"strategic":  ask(patchedByStrategy),
	"table":      ask(table),
	"time":       ask(timestamp),
	"yaml":       ask(decodedYAML),
}

// ask reads what is asked for a function that answers it: numbers as kube-apiserver reads them.
func ask[T any](answer func(T) any) func(json.RawMessage) any {
	return func(raw json.RawMessage) any {
		var asked T
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &asked); err != nil {
			log.Fatalf("reading %s: %v", raw, err)
		}
		return answer(asked)
	}
}

// refused is the answer where there is none but an error.
func refused(err error) any {
	return map[string]any{"error": err.Error()}
}

// none is the answer where what is asked is no case.
func none(why any) any {
	return map[string]any{"none": fmt.Sprint(why)}
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		var question struct {
			Subject string          `json:"subject"`
			Case    json.RawMessage `json:"case"`
		}
		if err := json.Unmarshal(line, &question); err != nil {
			log.Fatalf("reading %s: %v", line, err)
		}
		answer, known := answers[question.Subject]
		if !known {
			log.Fatalf("there is no subject %q", question.Subject)
		}
		if err := encoder.Encode(caught(answer, question.Case)); err != nil {
			log.Fatal(err)
		}
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
}

// caught answers, also where the library panics.
func caught(answer func(json.RawMessage) any, asked json.RawMessage) (result any) {
	defer func() {
		if why := recover(); why != nil {
			result = none(why)
		}
	}()
	return answer(asked)
}
