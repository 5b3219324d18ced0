package kubewright

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Admin controls a cluster of Kubewright: its clock, faults, log of requests, and reset. Every [Cluster] has one; for
// an API server that something else started, as envtest does, there is [NewAdmin]. It is safe for concurrent use.
//
// What the server refuses is an error of the package k8s.io/apimachinery/pkg/api/errors, with the server's words.
type Admin struct {
	server    *url.URL
	client    *http.Client
	transport *http.Transport
	// explain adds to an error of the connection what its cause may be.
	explain func(error) error
}

// NewAdmin returns the Admin of the API server that config leads to. It sends no request. The server has to be
// Kubewright's, started with its admin paths (`--admin`, KUBEWRIGHT_ADMIN=1), on this machine; config has to be a member
// of system:masters or have a role for the non-resource URL /kubewright/*.
func NewAdmin(config *rest.Config) (*Admin, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	// Not client-go's own, which are kept for ever.
	transport := &http.Transport{TLSClientConfig: tls, Proxy: config.Proxy, DialContext: config.Dial}
	authorized, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &Admin{
		server:    server,
		client:    &http.Client{Transport: authorized},
		transport: transport,
		explain:   func(err error) error { return err },
	}, nil
}

// Reset makes the cluster as it was when it started: objects, faults and the log of requests. Time does not go back.
// Watches are told what is gone.
func (a *Admin) Reset(ctx context.Context) error {
	return a.call(ctx, http.MethodPost, "reset", nil, nil, nil)
}

type clockState struct {
	Now time.Time `json:"now"`
}

// Now returns cluster time.
func (a *Admin) Now(ctx context.Context) (time.Time, error) {
	var state clockState
	err := a.call(ctx, http.MethodGet, "clock", nil, nil, &state)
	return state.Now, err
}

// Advance lets cluster time pass, and returns the time after it. What falls due meanwhile has happened by then, each
// thing at its own time: in a day an hourly CronJob runs twenty-four times. It is refused by a cluster that lives by
// the machine's clock (see [Options.Clock]).
func (a *Admin) Advance(ctx context.Context, by time.Duration) (time.Time, error) {
	var state clockState
	err := a.call(ctx, http.MethodPost, "clock/advance", nil, map[string]string{"by": by.String()}, &state)
	return state.Now, err
}

// AddFault adds a rule by which requests or watches fail, and returns its id. The server refuses rules that make no
// sense, and says why.
func (a *Admin) AddFault(ctx context.Context, rule FaultRule) (id uint64, err error) {
	var state struct {
		ID uint64 `json:"id"`
	}
	err = a.call(ctx, http.MethodPost, "faults", nil, rule, &state)
	return state.ID, err
}

// Faults returns the rules that were added, and how often each has struck.
func (a *Admin) Faults(ctx context.Context) ([]FaultState, error) {
	var list struct {
		Faults []FaultState `json:"faults"`
	}
	err := a.call(ctx, http.MethodGet, "faults", nil, nil, &list)
	return list.Faults, err
}

// RemoveFault removes a rule, and lets go what it holds. Without a rule of that id it returns a NotFound error.
func (a *Admin) RemoveFault(ctx context.Context, id uint64) error {
	return a.call(ctx, http.MethodDelete, "faults/"+strconv.FormatUint(id, 10), nil, nil, nil)
}

// ClearFaults removes all rules.
func (a *Admin) ClearFaults(ctx context.Context) error {
	return a.call(ctx, http.MethodDelete, "faults", nil, nil, nil)
}

// Requests returns who called what, of the last 10,000 requests, as far as the filter selects it.
func (a *Admin) Requests(ctx context.Context, filter RequestFilter) (*RequestLog, error) {
	log := &RequestLog{}
	if err := a.call(ctx, http.MethodGet, "requests", filter.query(), nil, log); err != nil {
		return nil, err
	}
	return log, nil
}

// ClearRequests empties the log of requests.
func (a *Admin) ClearRequests(ctx context.Context) error {
	return a.call(ctx, http.MethodDelete, "requests", nil, nil, nil)
}

func (a *Admin) close() { a.transport.CloseIdleConnections() }

// call sends a request to an admin path; body and answer may be nil.
func (a *Admin) call(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	target := a.server.JoinPath("kubewright", path)
	target.RawQuery = query.Encode()
	var content io.Reader
	if body != nil {
		written, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(written)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "kubewright-go")
	response, err := a.client.Do(request)
	if err != nil {
		return a.explain(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		return a.explain(fmt.Errorf("%s %s: %w", method, target, err))
	}
	if response.StatusCode >= http.StatusBadRequest {
		return refusal(response.StatusCode, path, read)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(read, answer); err != nil {
		return fmt.Errorf("%s %s answered what this version of the module does not understand: %w", method, target, err)
	}
	return nil
}

// refusal is the error that an answer stands for.
func refusal(code int, path string, body []byte) error {
	status := metav1.Status{}
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
		return fmt.Errorf("/kubewright/%s answered %d: %s", path, code, bytes.TrimSpace(body))
	}
	err := &apierrors.StatusError{ErrStatus: status}
	hidden := code == http.StatusForbidden || code == http.StatusNotFound && !strings.HasPrefix(path, "faults/")
	if hidden {
		return fmt.Errorf("%w; is it a Kubewright that was started with --admin (KUBEWRIGHT_ADMIN=1), on this machine, "+
			"asked by a member of system:masters?", error(err))
	}
	return err
}

var errNoFault = errors.New("a FaultRule needs a Fault, such as kubewright.Conflict{}")
