// Package controller is laid out as kubebuilder scaffolds it, and tested with ginkgo as its users do.
package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
)

// jobOwner is the index of jobs by the plant that controls them.
const jobOwner = ".metadata.controller"

// PlantReconciler has each plant watered by a job, and counts the jobs that run.
type PlantReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	// Now is the time, which a test sets.
	Now func() time.Time
}

// Reconcile makes the job of one plant and writes down how many run.
func (r *PlantReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var plant gardenv1.Plant
	if err := r.Get(ctx, req.NamespacedName, &plant); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var jobs batchv1.JobList
	owned := client.MatchingFields{jobOwner: plant.Name}
	if err := r.List(ctx, &jobs, client.InNamespace(req.Namespace), owned); err != nil {
		return ctrl.Result{}, err
	}
	if len(jobs.Items) == 0 {
		job, err := r.watering(&plant)
		if err != nil {
			return ctrl.Result{}, err
		}
		log.FromContext(ctx).Info("watering", "job", job.Name)
		return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, job))
	}
	running := int32(0)
	for _, job := range jobs.Items {
		running += job.Status.Active
	}
	plant.Status.Pots = running
	status := metav1.ConditionFalse
	if running > 0 {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&plant.Status.Conditions, metav1.Condition{
		Type: "Watering", Status: status, Reason: "Jobs", LastTransitionTime: metav1.NewTime(r.Now()),
	})
	return ctrl.Result{}, r.Status().Update(ctx, &plant)
}

func (r *PlantReconciler) watering(plant *gardenv1.Plant) (*batchv1.Job, error) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: plant.Namespace, Name: plant.Name + "-watering"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure,
			Containers:    []corev1.Container{{Name: "can", Image: "example.com/can:1"}},
		}}},
	}
	return job, ctrl.SetControllerReference(plant, job, r.Scheme)
}

// SetupWithManager sets up the controller with the Manager.
func (r *PlantReconciler) SetupWithManager(mgr ctrl.Manager) error {
	owner := func(object client.Object) []string {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "Plant" {
			return []string{owner.Name}
		}
		return nil
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, jobOwner, owner); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&gardenv1.Plant{}).Owns(&batchv1.Job{}).Named("plant").Complete(r)
}
