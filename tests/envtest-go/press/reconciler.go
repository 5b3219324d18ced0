// Package press is an operator with room for bugs, for what looks for the bugs of operators. Each Page has a ConfigMap with
// its text, one for each language, and an entry in a ledger: a ConfigMap in another namespace, where no owner reference
// reaches, which a finalizer guards.
package press

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pressv1 "kubewright.dev/envtest-go/press/v1"
)

const (
	finalizer = "press.example/ledger"
	// ofPage is the key of an entry that has the uid of its page.
	ofPage = "page"
	// pageLabel is on each child, with the name of its page.
	pageLabel = "press.example/page"
)

// Reconciler prints pages, with a bug or without.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live client.Reader
	// Ledger is the namespace of the ledger.
	Ledger string
	Bug    Bug
	// HasPrinters is whether pages are printed on pods.
	HasPrinters bool
	// Settle is for how long StaleRead waits after it has made something, so that its cache has it on most days.
	Settle time.Duration

	// made has when StaleRead made something for a page.
	made sync.Map
	// remembered has the pages that were entered since the start.
	remembered sync.Map
	// answered has the specs that OneFieldAtATime has answered, and what it made of them.
	answered sync.Map
}

// Reconcile brings what is there of one page to what its spec asks for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.pass(ctx, req)
	if r.Bug == GivesUpOnRefusal && apierrors.IsInternalError(err) {
		return result, reconcile.TerminalError(err)
	}
	return result, err
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var page pressv1.Page
	if err := r.Get(ctx, req.NamespacedName, &page); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !page.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, &page)
	}
	if r.Bug == LateFinalizer {
		if err := r.enter(ctx, &page); err != nil {
			return ctrl.Result{}, err
		}
	}
	if controllerutil.AddFinalizer(&page, finalizer) {
		if err := r.Update(ctx, &page); err != nil {
			return ctrl.Result{}, err
		}
	}
	if r.Bug == StatusFirst {
		if err := r.report(ctx, &page, true); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.enter(ctx, &page); err != nil {
		return ctrl.Result{}, err
	}
	if left := r.settling(&page); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	printed, err := r.print(ctx, &page)
	if err != nil && r.Bug != SwallowedError {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &page, printed)
}

// remove cleans up after a page and lets it go.
func (r *Reconciler) remove(ctx context.Context, page *pressv1.Page) error {
	if !controllerutil.ContainsFinalizer(page, finalizer) {
		return nil
	}
	if err := r.strike(ctx, page); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(page, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, page))
}

// enter makes the page's entry in the ledger.
func (r *Reconciler) enter(ctx context.Context, page *pressv1.Page) error {
	entry := r.entry(page)
	var found corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKeyFromObject(entry), &found)
	if err == nil && found.Data[ofPage] != string(page.UID) {
		found.Data = entry.Data
		return r.Update(ctx, &found)
	}
	if client.IgnoreNotFound(err) != nil || err == nil {
		return err
	}
	if err := r.Create(ctx, entry); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	r.remembered.Store(page.UID, true)
	return nil
}

// strike takes the page's entry out of the ledger.
func (r *Reconciler) strike(ctx context.Context, page *pressv1.Page) error {
	if _, known := r.remembered.Load(page.UID); !known && r.Bug == ForgetsOnRestart {
		return nil
	}
	entry := r.entry(page)
	if r.Bug == CleanupOnce {
		return r.Delete(ctx, entry)
	}
	var options []client.DeleteOption
	if r.Bug != DeletesByName {
		var found corev1.ConfigMap
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(entry), &found); err != nil {
			return client.IgnoreNotFound(err)
		}
		if found.Data[ofPage] != string(page.UID) {
			return nil
		}
		options = append(options, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
	}
	return client.IgnoreNotFound(r.Delete(ctx, entry, options...))
}

func (r *Reconciler) entry(page *pressv1.Page) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Ledger, Name: page.Namespace + "." + page.Name},
		Data:       map[string]string{ofPage: string(page.UID)},
	}
}

// print makes the page's ConfigMaps what they are to be; whether they are the page's.
func (r *Reconciler) print(ctx context.Context, page *pressv1.Page) (bool, error) {
	if r.Bug == OneFieldAtATime {
		page = r.partly(page)
	}
	if r.Bug == MissingRight {
		key := client.ObjectKey{Namespace: page.Namespace, Name: page.Name + "-key"}
		if err := r.Live.Get(ctx, key, &corev1.Secret{}); client.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	if r.Bug == PanicsOnEmpty {
		_ = page.Spec.Text[0]
	}
	if r.Bug == StaleRead {
		return true, r.printPastTheCache(ctx, page)
	}
	printed := true
	var wanted []string
	for _, child := range r.children(page) {
		wanted = append(wanted, child.Name)
		own, err := r.ensure(ctx, page, child)
		if err != nil {
			return false, err
		}
		printed = printed && own
	}
	if err := r.prune(ctx, page, wanted); err != nil || !r.HasPrinters {
		return printed, err
	}
	return printed, r.setUpPrinters(ctx, page)
}

// ensure makes or changes one child; false where it is somebody else's.
func (r *Reconciler) ensure(ctx context.Context, page *pressv1.Page, wanted *corev1.ConfigMap) (bool, error) {
	if r.Bug == CreateUnchecked {
		return true, r.Create(ctx, wanted)
	}
	var found corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKeyFromObject(wanted), &found); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		return true, r.Create(ctx, wanted)
	}
	own := metav1.IsControlledBy(&found, page) || r.Bug == MissingOwner || r.Bug == AdoptsStrangers
	if !own {
		return false, nil
	}
	changed := r.changed(&found, wanted)
	if equality.Semantic.DeepEqual(&found, changed) && r.Bug != WritesTheSame {
		return true, nil
	}
	for {
		err := r.Update(ctx, changed)
		if err == nil || r.Bug != RetryWithoutEnd || ctx.Err() != nil {
			return true, err
		}
	}
}

