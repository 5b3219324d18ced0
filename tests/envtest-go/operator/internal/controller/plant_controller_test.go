package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardenv1 "kubewright.dev/envtest-go/garden/v1"
)

const (
	timeout  = 10 * time.Second
	interval = 50 * time.Millisecond
)

var _ = Describe("Plant Controller", func() {
	now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	key := types.NamespacedName{Name: "rose", Namespace: "default"}
	jobKey := types.NamespacedName{Name: "rose-watering", Namespace: "default"}

	BeforeEach(func() {
		rose := &gardenv1.Plant{}
		if err := k8sClient.Get(ctx, key, rose); apierrors.IsNotFound(err) {
			rose = &gardenv1.Plant{
				ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace},
				Spec:       gardenv1.PlantSpec{Species: "rose"},
			}
			Expect(k8sClient.Create(ctx, rose)).To(Succeed())
		}
	})

	AfterEach(func() {
		Expect(k8sClient.DeleteAllOf(ctx, &batchv1.Job{}, inDefault, withBackground)).To(Succeed())
		Expect(k8sClient.DeleteAllOf(ctx, &gardenv1.Plant{}, inDefault)).To(Succeed())
	})

	Context("When it is called by hand", func() {
		It("should not fail for what is not there", func() {
			reconciler := &PlantReconciler{Client: k8sClient, Scheme: k8sClient.Scheme(), Now: now}
			_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "no"}})
			Expect(err).NotTo(HaveOccurred())
		})
	})

	Context("When it runs in a manager", Ordered, func() {
		BeforeAll(func() {
			mgr, err := ctrl.NewManager(cfg, ctrl.Options{
				Scheme: k8sClient.Scheme(), Metrics: server.Options{BindAddress: "0"},
			})
			Expect(err).NotTo(HaveOccurred())
			reconciler := &PlantReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme(), Now: now}
			Expect(reconciler.SetupWithManager(mgr)).To(Succeed())
			go func() {
				defer GinkgoRecover()
				Expect(mgr.Start(ctx)).To(Succeed())
			}()
		})

		It("should count the jobs that somebody says are active", func() {
			By("waiting for the job")
			job := &batchv1.Job{}
			Eventually(func(g Gomega) {
				g.Expect(k8sClient.Get(ctx, jobKey, job)).To(Succeed())
			}, timeout, interval).Should(Succeed())
			Expect(job.OwnerReferences).To(HaveLen(1))

			By("saying that it has two active pods, as no job controller runs")
			Consistently(func(g Gomega) {
				g.Expect(k8sClient.Get(ctx, jobKey, job)).To(Succeed())
				g.Expect(job.Status.Active).To(BeZero())
			}, 300*time.Millisecond, interval).Should(Succeed())
			job.Status.Active = 2
			Expect(k8sClient.Status().Update(ctx, job)).To(Succeed())

			By("looking at the plant")
			rose := &gardenv1.Plant{}
			Eventually(func(g Gomega) {
				g.Expect(k8sClient.Get(ctx, key, rose)).To(Succeed())
				g.Expect(rose.Status.Pots).To(BeEquivalentTo(2))
				g.Expect(meta.IsStatusConditionTrue(rose.Status.Conditions, "Watering")).To(BeTrue())
			}, timeout, interval).Should(Succeed())
			Expect(rose.Status.Conditions[0].LastTransitionTime.Time).To(BeTemporally("==", now()))
		})

		It("should refuse a job without containers", func() {
			bad := &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: "default"},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways},
				}},
			}
			Expect(k8sClient.Create(ctx, bad)).To(MatchError(And(
				ContainSubstring("spec.template.spec.containers: Required value"),
				ContainSubstring(`spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`),
			)))
		})
	})
})
