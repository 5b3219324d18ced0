package kubewright

import (
	"strings"
	"sync"
	"testing"
)

// ForTest returns a cluster that the test has to itself until it ends.
//
// The tests of a program (a package, for go test) share clusters: one that no test uses any more is reset and handed to
// the next that asks for the same options, which takes about a millisecond. So tests that run one after the other
// start one cluster, and parallel ones (t.Parallel) as many as run at the same time. They end with the program.
//
// A cluster with a [Options.Clock] is not shared, as a reset does not set time back: it is started for the test, and
// stopped when the test ends.
//
// A cluster that does not start, or is not reset, fails the test at once.
func ForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	if options.Clock != "" {
		cluster := startForTest(t, options)
		t.Cleanup(func() {
			if err := cluster.Stop(); err != nil {
				t.Errorf("the cluster does not stop: %v", err)
			}
		})
		return cluster
	}
	key := strings.Join(options.arguments(), " ")
	cluster := idle.take(key)
	if cluster == nil {
		cluster = startForTest(t, options)
	} else if err := cluster.Reset(t.Context()); err != nil {
		_ = cluster.Stop()
		t.Fatalf("the cluster is not reset: %v", err)
	}
	t.Cleanup(func() { idle.put(key, cluster) })
	return cluster
}

func startForTest(t testing.TB, options Options) *Cluster {
	t.Helper()
	cluster, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// idle has the clusters that no test uses, by their arguments.
var idle pool

type pool struct {
	mutex    sync.Mutex
	clusters map[string][]*Cluster
}

// take is a cluster that runs, or nil.
func (p *pool) take(key string) *Cluster {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for {
		clusters := p.clusters[key]
		if len(clusters) == 0 {
			return nil
		}
		last := clusters[len(clusters)-1]
		p.clusters[key] = clusters[:len(clusters)-1]
		if last.process.isRunning() {
			return last
		}
	}
}

// put gives a cluster back; one that a test has stopped, or that has crashed, is of no use to another.
func (p *pool) put(key string, cluster *Cluster) {
	if !cluster.process.isRunning() {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.clusters == nil {
		p.clusters = map[string][]*Cluster{}
	}
	p.clusters[key] = append(p.clusters[key], cluster)
}
