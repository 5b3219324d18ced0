package press

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pressv1 "kubewright.dev/envtest-go/press/v1"
)

var (
	helloKey = client.ObjectKey{Namespace: "default", Name: "hello"}
	childKey = client.ObjectKey{Namespace: "default", Name: "hello-page"}
	entryKey = client.ObjectKey{Namespace: "ledger", Name: "default.hello"}
)

// world is a reconciler on a client without a server, whose answers a test may spoil.
type world struct {
	*Reconciler
	ctx context.Context
	// working is the context of passes, which may end while the test goes on.
	working context.Context
	// writes counts the updates of ConfigMaps.
	writes int
}

func begin(bug Bug, spoilt interceptor.Funcs, objects ...client.Object) *world {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, pressv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	page := &pressv1.Page{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "1", Generation: 1},
		Spec:       pressv1.PageSpec{Text: "one", Footer: "end", Languages: []string{"de", "fr"}},
	}
	w := &world{ctx: context.Background(), working: context.Background()}
	if spoilt.Update == nil {
		spoilt.Update = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if _, is := o.(*corev1.ConfigMap); is {
				w.writes++
			}
			return c.Update(ctx, o, options...)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(page, &corev1.Pod{}).WithObjects(append(objects, page)...).
		WithInterceptorFuncs(spoilt).Build()
	w.Reconciler = &Reconciler{Client: c, Live: c, Ledger: "ledger", Bug: bug}
	return w
}

// pass reconciles once; a panic is an error.
func (w *world) pass() (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	_, err = w.Reconcile(w.working, ctrl.Request{NamespacedName: helloKey})
	return err
}

func (w *world) page() (page pressv1.Page) {
	must(w.Get(w.ctx, helloKey, &page))
	return page
}

func (w *world) change(change func(*pressv1.Page)) {
	page := w.page()
	change(&page)
	page.Generation++
	must(w.Update(w.ctx, &page))
}

func (w *world) is(key client.ObjectKey) bool {
	err := w.Get(w.ctx, key, &corev1.ConfigMap{})
	must(client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) child() (child corev1.ConfigMap) {
	must(w.Get(w.ctx, childKey, &child))
	return child
}

// setReady says of the first printer of the page that it runs, and whether it is ready.
func (w *world) setReady(ready corev1.ConditionStatus) {
	var pod corev1.Pod
	must(w.Get(w.ctx, client.ObjectKey{Namespace: helloKey.Namespace, Name: helloKey.Name + "-printer-0"}, &pod))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	must(w.Status().Update(w.ctx, &pod))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// failCreate fails the first creation of the object of that key.
func failCreate(key client.ObjectKey) interceptor.Funcs {
	failed := false
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if client.ObjectKeyFromObject(o) == key && !failed {
			failed = true
			return errors.New("the server is away")
		}
		return c.Create(ctx, o, options...)
	}}
}

