package kubewright_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kubewright/kubewright/bindings/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestTheDefaultNamespaceIsThere(t *testing.T) {
	cluster := kubewright.ForTest(t, kubewright.Options{})
	clients := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	_, err := clients.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheReadmeHasATestThatPasses(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	source, err := os.ReadFile("readme_test.go")
	must(t, err)
	_, test, _ := strings.Cut(string(source), "func TestTheDefault")
	test, _, _ = strings.Cut(test, "\n}\n")
	if !strings.Contains(string(readme), test) {
		t.Errorf("README.md does not have\n%s", test)
	}
}
