// Package envtest has suites of controller-runtime's envtest start Kubewright in place of kube-apiserver and etcd.
//
// It is one line before the environment is started:
//
//	testEnv := &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}}
//	err := kwenvtest.Use(ctx, testEnv, kwenvtest.Options{})
//	cfg, err := testEnv.Start()
package envtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kubewright/kubewright/bindings/go/internal/program"
)

// versionVariable says which version is served by whatever is started, whichever folder it is in.
const versionVariable = "KUBEWRIGHT_KUBERNETES_VERSION"

// Options say what an environment is like. The zero value does as kube-apiserver and etcd do: no controller runs, so
// no garbage is collected and no Deployment gets pods.
type Options struct {
	// KubernetesVersion is the version that is served, such as "1.36" or "1.36.x". Empty is the newest.
	KubernetesVersion string

	// Controllers are the built-in controllers that run, by kube-controller-manager's names; "*" is all of them.
	Controllers []string

	// Nodes is how many simulated nodes there are, on which pods run. They take all controllers ("*").
	Nodes int

	// Clock is when cluster time starts and how fast it passes, such as "2030-01-01T00:00:00Z,speed=0". Empty is the
	// machine's clock, which cannot be advanced.
	Clock string
}

// Use makes environment start Kubewright, with its admin paths: once it is started, kubewright.NewAdmin takes its
// Config. It has to be called before Start. Variables such as KUBEBUILDER_ASSETS do not count for this environment any more.
//
// It fails when there is no kubewright program (in the variable KUBEWRIGHT, or on the PATH), for a version that is not
// supported or that the variable KUBEWRIGHT_KUBERNETES_VERSION would overrule, and for an environment that is told to
// download programs or to use an existing cluster.
func Use(ctx context.Context, environment *envtest.Environment, options Options) error {
	if environment.DownloadBinaryAssets {
		return errors.New("the environment has DownloadBinaryAssets, which would start what it downloads: leave it out")
	}
	if existing := environment.UseExistingCluster; existing != nil && *existing || existing == nil && usesExistingCluster() {
		return errors.New("the environment uses an existing cluster (UseExistingCluster, or the variable USE_EXISTING_CLUSTER), " +
			"so that nothing is started: leave that out")
	}
	if said := os.Getenv(versionVariable); said != "" && options.KubernetesVersion != "" {
		return fmt.Errorf("the variable %s is %q and counts before Options.KubernetesVersion (%q): leave one of them out",
			versionVariable, said, options.KubernetesVersion)
	}
	assets, err := layOut(ctx, options.KubernetesVersion)
	if err != nil {
		return err
	}
	server := environment.ControlPlane.GetAPIServer()
	server.Path = filepath.Join(assets, "kube-apiserver")
	if environment.ControlPlane.Etcd == nil {
		environment.ControlPlane.Etcd = &envtest.Etcd{}
	}
	environment.ControlPlane.Etcd.Path = filepath.Join(assets, "etcd")
	environment.BinaryAssetsDirectory = assets

	flags := server.Configure()
	flags.Enable("kubewright-admin")
	if len(options.Controllers) > 0 {
		flags.Set("kubewright-controllers", strings.Join(options.Controllers, ","))
	}
	if options.Nodes != 0 {
		flags.Set("kubewright-nodes", strconv.Itoa(options.Nodes))
	}
	if options.Clock != "" {
		flags.Set("kubewright-clock", options.Clock)
	}
	return nil
}

// usesExistingCluster reads the variable as envtest does.
func usesExistingCluster() bool {
	return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true")
}

// layOut makes the folder with the links of a version, where it is not there yet, and returns its path.
func layOut(ctx context.Context, version string) (string, error) {
	path, err := program.Find()
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	arguments := []string{"envtest", "use", "--print=path", "--bin-dir=" + links(path)}
	if version != "" {
		// The newest of those that are meant, whether it is laid out or not.
		arguments = append(arguments, strings.TrimSuffix(version, "!")+"!")
	}
	command := exec.CommandContext(ctx, path, arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s envtest use: %w: %s", path, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// links is the folder for the links to a program. It is not setup-envtest's, where the real programs may be, and each
// program has its own, so that two of them do not replace each other's links.
func links(path string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	hash := sha256.Sum256([]byte(path))
	return filepath.Join(cache, "kubewright", "envtest", hex.EncodeToString(hash[:8]))
}
