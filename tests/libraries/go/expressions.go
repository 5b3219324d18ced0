package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type evaluated struct {
	Expression string `json:"expression"`
	Object     any    `json:"object"`
}

// dynamic is the environment of expressions whose variable `object` may be anything.
var dynamic = sync.OnceValue(func() *cel.Env {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: environment.DefaultCompatibilityVersion(),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		panic(err)
	}
	env, err := set.Env(environment.StoredExpressions)
	if err != nil {
		panic(err)
	}
	return env
})

func expression(asked evaluated) any {
	env := dynamic()
	ast, issues := env.Compile(asked.Expression)
	if issues != nil {
		return map[string]any{"issues": issues.String()}
	}
	program, err := env.Program(ast,
		cel.CostLimit(celconfig.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}),
		cel.InterruptCheckFrequency(1000),
	)
	if err != nil {
		return map[string]any{"program": err.Error()}
	}
	value, details, err := program.Eval(map[string]any{"object": asked.Object})
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"type": cel.FormatCELType(ast.OutputType()), "value": shown(value), "cost": *details.ActualCost()}
}

func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// shown writes a value with its type.
func shown(value ref.Val) string {
	switch value := value.(type) {
	case types.String:
		return "string " + quoted(string(value))
	case types.Bytes:
		return fmt.Sprintf("bytes %x", []byte(value))
	case *types.Optional:
		if !value.HasValue() {
			return "optional.none()"
		}
		return "optional(" + shown(value.GetValue()) + ")"
	case traits.Lister:
		var items []string
		for it := value.Iterator(); it.HasNext() == types.True; {
			items = append(items, shown(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		var entries []string
		for it := value.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, shown(key)+": "+shown(value.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case types.Null:
		return "null_type null"
	case *types.Type:
		return "type " + value.TypeName()
	case types.Bool, types.Int, types.Uint, types.Double:
		return fmt.Sprintf("%s %v", value.Type().TypeName(), value)
	case types.Duration, types.Timestamp:
		return fmt.Sprintf("%s %v", value.Type().TypeName(), value.ConvertToType(types.StringType))
	}
	return value.Type().TypeName()
}
