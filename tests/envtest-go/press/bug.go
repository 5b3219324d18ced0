package press

import (
	"fmt"
	"slices"
)

// Bug is one that operators have had; empty for none. They are those of crates/kubewright-testing/tests/it/mutants, and some more.
type Bug string

// The bugs.
const (
	// MissingOwner leaves the owner reference out, so that what was made stays when its page goes.
	MissingOwner Bug = "missing-owner"
	// CreateUnchecked creates without looking, and takes it for an error that something is there.
	CreateUnchecked Bug = "create-unchecked"
	// StatusFirst says that all is done before it does it.
	StatusFirst Bug = "status-first"
	// LostUpdate writes over what others have written since.
	LostUpdate Bug = "lost-update"
	// CleanupOnce fails to clean up where there is nothing to clean up: half of it was done before a crash.
	CleanupOnce Bug = "cleanup-once"
	// StaleRead decides by its cache what to create under a generated name.
	StaleRead Bug = "stale-read"
	// MissedDelete does not watch what it made.
	MissedDelete Bug = "missed-delete"
	// HotLoop changes the page with each look at it, which is a reason to look.
	HotLoop Bug = "hot-loop"
	// RetryWithoutEnd tries a write again at once, for as long as it takes.
	RetryWithoutEnd Bug = "retry-without-end"
	// AdoptsStrangers takes over what somebody else has made under the name that it wants.
	AdoptsStrangers Bug = "adopts-strangers"
	// SwallowedError goes on after an error, and does not come back.
	SwallowedError Bug = "swallowed-error"
	// LateFinalizer makes what is to be cleaned up, and then sets the finalizer.
	LateFinalizer Bug = "late-finalizer"
	// ForgetsOnRestart keeps in memory alone what is to be cleaned up.
	ForgetsOnRestart Bug = "forgets-on-restart"
	// WritesTheSame writes what is there already, each time that it looks.
	WritesTheSame Bug = "writes-the-same"
	// ForgetsKey never removes a key that is not wanted any more.
	ForgetsKey Bug = "forgets-key"
	// ForgetsChild never deletes a child that is not wanted any more.
	ForgetsChild Bug = "forgets-child"
	// FightsInjector wants the owner references to be its own and nothing else.
	FightsInjector Bug = "fights-injector"
	// StaleGeneration writes observedGeneration once.
	StaleGeneration Bug = "stale-generation"
	// MissingRight reads a Secret, which its role does not allow.
	MissingRight Bug = "missing-right"
	// PanicsOnEmpty panics at an empty text, which the schema allows.
	PanicsOnEmpty Bug = "panics-on-empty"
	// DeletesByName cleans up what has the name of its own, though it may be that of a page that was made anew.
	DeletesByName Bug = "deletes-by-name"
	// OneFieldAtATime answers a change by the first field that it finds changed.
	OneFieldAtATime Bug = "one-field-at-a-time"
	// ConfirmedDeletes believes a deletion only where it has seen it, and not where the object was gone from a list.
	ConfirmedDeletes Bug = "confirmed-deletes"
	// ComparesSpecs looks at a page only if its spec is another than the one that it saw before.
	ComparesSpecs Bug = "compares-specs"
	// GivesUpOnRefusal takes it for final when the API server cannot do something.
	GivesUpOnRefusal Bug = "gives-up-on-refusal"
	// GivesUpOnUnready says for ever that a page is broken one of whose printers was not ready once.
	GivesUpOnUnready Bug = "gives-up-on-unready"
	// ReportsTheSame writes the status that is there already, each time that it looks.
	ReportsTheSame Bug = "reports-the-same"
)

// Bugs are all of them.
var Bugs = []Bug{
	MissingOwner, CreateUnchecked, StatusFirst, LostUpdate, CleanupOnce, StaleRead, MissedDelete, HotLoop,
	RetryWithoutEnd, AdoptsStrangers, SwallowedError, LateFinalizer, ForgetsOnRestart, WritesTheSame, ForgetsKey,
	ForgetsChild, FightsInjector, StaleGeneration, MissingRight, PanicsOnEmpty, DeletesByName,
	OneFieldAtATime, ConfirmedDeletes, ComparesSpecs, GivesUpOnRefusal, GivesUpOnUnready, ReportsTheSame,
}

// Set reads a bug's name, as a flag.
func (b *Bug) Set(name string) error {
	if name != "" && !slices.Contains(Bugs, Bug(name)) {
		return fmt.Errorf("unknown bug: known are %v", Bugs)
	}
	*b = Bug(name)
	return nil
}

// String is the bug's name.
func (b *Bug) String() string {
	return string(*b)
}
