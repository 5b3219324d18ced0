package kubewright

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// RequestFilter selects requests of the log. The zero value selects all, those too that are not for objects.
type RequestFilter struct {
	Match
	// Limit is how many are told in full, the last ones. 0 is 1000.
	Limit int
}

func (f RequestFilter) query() url.Values {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("verbs", strings.Join(f.Verbs, ","))
	set("resource", f.Resource)
	set("namespace", f.Namespace)
	set("name", f.Name)
	set("user", f.User)
	set("userAgent", f.UserAgent)
	if f.Group != nil {
		query.Set("group", *f.Group)
	}
	if f.Subresource != nil {
		query.Set("subresource", *f.Subresource)
	}
	if f.Limit != 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	return query
}

// RequestLog is who called what.
type RequestLog struct {
	// Total is how many requests there were since the log was emptied, whether selected or not.
	Total uint64 `json:"total"`
	// Forgotten is how many of these are not kept any more.
	Forgotten uint64 `json:"forgotten"`
	// Counts say who did what to which resource how often, of those that are selected.
	Counts []RequestCount `json:"counts"`
	// Requests are the last that are selected, oldest first.
	Requests []Request `json:"requests"`
}

// RequestCount says how often a user agent did something to a resource.
type RequestCount struct {
	UserAgent string `json:"userAgent"`
	Verb      string `json:"verb"`
	// Resource is one such as "deployments.apps/status"; a path for what is not for objects.
	Resource string `json:"resource"`
	Count    uint64 `json:"count"`
}

// Request is a request that was answered. A watch is noted when it opens.
type Request struct {
	// Time is when it came, in cluster time.
	Time time.Time `json:"time"`
	// User is who acted; where somebody acted as another, that one.
	User      string `json:"user"`
	UserAgent string `json:"userAgent"`
	// Verb is as RBAC has it.
	Verb string `json:"verb"`
	// Patch is the kind of a patch: json, merge, strategic or apply.
	Patch       string `json:"patch"`
	Group       string `json:"group"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	// Name is the name in the URL. A create has none there.
	Name string `json:"name"`
	// Path is that of a request that is not for objects.
	Path string `json:"path"`
	// Code is the status of the answer; 0 where the connection was cut.
	Code int `json:"code"`
	// Duration is how long the answer took to begin, in cluster time.
	Duration time.Duration `json:"-"`
	// Fault is the id of the rule that struck it; 0 is none.
	Fault uint64 `json:"fault"`
}

// UnmarshalJSON reads what the server writes.
func (r *Request) UnmarshalJSON(data []byte) error {
	type plain Request
	read := struct {
		*plain
		Milliseconds float64 `json:"milliseconds"`
	}{plain: (*plain)(r)}
	err := json.Unmarshal(data, &read)
	r.Duration = time.Duration(read.Milliseconds * float64(time.Millisecond))
	return err
}
