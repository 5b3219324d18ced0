package kubewright_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kubewright/kubewright/bindings/go"
)

func TestObjectsAreCreatedReadChangedAndDeleted(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	maps := clientsOf(t, cluster).CoreV1().ConfigMaps("default")

	made, err := maps.Create(t.Context(), configMap("settings"), metav1.CreateOptions{})
	must(t, err)
	made.Data = map[string]string{"color": "green"}
	_, err = maps.Update(t.Context(), made, metav1.UpdateOptions{})
	must(t, err)
	read, err := maps.Get(t.Context(), "settings", metav1.GetOptions{})
	must(t, err)
	if read.Data["color"] != "green" {
		t.Errorf("the change is lost: %v", read.Data)
	}
	must(t, maps.Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	if _, err := maps.Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestADeploymentGetsPodsThatRun(t *testing.T) {
	deploymentGetsPods(t, started(t, kubewright.Options{}))
}

func TestADeploymentGetsPodsThatRunAfterAReset(t *testing.T) {
	cluster := started(t, kubewright.Options{})
	deploymentGetsPods(t, cluster)
	must(t, cluster.Reset(t.Context()))
	deploymentGetsPods(t, cluster)
}

func deploymentGetsPods(t *testing.T, cluster *kubewright.Cluster) {
	t.Helper()
	clients := clientsOf(t, cluster)
	_, err := clients.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 2), metav1.CreateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) (bool, error) {
		read, err := clients.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && read.Status.ReadyReplicas == 2, err
	})
}

func TestWithoutControllersADeploymentGetsNoPods(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{Controllers: []string{}, Nodes: ptr.To(0)})
	clients := clientsOf(t, cluster)

	_, err := clients.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 2), metav1.CreateOptions{})
	must(t, err)
	nodes, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(nodes.Items) != 0 {
		t.Errorf("there are nodes: %v", nodes.Items)
	}
	log, err := cluster.Requests(t.Context(), kubewright.RequestFilter{Match: kubewright.Match{Resource: "replicasets"}})
	must(t, err)
	if len(log.Counts) != 0 {
		t.Errorf("a controller is at work: %v", log.Counts)
	}
}

func TestTheVersionIsTheOneThatIsAskedFor(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{KubernetesVersion: "1.35"})
	version, err := clientsOf(t, cluster).Discovery().ServerVersion()
	must(t, err)
	if version.Minor != "35" {
		t.Errorf("it serves %s", version)
	}
}

func TestAResetRemovesWhatATestMade(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	maps := clientsOf(t, cluster).CoreV1().ConfigMaps("default")
	_, err := maps.Create(t.Context(), configMap("left"), metav1.CreateOptions{})
	must(t, err)
	_, err = cluster.AddFault(t.Context(), kubewright.FaultRule{Fault: kubewright.Conflict{}})
	must(t, err)

	must(t, cluster.Reset(t.Context()))

	if _, err := maps.Get(t.Context(), "left", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	faults, err := cluster.Faults(t.Context())
	must(t, err)
	if len(faults) != 0 {
		t.Errorf("there are still faults: %v", faults)
	}
}

func TestTimeThatIsAdvancedRunsACronJob(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{Clock: "2030-01-01T00:00:00Z,speed=0"})
	clients := clientsOf(t, cluster)
	clock, err := cluster.Clock(t.Context())
	must(t, err)
	started := clock.Now()
	if want := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC); started.Before(want) || clock.Since(want) > time.Minute {
		t.Errorf("it is %s, not %s", started, want)
	}
	_, err = clients.BatchV1().CronJobs("default").Create(t.Context(), hourly("report"), metav1.CreateOptions{})
	must(t, err)

	now, err := cluster.Advance(t.Context(), 24*time.Hour+time.Minute)
	must(t, err)

	if passed := clock.Since(started); passed != 24*time.Hour+time.Minute || !now.Equal(clock.Now()) {
		t.Errorf("%s have passed; it is %s", passed, now)
	}
	jobs, err := clients.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	hours := map[int]bool{}
	for _, job := range jobs.Items {
		hours[job.CreationTimestamp.UTC().Hour()] = true
	}
	// Three successful jobs are kept.
	if len(jobs.Items) != 3 || !hours[22] || !hours[23] || !hours[0] {
		t.Errorf("the last runs were at %v", hours)
	}
	counts, err := clients.BatchV1().CronJobs("default").Get(t.Context(), "report", metav1.GetOptions{})
	must(t, err)
	if last := counts.Status.LastScheduleTime; last == nil || !last.Time.Equal(time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("it last ran at %v", last)
	}
}