// stories give the symptom of each bug that shows in a pass; none where there is none.
var stories = map[Bug]func(Bug) string{
	MissingOwner: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		child, page := w.child(), w.page()
		return symptom(!metav1.IsControlledBy(&child, &page), "the child has no owner")
	},
	CreateUnchecked: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		return symptom(w.pass() != nil, "the second pass fails")
	},
	StatusFirst: func(bug Bug) string {
		w := begin(bug, failCreate(childKey))
		_ = w.pass()
		return symptom(w.page().Status.Ready, "ready without a child")
	},
	LostUpdate: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		child := w.child()
		child.Data["note"] = "theirs"
		must(w.Update(w.ctx, &child))
		w.change(func(page *pressv1.Page) { page.Spec.Text = "two" })
		must(w.pass())
		child = w.child()
		return symptom(child.Data["note"] != "theirs" || child.Data["text"] != "two", "the note is lost")
	},
	CleanupOnce: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		must(w.Delete(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: entryKey.Namespace, Name: entryKey.Name}}))
		page := w.page()
		must(w.Delete(w.ctx, &page))
		return symptom(w.pass() != nil, "it cannot be deleted")
	},
	StaleRead: func(bug Bug) string {
		nothing := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }
		unseen := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key == childKey {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
			}
			return c.Get(ctx, key, o, options...)
		}
		created := 0
		counted := func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, o, options...)
			if _, is := o.(*corev1.ConfigMap); is && err == nil && o.GetLabels()[pageLabel] != "" {
				created++
			}
			return err
		}
		w := begin(bug, interceptor.Funcs{List: nothing, Get: unseen, Create: counted})
		w.change(func(page *pressv1.Page) { page.Spec.Languages = nil })
		for range 2 {
			_ = w.pass()
		}
		return symptom(created > 1, "two children")
	},
	HotLoop: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		before := w.page().ResourceVersion
		must(w.pass())
		return symptom(w.page().ResourceVersion != before, "a pass at rest writes")
	},
	RetryWithoutEnd: func(bug Bug) string {
		tries := 0
		working, end := context.WithCancel(context.Background())
		defer end()
		refuse := func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if o.GetName() == childKey.Name {
				if tries++; tries == 3 {
					end()
				}
				return errors.New("the server is away")
			}
			return c.Update(ctx, o, options...)
		}
		w := begin(bug, interceptor.Funcs{Update: refuse})
		w.working = working
		must(w.pass())
		w.change(func(page *pressv1.Page) { page.Spec.Text = "two" })
		_ = w.pass()
		return symptom(tries > 1, "one pass tries again and again")
	},
	AdoptsStrangers: func(bug Bug) string {
		stranger := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: childKey.Namespace, Name: childKey.Name},
			Data:       map[string]string{"text": "mine"},
		}
		w := begin(bug, interceptor.Funcs{}, stranger)
		_ = w.pass()
		child := w.child()
		return symptom(child.Data["text"] != "mine" || w.page().Status.Ready, "somebody else's is overwritten")
	},
	SwallowedError: func(bug Bug) string {
		w := begin(bug, failCreate(childKey))
		return symptom(w.pass() == nil, "a pass that failed is a success")
	},
	LateFinalizer: func(bug Bug) string {
		w := begin(bug, failCreate(entryKey))
		_ = w.pass()
		return symptom(len(w.page().Finalizers) == 0, "the entry is made before the finalizer is set")
	},
	ForgetsOnRestart: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		w.Reconciler = &Reconciler{Client: w.Client, Live: w.Live, Ledger: w.Ledger, Bug: bug}
		page := w.page()
		must(w.Delete(w.ctx, &page))
		must(w.pass())
		return symptom(w.is(entryKey), "the entry stays")
	},
	WritesTheSame: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		before := w.writes
		must(w.pass())
		return symptom(w.writes != before, "a pass at rest writes")
	},
	ForgetsKey: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		w.change(func(page *pressv1.Page) { page.Spec.Footer = "" })
		must(w.pass())
		_, is := w.child().Data["footer"]
		return symptom(is, "the footer stays")
	},
	ForgetsChild: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		w.change(func(page *pressv1.Page) { page.Spec.Languages = []string{"de"} })
		must(w.pass())
		return symptom(w.is(client.ObjectKey{Namespace: "default", Name: "hello-in-fr"}), "the translation stays")
	},
	FightsInjector: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		child := w.child()
		other := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "2"}
		child.OwnerReferences = append(child.OwnerReferences, other)
		must(w.Update(w.ctx, &child))
		must(w.pass())
		return symptom(len(w.child().OwnerReferences) != 2, "another's owner reference is removed")
	},
	StaleGeneration: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		w.change(func(page *pressv1.Page) { page.Spec.Text = "two" })
		must(w.pass())
		page := w.page()
		return symptom(page.Status.ObservedGeneration != page.Generation, "observedGeneration stays behind")
	},
	MissingRight: func(bug Bug) string {
		refuse := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
			}
			return c.Get(ctx, key, o, options...)
		}
		w := begin(bug, interceptor.Funcs{Get: refuse})
		return symptom(apierrors.IsForbidden(w.pass()), "403")
	},
	PanicsOnEmpty: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		w.change(func(page *pressv1.Page) { page.Spec.Text = "" })
		return symptom(w.pass() != nil, "a panic")
	},
	OneFieldAtATime: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		w.change(func(page *pressv1.Page) { page.Spec.Text, page.Spec.Footer = "two", "the end" })
		for range 2 {
			must(w.pass())
		}
		return symptom(w.child().Data["text"] != "two" || w.child().Data["footer"] != "the end", "half of it is done")
	},
	ConfirmedDeletes: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		gone := event.DeleteEvent{Object: &corev1.ConfigMap{}, DeleteStateUnknown: true}
		return symptom(!w.ofChildren().Delete(gone), "a deletion is not looked at")
	},
	ComparesSpecs: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		old, now := w.page(), w.page()
		now.Generation += 2
		seen := w.ofPages().Update(event.UpdateEvent{ObjectOld: &old, ObjectNew: &now})
		return symptom(!seen, "a new generation is not looked at")
	},
	GivesUpOnRefusal: func(bug Bug) string {
		refuse := func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return apierrors.NewInternalError(errors.New("failed calling webhook"))
		}
		w := begin(bug, interceptor.Funcs{Update: refuse})
		return symptom(errors.Is(w.pass(), reconcile.TerminalError(nil)), "it is not tried again")
	},
	GivesUpOnUnready: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		w.HasPrinters = true
		w.change(func(page *pressv1.Page) { page.Spec.Printers = 1 })
		must(w.pass())
		for _, ready := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionTrue} {
			w.setReady(ready)
			must(w.pass())
		}
		return symptom(w.page().Status.Broken, "it is broken for ever")
	},
	ReportsTheSame: func(bug Bug) string {
		reports := 0
		counted := func(ctx context.Context, c client.Client, part string, o client.Object, options ...client.SubResourceUpdateOption) error {
			reports++
			return c.SubResource(part).Update(ctx, o, options...)
		}
		w := begin(bug, interceptor.Funcs{SubResourceUpdate: counted})
		for range 2 {
			must(w.pass())
		}
		return symptom(reports > 1, "a pass at rest writes the status")
	},
	DeletesByName: func(bug Bug) string {
		w := begin(bug, interceptor.Funcs{})
		must(w.pass())
		old := w.page()
		old.UID = "0"
		must(w.strike(w.ctx, &old))
		return symptom(!w.is(entryKey), "the entry of another page is deleted")
	},
}

func symptom(shows bool, words string) string {
	if shows {
		return words
	}
	return ""
}

func TestEachBugShowsAndTheOperatorWithoutOneShowsNone(t *testing.T) {
	for _, bug := range Bugs {
		// That watches are missing shows in no pass.
		story, is := stories[bug]
		if !is && bug != MissedDelete {
			t.Errorf("%s has no story", bug)
		}
		if !is {
			continue
		}
		t.Run(bug.String(), func(t *testing.T) {
			if found := story(""); found != "" {
				t.Errorf("without a bug: %s", found)
			}
			if story(bug) == "" {
				t.Error("with the bug nothing shows")
			}
		})
	}
}

func TestABugThatIsNotKnownIsRefused(t *testing.T) {
	var bug Bug
	if err := bug.Set("no-such"); err == nil || bug != "" {
		t.Errorf("taken: %q, %v", bug, err)
	}
}
