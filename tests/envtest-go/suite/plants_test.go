package suite_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
	"kubewright.dev/envtest-go/harness"
)

func namespace(t *testing.T) string {
	t.Helper()
	return harness.Namespace(t, api)
}

// plant is a plant that nobody has anything against.
func plant(namespace, name string) *gardenv1.Plant {
	return &gardenv1.Plant{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       gardenv1.PlantSpec{Species: "fern", Bed: "shade", Litres: 2},
	}
}

// created is the object as the server has it.
func created[T client.Object](t *testing.T, object T) T {
	t.Helper()
	harness.Must(t, api.Create(t.Context(), object))
	return object
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func pod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

func unstructuredPlant(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "garden.kubewright.dev/v1",
		"kind":       "Plant",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       spec,
	}}
}