func TestTheMachinesClockIsNotAdvancedAndTheErrorSaysWhy(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	if _, err := cluster.Advance(t.Context(), time.Hour); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "clock") {
		t.Errorf("the error is %v", err)
	}
	before := time.Now().Add(-time.Minute)
	if now, err := cluster.Now(t.Context()); err != nil || now.Before(before) || now.After(time.Now().Add(time.Minute)) {
		t.Errorf("it is %s (%v)", now, err)
	}
}

func TestTheClockOfAStoppedClusterStandsStill(t *testing.T) {
	cluster := started(t, kubewright.Options{})
	clock, err := cluster.Clock(t.Context())
	must(t, err)
	must(t, cluster.Stop())
	if first := clock.Now(); first.IsZero() || !first.Equal(clock.Now()) {
		t.Errorf("it is %s, then %s", first, clock.Now())
	}
	if _, err := cluster.Clock(t.Context()); err == nil || !strings.Contains(err.Error(), "the cluster is gone") {
		t.Errorf("the error is %v", err)
	}
}

func TestClustersDoNotSeeEachOther(t *testing.T) {
	one, other := started(t, kubewright.Options{}), started(t, kubewright.Options{})
	if one.Server() == other.Server() || one.Kubeconfig() == other.Kubeconfig() {
		t.Fatalf("both are %s, %s", one.Server(), one.Kubeconfig())
	}
	_, err := clientsOf(t, one).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("mine"), metav1.CreateOptions{})
	must(t, err)
	_, err = clientsOf(t, other).CoreV1().ConfigMaps("default").Get(t.Context(), "mine", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the other one has it, too: %v", err)
	}
}

func TestAStoppedClusterIsGoneWithItsFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cluster := started(t, kubewright.Options{})
	if _, err := os.Stat(cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	must(t, cluster.Stop())
	must(t, cluster.Stop())
	left, err := os.ReadDir(os.TempDir())
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := cluster.Reset(t.Context()); err == nil || !strings.Contains(err.Error(), "the cluster is gone") {
		t.Errorf("the error is %v", err)
	}
}

func TestNoServerIsLeftWhenTheTestProcessIsKilled(t *testing.T) {
	if os.Getenv("KUBEWRIGHT_TEST_HOLD") != "" {
		cluster := kubewright.ForTest(t, kubewright.Options{})
		fmt.Printf("cluster %s %s\n", cluster.Server(), cluster.Kubeconfig())
		select {}
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), "KUBEWRIGHT_TEST_HOLD=1")
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	var server, kubeconfig string
	for lines := bufio.NewScanner(output); server == "" && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "cluster %s %s", &server, &kubeconfig)
	}
	if server == "" {
		t.Fatal("the test process started no cluster")
	}
	config := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	clients := kubernetes.NewForConfigOrDie(config)
	if _, err := clients.Discovery().ServerVersion(); err != nil {
		t.Fatalf("the server is not there before: %v", err)
	}

	must(t, command.Process.Kill())
	_ = command.Wait()

	eventually(t, func(context.Context) (bool, error) {
		_, err := clients.Discovery().ServerVersion()
		_, file := os.Stat(kubeconfig)
		return isRefused(err) && os.IsNotExist(file), err
	})
}

