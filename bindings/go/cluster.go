package kubewright

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubewright/kubewright/bindings/go/internal/program"
)

const (
	startTimeout = time.Minute
	stopGrace    = 10 * time.Second
	pollEvery    = 2 * time.Millisecond
)

// Options say what a cluster is like. The zero value is a cluster with all built-in controllers and one node.
type Options struct {
	// KubernetesVersion is the version that is served, such as "1.36". Empty is the newest.
	KubernetesVersion string

	// Nodes is how many simulated nodes there are. Nil is one.
	Nodes *int

	// Controllers are the built-in controllers that run, by kube-controller-manager's names; "*" is all of them, and
	// "-name" all but that one. Nil is all, an empty slice none.
	Controllers []string

	// Clock is when cluster time starts and how fast it passes: "2030-01-01T00:00:00Z", "speed=60", or
	// "2030-01-01T00:00:00Z,speed=0" for a clock that passes only by [Admin.Advance]. Empty is the machine's clock, which
	// cannot be advanced.
	Clock string
}

func (o Options) arguments() []string {
	var arguments []string
	if o.KubernetesVersion != "" {
		arguments = append(arguments, "--kubernetes-version="+o.KubernetesVersion)
	}
	if o.Nodes != nil {
		arguments = append(arguments, "--nodes="+strconv.Itoa(*o.Nodes))
	}
	if o.Controllers != nil {
		arguments = append(arguments, "--controllers="+strings.Join(o.Controllers, ","))
	}
	if o.Clock != "" {
		arguments = append(arguments, "--clock="+o.Clock)
	}
	return arguments
}

// Cluster is a control plane that runs in a process of its own. It ends with [Cluster.Stop], and with the process that
// started it, whatever ends that. It is safe for concurrent use.
type Cluster struct {
	*Admin

	kubeconfig string
	config     *rest.Config
	process    *process
}

// Start starts a cluster, and returns when it serves requests.
//
// The context bounds the start alone (a minute, where it has no deadline); the cluster lives until [Cluster.Stop]. Start
// fails when there is no kubewright program, and when that ends before it serves: the error has what it said.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	path, err := program.Find()
	if err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	// The program makes the file, readable by this user only, and removes it when it ends.
	kubeconfig := filepath.Join(os.TempDir(), "kubewright-"+rand.Text()+".kubeconfig")
	arguments := append([]string{
		"up", "--port=0", "--admin", "--quiet", "--exit-with-stdin", "--kubeconfig=" + kubeconfig,
	}, options.arguments()...)
	process, err := startProcess(path, arguments)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{kubeconfig: kubeconfig, process: process}
	if err := cluster.connect(ctx); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return cluster, nil
}

// connect waits for the kubeconfig and makes what needs it.
func (c *Cluster) connect(ctx context.Context) error {
	if err := c.awaitKubeconfig(ctx); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	// As envtest has it: tests are in a hurry.
	config.QPS, config.Burst = 1000, 2000
	c.config = config
	c.Admin, err = NewAdmin(config)
	if err != nil {
		return err
	}
	c.Admin.explain = c.process.explain
	return nil
}

func (c *Cluster) awaitKubeconfig(ctx context.Context) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		// The file appears whole.
		if _, err := os.Stat(c.kubeconfig); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-c.process.ended:
			return fmt.Errorf("the cluster did not start: %w", c.process.failure())
		case <-ctx.Done():
			return fmt.Errorf("the cluster did not start in time: %w", ctx.Err())
		case <-poll.C:
		}
	}
}

// Kubeconfig returns the path of the cluster's kubeconfig, which is there as long as the cluster.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return c.config.Host }

// RESTConfig returns what clients need in order to reach the cluster as its administrator (a member of
// system:masters). The caller may change what is returned.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Stop ends the cluster and waits for its end; one that takes more than ten seconds is killed, which is an error. What
// was stopped stays stopped: a second call does nothing.
func (c *Cluster) Stop() error {
	err := c.process.stop()
	if c.Admin != nil {
		c.Admin.close()
	}
	// A program that was killed leaves it.
	if removed := os.Remove(c.kubeconfig); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// process is a running program that ends when its standard input closes.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	stderr  tail
	ended   chan struct{}
	// waited is what waiting for it gave, once ended is closed.
	waited error
}

func startProcess(path string, arguments []string) (*process, error) {
	p := &process{command: exec.Command(path, arguments...), ended: make(chan struct{})}
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	p.command.Stderr = &p.stderr
	p.command.WaitDelay = time.Second
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be run: %w", path, err)
	}
	go func() {
		p.waited = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) stop() error {
	_ = p.stdin.Close()
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopGrace):
		_ = p.command.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %s and was killed", p.command.Path, stopGrace)
	}
}

// failure says how it ended and what it said. It has ended.
func (p *process) failure() error {
	said := p.stderr.String()
	if said == "" {
		said = "it said nothing"
	}
	return fmt.Errorf("%s ended (%s): %s", p.command.Path, p.command.ProcessState, said)
}

// explain adds that it has ended to an error of talking to it.
func (p *process) explain(err error) error {
	select {
	case <-p.ended:
		return fmt.Errorf("%w; the cluster is gone: %w", err, p.failure())
	default:
		return err
	}
}

func (p *process) isRunning() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mutex sync.Mutex
	kept  []byte
}

const tailLength = 64 << 10

func (t *tail) Write(bytes []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.kept = append(t.kept, bytes...)
	if excess := len(t.kept) - tailLength; excess > 0 {
		t.kept = append(t.kept[:0], t.kept[excess:]...)
	}
	return len(bytes), nil
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.TrimSpace(string(t.kept))
}
