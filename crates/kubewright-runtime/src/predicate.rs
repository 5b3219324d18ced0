//! Which events are worth a reconcile.
//!
//! The built-in predicates are those of controller-runtime (`pkg/predicate`): they look at updates only and let every
//! creation, deletion and generic event through. An object that was made anew while nobody saw it go is no update to any
//! predicate, but a deletion and a creation (controller-runtime's hold it back).
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::{Event, Predicate, predicate};
//!
//! // A change of the data, or of the labels; and what comes and goes.
//! let data = Predicate::of::<ConfigMap>(|event| match event {
//!     Event::Update { old, new } => old.data != new.data,
//!     Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
//! });
//! let interesting = data.or(predicate::labels_changed());
//! // controller.for_kind::<ConfigMap>().predicate(interesting)
//! ```

use std::{
    any::{TypeId, type_name},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

use kube::{
    Resource,
    api::ObjectMeta,
    core::{Selector, SelectorExt},
};

use crate::{cache::Change, object::AnyObject};

/// Event of an object of kind `K`: created, updated, deleted or generic.
#[derive(Debug)]
pub enum Event<'a, K: ?Sized> {
    /// It came to be, or was there when the watch began.
    Create(&'a K),
    /// It changed.
    Update {
        /// Before.
        old: &'a K,
        /// Now.
        new: &'a K,
    },
    /// It is gone; this is its last known state.
    Delete(&'a K),
    /// Something outside of the API server tells that there may be work ([`crate::sources::objects`]).
    Generic(&'a K),
}

impl<'a, K: ?Sized> Event<'a, K> {
    /// The newest known state of the object.
    #[must_use]
    pub fn object(&self) -> &'a K {
        match self {
            Self::Create(object)
            | Self::Update { new: object, .. }
            | Self::Delete(object)
            | Self::Generic(object) => object,
        }
    }

    fn try_map<'b, T: ?Sized>(&self, f: impl Fn(&'a K) -> Option<&'b T>) -> Option<Event<'b, T>> {
        Some(match self {
            Self::Create(new) => Event::Create(f(new)?),
            Self::Update { old, new } => Event::Update { old: f(old)?, new: f(new)? },
            Self::Delete(last) => Event::Delete(f(last)?),
            Self::Generic(object) => Event::Generic(f(object)?),
        })
    }
}

impl<'a, K: ?Sized> From<&'a Change<K>> for Event<'a, K> {
    fn from(change: &'a Change<K>) -> Self {
        match change {
            Change::Created(new) => Self::Create(new),
            Change::Updated { old, new } => Self::Update { old, new },
            Change::Deleted(last) => Self::Delete(last),
        }
    }
}

type Test = dyn Fn(&Event<'_, dyn AnyObject>) -> bool + Send + Sync;

/// A type that a predicate can look at.
type ObjectType = (TypeId, &'static str);

/// Decides whether an event leads to a reconcile. For any kind, or ([`Predicate::of`]) for one.
#[derive(Clone)]
pub struct Predicate {
    wanted: Vec<ObjectType>,
    test: Arc<Test>,
}

impl Predicate {
    /// A predicate on events of kind `K`. Giving it to a source of another kind is an error when the manager starts.
    pub fn of<K: Resource + 'static>(test: impl Fn(&Event<'_, K>) -> bool + Send + Sync + 'static) -> Self {
        Self {
            wanted: vec![(TypeId::of::<K>(), type_name::<K>())],
            test: Arc::new(move |event| {
                event.try_map(|object| object.any().downcast_ref::<K>()).is_some_and(|event| test(&event))
            }),
        }
    }

    /// A predicate on the metadata of any kind.
    pub fn of_metadata(test: impl Fn(&Event<'_, ObjectMeta>) -> bool + Send + Sync + 'static) -> Self {
        Self {
            wanted: Vec::new(),
            test: Arc::new(move |event| {
                event.try_map(|object| Some(object.metadata())).is_some_and(|event| test(&event))
            }),
        }
    }

    /// Both must let the event through.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.combine(other, |first, second| first() && second())
    }

    /// One must let the event through.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.combine(other, |first, second| first() || second())
    }

    /// Lets through what this one holds back.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "reads as and, or, not, as in controller-runtime")]
    pub fn not(self) -> Self {
        let test = self.test;
        Self { wanted: self.wanted, test: Arc::new(move |event| !test(event)) }
    }

    fn combine(self, other: Self, join: fn(&dyn Fn() -> bool, &dyn Fn() -> bool) -> bool) -> Self {
        let wanted = self.wanted.into_iter().chain(other.wanted).collect();
        let (first, second) = (self.test, other.test);
        Self { wanted, test: Arc::new(move |event| join(&|| first(event), &|| second(event))) }
    }

    /// The name of a type that this predicate is for and that is not `K`.
    pub(crate) fn misfit<K: 'static>(&self) -> Option<&'static str> {
        self.wanted.iter().find(|(id, _)| *id != TypeId::of::<K>()).map(|(_, name)| *name)
    }

    /// Whether `event` leads to a reconcile. An object with another uid was made anew under the name of one whose deletion nobody saw: one
    /// has gone, and another one has come, whatever they have in common.
    pub(crate) fn accepts(&self, event: &Event<'_, dyn AnyObject>) -> bool {
        match event {
            Event::Update { old, new } if old.metadata().uid != new.metadata().uid => {
                (self.test)(&Event::Delete(*old)) || (self.test)(&Event::Create(*new))
            }
            event => (self.test)(event),
        }
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

/// Lets updates through that change a part.
fn update_changes<T: PartialEq + 'static>(part: fn(&ObjectMeta) -> T) -> Predicate {
    Predicate::of_metadata(move |event| match event {
        Event::Update { old, new } => part(old) != part(new),
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
    })
}