func TestWithoutAProgramTheErrorSaysWhereItIsLookedFor(t *testing.T) {
	t.Setenv("KUBEWRIGHT", "")
	t.Setenv("PATH", t.TempDir())
	_, err := kubewright.Start(t.Context(), kubewright.Options{})
	for _, way := range []string{"KUBEWRIGHT", "PATH", "install"} {
		if err == nil || !strings.Contains(err.Error(), way) {
			t.Errorf("%s is not named: %v", way, err)
		}
	}
}

func TestAVariableThatNamesNoProgramIsAnError(t *testing.T) {
	t.Setenv("KUBEWRIGHT", filepath.Join(t.TempDir(), "nothing"))
	if _, err := kubewright.Start(t.Context(), kubewright.Options{}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("the error is %v", err)
	}
}

func TestAClusterThatDoesNotStartSaysWhy(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for want, options := range map[string]kubewright.Options{
		"1.37":         {KubernetesVersion: "1.30"},
		"gardening":    {Controllers: []string{"gardening"}},
		"--nodes":      {Nodes: ptr.To(-1)},
		"2030-13-01":   {Clock: "2030-13-01"},
		"speed=slowly": {Clock: "speed=slowly"},
	} {
		_, err := kubewright.Start(t.Context(), options)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "did not start") {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
	left, err := os.ReadDir(os.TempDir())
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAStartThatTakesTooLongIsGivenUp(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "kubewright")
	must(t, os.WriteFile(silent, []byte("#!/bin/sh\nexec cat\n"), 0o700))
	t.Setenv("KUBEWRIGHT", silent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := kubewright.Start(ctx, kubewright.Options{}); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("the error is %v", err)
	}
}

func TestTestsOneAfterTheOtherShareAClusterThatIsReset(t *testing.T) {
	var servers []string
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			cluster := kubewright.ForTest(t, kubewright.Options{Nodes: ptr.To(2)})
			servers = append(servers, cluster.Server())
			_, err := clientsOf(t, cluster).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("same"), metav1.CreateOptions{})
			must(t, err)
		})
	}
	if servers[0] != servers[1] {
		t.Errorf("they had %v", servers)
	}
}

func TestTestsAtTheSameTimeHaveClustersOfTheirOwn(t *testing.T) {
	options := kubewright.Options{Nodes: ptr.To(3)}
	one, other := kubewright.ForTest(t, options), kubewright.ForTest(t, options)
	if one.Server() == other.Server() {
		t.Errorf("both have %s", one.Server())
	}
}

func TestAClusterThatATestStoppedIsNotHandedToTheNext(t *testing.T) {
	options := kubewright.Options{Nodes: ptr.To(4)}
	t.Run("stops it", func(t *testing.T) { must(t, kubewright.ForTest(t, options).Stop()) })
	t.Run("has another", func(t *testing.T) {
		_, err := kubewright.ForTest(t, options).Now(t.Context())
		must(t, err)
	})
}

// started is a cluster that is stopped when the test ends.
func started(t *testing.T, options kubewright.Options) *kubewright.Cluster {
	t.Helper()
	cluster, err := kubewright.Start(t.Context(), options)
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Stop()) })
	return cluster
}

func clientsOf(t *testing.T, cluster *kubewright.Cluster) *kubernetes.Clientset {
	t.Helper()
	config := cluster.RESTConfig()
	config.UserAgent = "kubewright-go-test"
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	return clients
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until it is so.
func eventually(t *testing.T, ask wait.ConditionWithContextFunc) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (so bool, err error) {
			so, last = ask(ctx)
			return so, nil
		})
	if err != nil {
		t.Fatalf("it does not come to be so: %v; the last answer was %v", err, last)
	}
}

func isRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), syscall.ECONNREFUSED.Error())
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("")},
		},
	}
}

func hourly(name string) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 * * * *",
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: podSpec(corev1.RestartPolicyNever)},
			}},
		},
	}
}

func podSpec(restart corev1.RestartPolicy) corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
}
