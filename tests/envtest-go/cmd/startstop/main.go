// Command startstop measures what an envtest environment costs: how long Start and Stop take, again and again, and the
// most memory that its two processes have held. It prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// row is what is printed: medians of seconds, and the most of bytes.
type row struct {
	Runs             int     `json:"runs"`
	StartSeconds     float64 `json:"start_seconds"`
	StopSeconds      float64 `json:"stop_seconds"`
	PeakMemory       uint64  `json:"peak_memory_bytes"`
	PeakMemoryOfEtcd uint64  `json:"peak_memory_of_etcd_bytes"`
}

func main() {
	runs := flag.Int("runs", 5, "how often it is started and stopped")
	crds := flag.String("crds", "", "a folder of definitions that are installed")
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	measured, err := measure(*runs, *crds)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(runs int, crds string) (*row, error) {
	if runs < 1 {
		return nil, fmt.Errorf("%d runs measure nothing", runs)
	}
	measured := &row{Runs: runs}
	var starts, stops []time.Duration
	for range runs {
		environment := &envtest.Environment{}
		if crds != "" {
			environment.CRDDirectoryPaths = []string{crds}
		}
		began := time.Now()
		if _, err := environment.Start(); err != nil {
			return nil, err
		}
		starts = append(starts, time.Since(began))
		memory, err := peaksOfChildren()
		if err != nil {
			return nil, err
		}
		measured.PeakMemory = max(measured.PeakMemory, memory["kube-apiserver"]+memory["etcd"])
		measured.PeakMemoryOfEtcd = max(measured.PeakMemoryOfEtcd, memory["etcd"])
		began = time.Now()
		if err := environment.Stop(); err != nil {
			return nil, err
		}
		stops = append(stops, time.Since(began))
	}
	measured.StartSeconds, measured.StopSeconds = median(starts).Seconds(), median(stops).Seconds()
	return measured, nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// peaksOfChildren are the high-water marks of the memory of this process's children, by the name that they were called by.
func peaksOfChildren() (map[string]uint64, error) {
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil, err
	}
	peaks := map[string]uint64{}
	for _, file := range statuses {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended meanwhile.
		}
		fields := statusFields(string(text))
		if fields["PPid"] != strconv.Itoa(os.Getpid()) {
			continue
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(string(command), "\x00")
		kilobytes, err := strconv.ParseUint(strings.TrimSuffix(fields["VmHWM"], " kB"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the peak memory of %s: %w", name, err)
		}
		peaks[filepath.Base(name)] += kilobytes * 1024
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if peaks[name] == 0 {
			return nil, fmt.Errorf("there is no %s among the children: %v", name, peaks)
		}
	}
	return peaks, nil
}

func statusFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}
