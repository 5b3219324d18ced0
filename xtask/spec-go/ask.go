package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes}), 0o600)
}

const (
	plain      = "application/json"
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	table      = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// A server that is asked. Its certificate is one that it made for itself, on loopback.
type server struct {
	address, token, folder string
	client                 http.Client
}

func ask(address, token, folder string) error {
	asked := server{address: address, token: token, folder: folder, client: http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}}
	if err := asked.wait(); err != nil {
		return err
	}
	for path, file := range map[string]string{
		"/version": "version", "/openapi/v2": "openapi-v2", "/openapi/v3": "openapi-v3",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles":        "clusterroles",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": "clusterrolebindings",
		"/apis/rbac.authorization.k8s.io/v1/roles":               "roles",
		"/apis/rbac.authorization.k8s.io/v1/rolebindings":        "rolebindings",
	} {
		if err := asked.keep(path, plain, file+".json"); err != nil {
			return err
		}
	}
	if err := asked.keep("/metrics", "text/plain", "metrics.txt"); err != nil {
		return err
	}
	var documents struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := asked.read("openapi-v3.json", &documents); err != nil {
		return err
	}
	for _, path := range sorted(documents.Paths) {
		if !strings.HasPrefix(path, "api") {
			continue
		}
		if err := asked.keep(documents.Paths[path].URL, plain, "v3-"+strings.ReplaceAll(path, "/", "_")+".json"); err != nil {
			return err
		}
	}
	for _, root := range []string{"api", "apis"} {
		if err := asked.keep("/"+root, aggregated, root+".json"); err != nil {
			return err
		}
		if err := asked.tables(root); err != nil {
			return err
		}
	}
	return nil
}

// tables keeps an empty table of each kind that can be listed, for its columns.
func (asked *server) tables(root string) error {
	var groups struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []struct {
					Resource string
					Verbs    []string
				}
			}
		}
	}
	if err := asked.read(root+".json", &groups); err != nil {
		return err
	}
	for _, group := range groups.Items {
		for _, version := range group.Versions {
			place := strings.Trim(strings.Join([]string{root, group.Metadata.Name, version.Version}, "/"), "/")
			place = strings.ReplaceAll(place, "//", "/")
			for _, one := range version.Resources {
				listed := false
				for _, verb := range one.Verbs {
					listed = listed || verb == "list"
				}
				if !listed {
					continue
				}
				file := "table-" + strings.ReplaceAll(place, "/", "_") + "_" + one.Resource + ".json"
				if err := asked.keep("/"+place+"/"+one.Resource+"?limit=1", table, file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wait ends when the server is ready, and its bootstrap objects are there.
func (asked *server) wait() error {
	var last error
	for range 240 {
		if _, last = asked.get("/readyz", plain); last == nil {
			return nil
		}
		time.Sleep(250 * time.Millisecond)
	}
	return fmt.Errorf("the server is not ready after a minute: %w", last)
}

func (asked *server) get(path, accept string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, asked.address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+asked.token)
	request.Header.Set("Accept", accept)
	answer, err := asked.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", path, answer.Status, body)
	}
	return body, err
}

func (asked *server) keep(path, accept, file string) error {
	body, err := asked.get(path, accept)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(asked.folder, file), body, 0o644)
}

func (asked *server) read(file string, into any) error {
	body, err := os.ReadFile(filepath.Join(asked.folder, file))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
