package kubewright

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Match selects requests for objects. What is not given may be anything.
type Match struct {
	// Verbs are those of RBAC: get, list, watch, create, update, patch, delete, deletecollection.
	Verbs []string `json:"verbs,omitempty"`
	// Group is the API group; a pointer to "" is the core group.
	Group *string `json:"group,omitempty"`
	// Resource is the plural, such as "deployments".
	Resource string `json:"resource,omitempty"`
	// Subresource is one such as "status"; a pointer to "" is the object itself.
	Subresource *string `json:"subresource,omitempty"`
	// Namespace is the namespace of the request.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name in the URL. A create has none there.
	Name string `json:"name,omitempty"`
	// User is who asks; with a "*" at its end, all whose name begins so.
	User string `json:"user,omitempty"`
	// UserAgent is how the header User-Agent begins.
	UserAgent string `json:"userAgent,omitempty"`
}

// Forever is a [FaultRule.Times] without end.
const Forever = -1

// FaultRule says what goes wrong, and for which requests. Without Times, After, Every and Probability a fault of
// requests strikes the next one that matches, and a fault of watches those that are open.
type FaultRule struct {
	Match Match
	Fault Fault
	// Times is how often it strikes; [Forever] has no end. 0 is once, or without end where Every or Probability is given.
	Times int
	// After is how many requests pass first.
	After uint64
	// Every makes it strike each so-manieth request. 0 is each.
	Every uint64
	// Probability is how likely it strikes, up to 1. 0 is always.
	Probability float64
	// Seed is where the dice of Probability start. Nil is chosen by the server, which tells it in [Admin.Faults].
	Seed *uint64
}

// FaultState is a rule that was added, with its defaults filled in.
type FaultState struct {
	FaultRule
	// ID is what [Admin.RemoveFault] takes.
	ID uint64
	// Hits is how often it has struck.
	Hits uint64
	// Seen is how many requests matched.
	Seen uint64
	// Spent says that it will not strike any more.
	Spent bool
}

// Fault is what goes wrong: one of the types of this package that say so.
type Fault interface {
	faultName() string
}

// Conflict is a 409 for an update, a patch or a delete, as a stale resourceVersion gets it.
type Conflict struct{}

// TooManyRequests is a 429 with Retry-After.
type TooManyRequests struct {
	// RetryAfter is when the client is to try again, in whole seconds. 0 is one second.
	RetryAfter time.Duration
}

// ErrorStatus is an error with a Status.
type ErrorStatus struct {
	// Code is from 400 to 599. 0 is 500.
	Code int `json:"code,omitempty"`
	// Reason is the reason of the Status. Empty is that of the code.
	Reason metav1.StatusReason `json:"reason,omitempty"`
	// Message is the message of the Status. Empty is that of the code.
	Message string `json:"message,omitempty"`
}

// Timeout is no answer: the client cannot know whether the request was carried out.
type Timeout struct {
	// Done says whether it was.
	Done bool `json:"done"`
	// Answer is what the client gets instead. Empty is [Cut].
	Answer TimeoutAnswer `json:"answer,omitempty"`
}

// TimeoutAnswer is what a client gets instead of an answer.
type TimeoutAnswer string

const (
	// Cut ends the connection; over HTTP/2, the stream.
	Cut TimeoutAnswer = "cut"
	// GatewayTimeout is a 504.
	GatewayTimeout TimeoutAnswer = "504"
)

// Latency is the right answer, later. Other rules still count.
type Latency struct {
	// By is how much later, in cluster time.
	By time.Duration
}

// DropWatch ends watches.
type DropWatch struct {
	// How they end. Empty is [Cleanly].
	How WatchEnd `json:"how,omitempty"`
}

// WatchEnd is how a watch ends.
type WatchEnd string

const (
	// Cleanly is how a watch ends whose time is over.
	Cleanly WatchEnd = "cleanly"
	// ByReset is how a watch ends whose connection is cut.
	ByReset WatchEnd = "reset"
)

// ExpireWatch ends watches with 410. Until the rule is removed, watches and lists that go on from before get it too.
type ExpireWatch struct{}

// RepeatWatch makes watches tell events twice.
type RepeatWatch struct{}

// SkipWatch makes watches leave events out, and tell those behind them.
type SkipWatch struct{}

// HoldWatch makes watches tell nothing, so that their client works on old state.
type HoldWatch struct {
	// For is how long, in cluster time. 0 is until the rule is removed.
	For time.Duration
}

// OldList answers lists that take any state (resourceVersion 0) with an old one.
type OldList struct {
	// Revision is that of the old state.
	Revision uint64 `json:"revision"`
}

func (Conflict) faultName() string        { return "conflict" }
func (TooManyRequests) faultName() string { return "tooManyRequests" }
func (ErrorStatus) faultName() string     { return "error" }
func (Timeout) faultName() string         { return "timeout" }
func (Latency) faultName() string         { return "latency" }
func (DropWatch) faultName() string       { return "dropWatch" }
func (ExpireWatch) faultName() string     { return "expireWatch" }
func (RepeatWatch) faultName() string     { return "repeatWatch" }
func (SkipWatch) faultName() string       { return "skipWatch" }
func (HoldWatch) faultName() string       { return "holdWatch" }
func (OldList) faultName() string         { return "oldList" }

type retryAfterJSON struct {
	RetryAfter int64 `json:"retryAfter,omitempty"`
}

