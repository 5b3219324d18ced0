package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

type text struct {
	Text string `json:"text"`
}

func quantity(asked text) any {
	parsed, err := resource.ParseQuantity(strings.TrimSpace(asked.Text))
	if err != nil {
		return refused(err)
	}
	return map[string]any{"text": parsed.String(), "sign": parsed.Sign()}
}

func duration(asked text) any {
	parsed, err := time.ParseDuration(asked.Text)
	if err != nil {
		return refused(err)
	}
	return map[string]any{"nanoseconds": parsed.Nanoseconds()}
}

func timestamp(asked text) any {
	quoted, err := json.Marshal(asked.Text)
	if err != nil {
		return refused(err)
	}
	var parsed metav1.Time
	if err := json.Unmarshal(quoted, &parsed); err != nil {
		return refused(err)
	}
	if parsed.IsZero() {
		return map[string]any{"zero": true}
	}
	return map[string]any{"time": parsed.UTC().Format(time.RFC3339)}
}

type named struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

func name(asked named) any {
	rules := map[string]func(string) []string{
		"label":             validation.IsDNS1123Label,
		"label-1035":        validation.IsDNS1035Label,
		"subdomain":         validation.IsDNS1123Subdomain,
		"wildcard":          validation.IsWildcardDNS1123Subdomain,
		"key":               validation.IsQualifiedName,
		"value":             validation.IsValidLabelValue,
		"port":              validation.IsValidPortName,
		"environment":       validation.IsRelaxedEnvVarName,
		"configuration-key": validation.IsConfigMapKey,
		"header":            validation.IsHTTPHeaderName,
		"percent":           validation.IsValidPercent,
	}
	rule, known := rules[asked.Rule]
	if !known {
		return none("there is no such rule")
	}
	return map[string]any{"errors": append([]string{}, rule(asked.Text)...)}
}

type selected struct {
	Text   string              `json:"text"`
	Labels []map[string]string `json:"labels"`
}

func selector(asked selected) any {
	parsed, err := labels.Parse(asked.Text)
	if err != nil {
		return refused(err)
	}
	matches := []bool{}
	for _, set := range asked.Labels {
		matches = append(matches, parsed.Matches(labels.Set(set)))
	}
	return map[string]any{"matches": matches}
}

type due struct {
	Text  string      `json:"text"`
	After []time.Time `json:"after"`
}

func scheduled(asked due) any {
	schedule, err := cron.ParseStandard(asked.Text)
	if err != nil {
		return refused(err)
	}
	next := []any{}
	for _, after := range asked.After {
		if at := schedule.Next(after); at.IsZero() {
			next = append(next, nil)
		} else {
			next = append(next, at.UTC().Format(time.RFC3339))
		}
	}
	return map[string]any{"next": next}
}

type matched struct {
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
}

func pattern(asked matched) any {
	compiled, err := regexp.Compile(asked.Pattern)
	if err != nil {
		return refused(err)
	}
	matches := []bool{}
	for _, text := range asked.Texts {
		matches = append(matches, compiled.MatchString(text))
	}
	return map[string]any{"matches": matches}
}

type formatted struct {
	Format string `json:"format"`
	Text   string `json:"text"`
}

func format(asked formatted) any {
	if !strfmt.Default.ContainsName(asked.Format) {
		return none("there is no such format")
	}
	return map[string]any{asked.Format: strfmt.Default.Validates(asked.Format, asked.Text)}
}
