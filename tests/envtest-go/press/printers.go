package press

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pressv1 "kubewright.dev/envtest-go/press/v1"
)

// setUpPrinters makes the pods on which a page is printed, and deletes those that are not wanted any more.
func (r *Reconciler) setUpPrinters(ctx context.Context, page *pressv1.Page) error {
	found, err := r.printers(ctx, page)
	if err != nil {
		return err
	}
	var wanted []string
	for number := range page.Spec.Printers {
		wanted = append(wanted, fmt.Sprintf("%s-printer-%d", page.Name, number))
	}
	var there []string
	for i := range found {
		there = append(there, found[i].Name)
		if slices.Contains(wanted, found[i].Name) {
			continue
		}
		if err := r.Delete(ctx, &found[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, name := range wanted {
		if slices.Contains(there, name) {
			continue
		}
		if err := r.Create(ctx, r.printer(page, name)); err != nil {
			return err
		}
	}
	return nil
}

// printers are the pods of a page.
func (r *Reconciler) printers(ctx context.Context, page *pressv1.Page) ([]corev1.Pod, error) {
	var found corev1.PodList
	of := client.MatchingLabels{pageLabel: page.Name}
	if err := r.List(ctx, &found, client.InNamespace(page.Namespace), of); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, page) }), nil
}

func (r *Reconciler) printer(page *pressv1.Page, name string) *corev1.Pod {
	owner := metav1.NewControllerRef(page, pressv1.GroupVersion.WithKind("Page"))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: page.Namespace, Name: name, Labels: map[string]string{pageLabel: page.Name},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "printer", Image: "press.example/printer:1"}}},
	}
}

// look has the status say how many printers are ready. A page is ready when all are.
func (r *Reconciler) look(ctx context.Context, page *pressv1.Page, status *pressv1.PageStatus) error {
	found, err := r.printers(ctx, page)
	if err != nil {
		return err
	}
	status.Broken = page.Status.Broken
	for i := range found {
		switch {
		case isReady(&found[i]):
			status.Printing++
		case r.Bug == GivesUpOnUnready && found[i].Status.Phase == corev1.PodRunning:
			status.Broken = true
		}
	}
	status.Ready = status.Ready && status.Printing == page.Spec.Printers
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