// MarshalJSON writes it as the server reads it. It fails for a part of a second.
func (f TooManyRequests) MarshalJSON() ([]byte, error) {
	if f.RetryAfter < 0 || f.RetryAfter%time.Second != 0 {
		return nil, fmt.Errorf("TooManyRequests.RetryAfter is %s: Retry-After is said in whole seconds", f.RetryAfter)
	}
	return json.Marshal(retryAfterJSON{int64(f.RetryAfter / time.Second)})
}

// UnmarshalJSON reads what the server writes.
func (f *TooManyRequests) UnmarshalJSON(data []byte) error {
	var read retryAfterJSON
	err := json.Unmarshal(data, &read)
	f.RetryAfter = time.Duration(read.RetryAfter) * time.Second
	return err
}

type latencyJSON struct {
	By metav1.Duration `json:"by"`
}

// MarshalJSON writes it as the server reads it.
func (f Latency) MarshalJSON() ([]byte, error) {
	return json.Marshal(latencyJSON{metav1.Duration{Duration: f.By}})
}

// UnmarshalJSON reads what the server writes.
func (f *Latency) UnmarshalJSON(data []byte) error {
	var read latencyJSON
	err := json.Unmarshal(data, &read)
	f.By = read.By.Duration
	return err
}

type holdWatchJSON struct {
	For *metav1.Duration `json:"for,omitempty"`
}

// MarshalJSON writes it as the server reads it.
func (f HoldWatch) MarshalJSON() ([]byte, error) {
	written := holdWatchJSON{}
	if f.For != 0 {
		written.For = &metav1.Duration{Duration: f.For}
	}
	return json.Marshal(written)
}

// UnmarshalJSON reads what the server writes.
func (f *HoldWatch) UnmarshalJSON(data []byte) error {
	var read holdWatchJSON
	err := json.Unmarshal(data, &read)
	if read.For != nil {
		f.For = read.For.Duration
	}
	return err
}

type ruleJSON struct {
	Match       Match           `json:"match"`
	Fault       json.RawMessage `json:"fault"`
	Times       *uint64         `json:"times,omitempty"`
	After       uint64          `json:"after,omitempty"`
	Every       uint64          `json:"every,omitempty"`
	Probability float64         `json:"probability,omitempty"`
	Seed        *uint64         `json:"seed,omitempty"`
}

// MarshalJSON writes a rule as the server reads it. It fails without a Fault.
func (r FaultRule) MarshalJSON() ([]byte, error) {
	if r.Fault == nil {
		return nil, errNoFault
	}
	fault, err := json.Marshal(map[string]Fault{r.Fault.faultName(): r.Fault})
	if err != nil {
		return nil, err
	}
	written := ruleJSON{
		Match: r.Match, Fault: fault, After: r.After, Every: r.Every, Probability: r.Probability, Seed: r.Seed,
	}
	switch {
	case r.Times > 0:
		written.Times = new(uint64(r.Times))
	case r.Times == Forever:
		written.Times = new(uint64(0))
	case r.Times != 0:
		return nil, fmt.Errorf("FaultRule.Times is %d: give how often, or kubewright.Forever", r.Times)
	}
	return json.Marshal(written)
}

// UnmarshalJSON reads a rule as the server writes it.
func (r *FaultRule) UnmarshalJSON(data []byte) error {
	var read ruleJSON
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	fault, err := readFault(read.Fault)
	if err != nil {
		return err
	}
	*r = FaultRule{
		Match: read.Match, Fault: fault, After: read.After, Every: read.Every, Probability: read.Probability, Seed: read.Seed,
	}
	if read.Times != nil {
		if r.Times = int(*read.Times); r.Times == 0 {
			r.Times = Forever
		}
	}
	return nil
}

// UnmarshalJSON reads what the server writes.
func (s *FaultState) UnmarshalJSON(data []byte) error {
	var read struct {
		ID    uint64 `json:"id"`
		Hits  uint64 `json:"hits"`
		Seen  uint64 `json:"seen"`
		Spent bool   `json:"spent"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	s.ID, s.Hits, s.Seen, s.Spent = read.ID, read.Hits, read.Seen, read.Spent
	return s.FaultRule.UnmarshalJSON(data)
}

func readFault(data []byte) (Fault, error) {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(data, &named); err != nil {
		return nil, err
	}
	for name, settings := range named {
		switch name {
		case Conflict{}.faultName():
			return Conflict{}, nil
		case TooManyRequests{}.faultName():
			return readAs[TooManyRequests](settings)
		case ErrorStatus{}.faultName():
			return readAs[ErrorStatus](settings)
		case Timeout{}.faultName():
			return readAs[Timeout](settings)
		case Latency{}.faultName():
			return readAs[Latency](settings)
		case DropWatch{}.faultName():
			return readAs[DropWatch](settings)
		case ExpireWatch{}.faultName():
			return ExpireWatch{}, nil
		case RepeatWatch{}.faultName():
			return RepeatWatch{}, nil
		case SkipWatch{}.faultName():
			return SkipWatch{}, nil
		case HoldWatch{}.faultName():
			return readAs[HoldWatch](settings)
		case OldList{}.faultName():
			return readAs[OldList](settings)
		}
	}
	return nil, fmt.Errorf("%s is no fault that this version of the module knows", data)
}

func readAs[F Fault](data []byte) (Fault, error) {
	var fault F
	err := json.Unmarshal(data, &fault)
	return fault, err
}