// changed is the child that was found with what is wanted of it; what others wrote into it stays.
func (r *Reconciler) changed(found, wanted *corev1.ConfigMap) *corev1.ConfigMap {
	if r.Bug == LostUpdate && found.Data["text"] != wanted.Data["text"] {
		// Without a resource version, so that nothing conflicts with it.
		return wanted
	}
	changed := found.DeepCopy()
	if changed.Data == nil && len(wanted.Data) > 0 {
		changed.Data = map[string]string{}
	}
	for _, key := range []string{"text", "footer"} {
		if value, is := wanted.Data[key]; is {
			changed.Data[key] = value
		} else if r.Bug != ForgetsKey {
			delete(changed.Data, key)
		}
	}
	metav1.SetMetaDataLabel(&changed.ObjectMeta, pageLabel, wanted.Labels[pageLabel])
	isFought := r.Bug == FightsInjector || r.Bug == AdoptsStrangers && metav1.GetControllerOf(found) == nil
	if isFought {
		changed.OwnerReferences = wanted.OwnerReferences
	}
	return changed
}

// prune deletes the children that are not wanted any more.
func (r *Reconciler) prune(ctx context.Context, page *pressv1.Page, wanted []string) error {
	if r.Bug == ForgetsChild {
		return nil
	}
	var found corev1.ConfigMapList
	of := client.MatchingLabels{pageLabel: page.Name}
	if err := r.List(ctx, &found, client.InNamespace(page.Namespace), of); err != nil {
		return err
	}
	for i := range found.Items {
		child := &found.Items[i]
		if slices.Contains(wanted, child.Name) || !metav1.IsControlledBy(child, page) {
			continue
		}
		if err := r.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// children are the ConfigMaps that a page is to have: its own first, then its translations.
func (r *Reconciler) children(page *pressv1.Page) []*corev1.ConfigMap {
	data := map[string]string{"text": page.Spec.Text}
	if page.Spec.Footer != "" {
		data["footer"] = page.Spec.Footer
	}
	children := []*corev1.ConfigMap{r.child(page, page.Name+"-page", data)}
	for _, language := range page.Spec.Languages {
		children = append(children, r.child(page, page.Name+"-in-"+language, nil))
	}
	return children
}

func (r *Reconciler) child(page *pressv1.Page, name string, data map[string]string) *corev1.ConfigMap {
	child := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: page.Namespace, Name: name, Labels: map[string]string{pageLabel: page.Name},
		},
		Data: data,
	}
	if r.Bug != MissingOwner {
		owner := metav1.NewControllerRef(page, pressv1.GroupVersion.WithKind("Page"))
		child.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return child
}

// printPastTheCache creates a ConfigMap of a generated name where the cache has none.
func (r *Reconciler) printPastTheCache(ctx context.Context, page *pressv1.Page) error {
	var found corev1.ConfigMapList
	of := client.MatchingLabels{pageLabel: page.Name}
	if err := r.List(ctx, &found, client.InNamespace(page.Namespace), of); err != nil {
		return err
	}
	wanted := r.children(page)[0]
	if len(found.Items) == 0 {
		wanted.GenerateName, wanted.Name = wanted.Name+"-", ""
		r.made.Store(page.UID, time.Now())
		return r.Create(ctx, wanted)
	}
	changed := r.changed(&found.Items[0], wanted)
	if equality.Semantic.DeepEqual(&found.Items[0], changed) {
		return nil
	}
	return r.Update(ctx, changed)
}

// settling is for how long the cache of StaleRead may not have yet what was made for the page.
func (r *Reconciler) settling(page *pressv1.Page) time.Duration {
	made, is := r.made.Load(page.UID)
	if !is {
		return 0
	}
	return r.Settle - time.Since(made.(time.Time))
}

// report writes the status if it is another than the one there is.
func (r *Reconciler) report(ctx context.Context, page *pressv1.Page, ready bool) error {
	status := pressv1.PageStatus{Ready: ready, ObservedGeneration: page.Generation}
	if r.HasPrinters {
		if err := r.look(ctx, page, &status); err != nil {
			return err
		}
	}
	if r.Bug == HotLoop {
		status.Passes = page.Status.Passes + 1
	}
	if r.Bug == StaleGeneration && page.Status.ObservedGeneration != 0 {
		status.ObservedGeneration = page.Status.ObservedGeneration
	}
	if status == page.Status && r.Bug != ReportsTheSame {
		return nil
	}
	page.Status = status
	return r.Status().Update(ctx, page)
}

// answer is a spec that was answered, and what was made of it.
type answer struct {
	asked, made pressv1.PageSpec
}

// partly is the page as OneFieldAtATime sees it: with the first of the fields that have changed since it was asked last.
func (r *Reconciler) partly(page *pressv1.Page) *pressv1.Page {
	page = page.DeepCopy()
	known, is := r.answered.Load(page.UID)
	if !is {
		r.answered.Store(page.UID, answer{asked: page.Spec, made: page.Spec})
		return page
	}
	last := known.(answer)
	made := last.made
	switch asked := page.Spec; {
	case asked.Text != last.asked.Text:
		made.Text = asked.Text
	case asked.Footer != last.asked.Footer:
		made.Footer = asked.Footer
	case !slices.Equal(asked.Languages, last.asked.Languages):
		made.Languages = asked.Languages
	case asked.Printers != last.asked.Printers:
		made.Printers = asked.Printers
	}
	r.answered.Store(page.UID, answer{asked: page.Spec, made: made})
	page.Spec = made
	return page
}