/// Holds back updates that leave `metadata.resourceVersion` as it was: what a resync or a list tells once more
/// (`ResourceVersionChangedPredicate`).
#[must_use]
pub fn resource_version_changed() -> Predicate {
    update_changes(|meta| meta.resource_version.clone())
}

/// Lets events of objects through whose labels a selector matches; of updates, when the object matches after the update
/// (`LabelSelectorPredicate`). To watch no other objects at all, say [`Controller::labelled`](crate::Controller::labelled).
#[must_use]
pub fn labels_match(selector: impl Into<Selector>) -> Predicate {
    let (selector, none) = (selector.into(), BTreeMap::new());
    Predicate::of_metadata(move |event| selector.matches(event.object().labels.as_ref().unwrap_or(&none)))
}

/// Holds back updates that leave `metadata.generation` as it was: status and metadata changes, for kinds with a
/// generation.
#[must_use]
pub fn generation_changed() -> Predicate {
    update_changes(|meta| meta.generation)
}

/// Holds back updates that leave the labels as they were.
#[must_use]
pub fn labels_changed() -> Predicate {
    update_changes(|meta| meta.labels.clone())
}

/// Holds back updates that leave the annotations as they were.
#[must_use]
pub fn annotations_changed() -> Predicate {
    update_changes(|meta| meta.annotations.clone())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};

    use super::*;

    fn config(generation: i64, label: &str) -> ConfigMap {
        let mut config = ConfigMap::default();
        config.metadata.generation = Some(generation);
        config.metadata.labels = Some([("app".to_owned(), label.to_owned())].into());
        config
    }

    #[test]
    fn creations_and_deletions_pass_the_built_in_predicates() {
        let object: &dyn AnyObject = &config(1, "a");
        for predicate in [generation_changed(), labels_changed(), annotations_changed()] {
            assert!(predicate.accepts(&Event::Create(object)));
            assert!(predicate.accepts(&Event::Delete(object)));
            assert!(predicate.accepts(&Event::Generic(object)));
            assert!(!predicate.accepts(&Event::Update { old: object, new: object }));
        }
    }

    #[test]
    fn an_object_that_was_made_anew_unseen_passes_as_another_one() {
        let with_uid = |uid: &str| {
            let mut config = config(1, "a");
            config.metadata.uid = Some(uid.to_owned());
            config
        };
        let (old, new) = (with_uid("1"), with_uid("2"));
        let update = Event::Update { old: &old as &dyn AnyObject, new: &new };
        let own = Predicate::of::<ConfigMap>(|event| match event {
            Event::Update { old, new } => old.data != new.data,
            Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
        });
        for predicate in [generation_changed(), labels_changed(), annotations_changed(), own] {
            assert!(predicate.accepts(&update));
        }
        let nothing = Predicate::of_metadata(|_| false);
        assert!(!nothing.accepts(&update));
    }

    /// RT-03.
    #[test]
    fn predicates_combine() {
        let (old, new) = (config(1, "a"), config(1, "b"));
        let update = Event::Update { old: &old as &dyn AnyObject, new: &new };
        assert!(!generation_changed().accepts(&update));
        assert!(labels_changed().accepts(&update));
        assert!(generation_changed().or(labels_changed()).accepts(&update));
        assert!(!generation_changed().and(labels_changed()).accepts(&update));
        assert!(generation_changed().not().accepts(&update));
    }

    #[test]
    fn a_typed_predicate_sees_the_object_and_knows_its_kind() {
        let predicate = Predicate::of::<ConfigMap>(|event| event.object().metadata.generation > Some(1))
            .and(generation_changed());
        assert!(predicate.accepts(&Event::Create(&config(2, "a") as &dyn AnyObject)));
        assert!(!predicate.accepts(&Event::Create(&config(1, "a") as &dyn AnyObject)));
        assert_eq!(predicate.misfit::<ConfigMap>(), None);
        assert!(predicate.misfit::<Pod>().is_some());
    }

    #[test]
    fn labels_match_by_what_an_object_is_now() {
        let web = labels_match(Selector::from_iter([("app".to_owned(), "web".to_owned())]));
        let (before, now) = (config(1, "web"), config(1, "db"));
        let object = |config| config as &dyn AnyObject;
        assert!(web.accepts(&Event::Create(object(&before))));
        assert!(!web.accepts(&Event::Create(object(&now))));
        assert!(web.accepts(&Event::Update { old: object(&now), new: object(&before) }));
        assert!(!web.accepts(&Event::Update { old: object(&before), new: object(&now) }));
        assert!(!web.accepts(&Event::Delete(&ConfigMap::default() as &dyn AnyObject)));
    }

    #[test]
    fn what_is_told_once_more_is_no_new_version() {
        let (mut old, mut new) = (config(1, "a"), config(1, "a"));
        (old.metadata.resource_version, new.metadata.resource_version) = (Some("1".into()), Some("1".into()));
        let predicate = resource_version_changed();
        assert!(!predicate.accepts(&Event::Update { old: &old as &dyn AnyObject, new: &new }));
        new.metadata.resource_version = Some("2".into());
        assert!(predicate.accepts(&Event::Update { old: &old as &dyn AnyObject, new: &new }));
    }
}
