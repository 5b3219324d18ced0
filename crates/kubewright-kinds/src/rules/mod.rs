//! The functions that are a kind's own: defaults, preparation, validation. All pure, on JSON values.
//!
//! A kind's descriptor says which are its own, and has them beside it where they are few; a family of kinds has one file
//! here. What they share is in `kubewright-meta`: `at` (a place in an object), `errors` (checks), `fill` (defaults), `text`,
//! `quantity`, `percent` and `selector`. The rules are those of kube-apiserver v1.36: `pkg/apis/*/v1/defaults.go`,
//! `pkg/registry/*/*/strategy.go`, `pkg/apis/*/validation`.
//!
//! A rule that is not the same in all versions asks the module `version` for the feature, by the name of its gate, or for the version.
//!
//! No function here panics on any JSON, whether it fits the schema or not: what has an unexpected type is skipped.

pub(super) mod admission;
pub mod api_services;
pub(super) mod apps;
pub(super) mod autoscaling;
pub(super) mod batch;
pub mod certificates;
pub(super) mod conditions;
pub(super) mod config;
pub mod convert;
pub(crate) mod declared;
pub mod devices;
pub(super) mod events;
pub mod flow;
mod ip;
pub(super) mod limits;
pub(super) mod migrations;
pub mod namespaces;
pub(super) mod networking;
pub(super) mod nodes;
pub(super) mod pem_blocks;
pub mod pod_certificates;
pub mod pods;
pub(super) mod policy;
mod printed;
pub(super) mod rbac;
pub mod resources;
pub(super) mod reviews;
pub mod services;
pub(super) mod signers;
pub(super) mod storage;
mod structs;
pub(super) mod trust_bundles;
pub(crate) mod version;
pub(super) mod warnings;

use kubewright_identity::authn::User;
use kubewright_meta::rules::metadata::{self, NameRule};
use kubewright_meta::rules::{at, errors, fill, percent, selector};
use kubewright_meta::{FieldError, quantity, text};
use kubewright_spec::Version;
use serde_json::Value;

use crate::definition;

/// What a kind does beyond its schema. The engine calls these in the order in which they stand here.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Fills in what the client left out (after decoding, before admission; also on every update).
    pub default: fn(&mut Value),
    /// Where in an object the spec of a pod is; empty where there is none. Fields of features that are off are dropped from it.
    pub pod_spec: &'static [&'static str],
    /// Makes an object ready to be created: server-owned fields are set or dropped (a pod's phase becomes Pending).
    pub prepare_create: fn(&mut Value),
    /// What a new object is warned of while it is made ready, before it is, be it good or not.
    pub(crate) warn_early: fn(&Value, &mut Vec<String>),
    /// Whether what is stored of a new object, which is not yet prepared, lacks what is filled in whenever it is read: the
    /// first update is a write then, whatever it changes.
    pub lacks_defaults: fn(&Value) -> bool,
    /// Fills in defaults that depend on what a new object gets only when it is prepared. Owners of a new object are told as if they were
    /// there.
    pub complete: Option<fn(&mut Value)>,
    /// Makes a replacement ready: server-owned fields are carried over from the old object. Arguments: new, old.
    pub prepare_update: fn(&mut Value, &Value),
    /// Writes down the time where the client left it out, once an object is prepared. Arguments: new, the object that it
    /// replaces, now.
    pub stamp: fn(&mut Value, Option<&Value>, &str),
    /// Makes a new status ready: what it may not have is dropped. Arguments: new, old.
    pub prepare_status: fn(&mut Value, &Value),
    /// Writes what an object has that nobody has written, which bookmarks of watches tell: fields that are a pointer in the version
    /// and none in Kubernetes' internal type.
    pub unwritten: fn(&mut Value),
    /// What of a stored object is not shown when it is read.
    pub(crate) hidden: Option<Hidden>,
    /// How `metadata.generation` counts.
    pub generation: Generation,
    /// What `metadata.name` must look like.
    pub name: NameRule,
    /// What an update checks as if the object were new.
    pub again: Again,
    /// Whether the kind looks at metadata itself, before the rest of the object; where it does not, every creation does after it.
    pub judges_metadata: bool,
    /// Whether the kind looks at the change of metadata once more than every update does.
    pub change_again: bool,
    /// The same of a write to `/status`.
    pub status_change_again: bool,
    /// Whether a write to `/status` checks metadata as those of a new object once more.
    pub status_again: bool,
    /// What finalizers must look like beyond their syntax.
    pub finalizers: Finalizers,
    /// Writes down who makes a new object, where the kind tells.
    pub author: fn(&mut Value, &User),
    /// What is wrong with an object, beyond metadata and schema.
    pub validate: fn(&Value) -> Vec<FieldError>,
    /// What is wrong with an object that replaces another, beyond metadata, schema and what [`Rules::again`] finds.
    /// Arguments: new, old.
    pub validate_update: fn(&Value, &Value) -> Vec<FieldError>,
    /// What is wrong with a new status (a write to `/status`, after everything else was carried over from the old
    /// object), beyond metadata and schema. Arguments: new, old.
    pub validate_status: fn(&Value, &Value) -> Vec<FieldError>,
    /// Whether maps without entries stay until objects are encoded, as rules compare or show them (`reflect.DeepEqual`).
    pub(crate) keeps_empty_maps: bool,
    /// What a good object is warned of, see [`Rules::warnings`].
    pub(super) warn: warnings::Warn,
    /// See [`Rules::warning_of_silent_deletion`].
    pub(super) silent_deletion: Option<&'static str>,
    /// The version of Kubernetes that they are judged by.
    pub(super) version: Version,
    /// Whether each mistake is told once, however often it is found (built-in kinds from v1.37 on).
    pub(crate) told_once: bool,
    /// Rules that are declared in its types, and checked by the server itself.
    pub(crate) declared: &'static [declared::Declared],
}

/// What of stored objects is not shown to who reads or writes them (`Decorator` of `k8s.io/apiserver/pkg/registry/generic/registry`).
/// Watches and the object's parts show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hidden {
    /// A text that stands in the JSON of each object that has some.
    pub mark: &'static str,
    /// Takes it out. Returns whether there was any.
    pub hide: fn(&mut Value) -> bool,
}

/// What an update checks as if the object were new, before it looks at the change. Kinds differ in that, and each
/// finding is told as often as it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Nothing: the checks of the change are all.
    Nothing,
    /// The metadata.
    Metadata,
    /// The whole object.
    Object,
    /// The whole object, once the change is looked at.
    ObjectAfter,
    /// The whole object, twice.
    ObjectTwice,
}

/// How `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// There is none.
    None,
    /// It stays 1.
    Fixed,
    /// A change outside of metadata and status raises it.
    Content,
    /// The same, where a list or a map without entries is not the same as none (`reflect.DeepEqual`).
    AsGiven,
    /// The same as `Content`, but a new object has none.
    ContentOfOld,
    /// The same, of definitions, in whose schemas some lists without entries are structs.
    Definitions,
    /// A change of annotations raises it too.
    ContentAndAnnotations,
    /// A change of labels raises it too.
    ContentAndLabels,
}

impl Generation {
    /// Whether new objects start at generation 1.
    #[must_use]
    pub fn counts(self) -> bool {
        !matches!(self, Self::None | Self::ContentOfOld)
    }

    /// Whether replacing `old` by `new` raises it.
    #[must_use]
    pub fn raised(self, new: &Value, old: &Value) -> bool {
        match self {
            Self::None | Self::Fixed => false,
            Self::Content | Self::ContentOfOld => !same_content(new, old),
            Self::AsGiven => !content(new).eq(content(old)),
            Self::Definitions => !definition::same_content(new, old),
            Self::ContentAndAnnotations => !same_content(new, old) || !metadata::same_annotations(new, old),
            Self::ContentAndLabels => !same_content(new, old) || !same_labels(new, old),
        }
    }
}

/// Takes an annotation away, and the map with the last of them.
fn drop_annotation(object: &mut Value, key: &str) {
    let Some(metadata) = fill::present(object, "metadata") else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    if annotations.remove(key).is_some() && annotations.is_empty() {
        fill::remove(metadata, "annotations");
    }
}

fn same_labels(one: &Value, other: &Value) -> bool {
    let of = |object: &Value| object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    of(one) == of(other)
}

/// The members that say what is wanted.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(key, _)| !matches!(key.as_str(), "metadata" | "status"))
}

/// Whether two objects are the same but for metadata and status.
fn same_content(new: &Value, old: &Value) -> bool {
    let counts = |key: &str| !matches!(key, "metadata" | "status");
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => at::same_members(new, old, counts),
        _ => at::same(new, old),
    }
}

/// What finalizers without a domain are, which Kubernetes does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalizers {
    /// Refused: most built-in kinds.
    Strict,
    /// As good as any.
    Syntax,
    /// Warned of: custom kinds.
    Warned,
}

impl Rules {
    /// Rules that ask for nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            default: |_| {},
            pod_spec: &[],
            prepare_create: |_| {},
            warn_early: |_, _| {},
            lacks_defaults: |_| false,
            complete: None,
            prepare_update: |_, _| {},
            stamp: |_, _, _| {},
            prepare_status: |_, _| {},
            unwritten: |_| {},
            hidden: None,
            generation: Generation::None,
            name: NameRule::Subdomain,
            again: Again::Nothing,
            judges_metadata: true,
            change_again: true,
            status_change_again: true,
            status_again: false,
            finalizers: Finalizers::Strict,
            author: |_, _| {},
            validate: |_| Vec::new(),
            validate_update: |_, _| Vec::new(),
            validate_status: |_, _| Vec::new(),
            keeps_empty_maps: false,
            warn: |_, _| {},
            silent_deletion: None,
            version: Version::DEFAULT,
            told_once: false,
            declared: &[],
        }
    }

    /// The rules of a custom resource: its schema says all else.
    #[must_use]
    pub const fn custom() -> Self {
        Self { generation: Generation::AsGiven, finalizers: Finalizers::Warned, ..Self::none() }
    }

    /// Calls rules as those of the version that these are of: all that a kind's own functions are called by.
    pub fn within<T>(&self, call: impl FnOnce() -> T) -> T {
        version::judged_by(self.version, call)
    }

    /// See [`Rules::default`](field@Rules::default).
    pub fn default(&self, object: &mut Value) {
        self.within(|| (self.default)(object));
    }

    /// See [`Rules::prepare_create`](field@Rules::prepare_create).
    pub fn prepare_create(&self, object: &mut Value) {
        self.within(|| {
            self.drop_disabled(object);
            (self.prepare_create)(object);
        });
    }

    /// See [`Rules::prepare_update`](field@Rules::prepare_update).
    pub fn prepare_update(&self, new: &mut Value, old: &Value) {
        self.within(|| {
            self.drop_disabled(new);
            (self.prepare_update)(new, old);
        });
    }

    fn drop_disabled(&self, object: &mut Value) {
        if !self.pod_spec.is_empty()
            && let Some(spec) = fill::reach(object, self.pod_spec)
        {
            pods::drop_disabled(spec);
        }
    }

    /// See [`Rules::prepare_status`](field@Rules::prepare_status).
    pub fn prepare_status(&self, new: &mut Value, old: &Value) {
        self.within(|| (self.prepare_status)(new, old));
    }

    /// See [`Rules::stamp`](field@Rules::stamp).
    pub fn stamp(&self, object: &mut Value, old: Option<&Value>, now: &str) {
        self.within(|| (self.stamp)(object, old, now));
    }

    /// All that is wrong with a new object but its schema: metadata first (`rest.BeforeCreate`).
    #[must_use]
    pub fn errors_on_create(&self, object: &Value, namespaced: bool) -> Vec<FieldError> {
        let mut errors = self.errors_as_new(object, namespaced);
        // The generic part comes last. Alone it looks at what a long name is generated of.
        if errors.is_empty() && matches!(self.name, NameRule::LongName | NameRule::Any) {
            errors.extend(
                self.checked(object, || metadata::validate(object, NameRule::PathSegment, namespaced)),
            );
        }
        errors
    }

    /// What the kind itself finds wrong with an object that is whole.
    fn errors_as_new(&self, object: &Value, namespaced: bool) -> Vec<FieldError> {
        self.checked(object, || {
            if !self.judges_metadata {
                let errors = (self.validate)(object);
                return if errors.is_empty() { self.metadata(object, namespaced) } else { errors };
            }
            let mut errors = self.metadata(object, namespaced);
            errors.extend((self.validate)(object));
            errors
        })
    }

    /// All that is wrong with a replacement but its schema (`rest.BeforeUpdate`): metadata is checked by the generic
    /// part and again by the kind, and each finding is told as often as it is found.
    #[must_use]
    pub fn errors_on_update(&self, new: &Value, old: &Value, namespaced: bool) -> Vec<FieldError> {
        self.checked(new, || {
            let mut errors = self.metadata_on_update(new, old, namespaced, self.change_again);
            match self.again {
                Again::Nothing | Again::ObjectAfter => {}
                Again::Metadata => errors.extend(self.metadata(new, namespaced)),
                Again::Object => errors.extend(self.errors_as_new(new, namespaced)),
                Again::ObjectTwice => {
                    for _ in 0..2 {
                        errors.extend(self.errors_as_new(new, namespaced));
                    }
                }
            }
            errors.extend((self.validate_update)(new, old));
            if self.again == Again::ObjectAfter {
                errors.extend(self.errors_as_new(new, namespaced));
            }
            ip::tolerate(&mut errors, old);
            if !self.pod_spec.is_empty() {
                pods::tolerate(&mut errors, old, self.pod_spec);
            }
            errors
        })
    }

    /// What the generic part alone finds wrong with a replacement: all that is told of one that says to be of another kind.
    #[must_use]
    pub fn errors_of_metadata_on_update(
        &self,
        new: &Value,
        old: &Value,
        namespaced: bool,
    ) -> Vec<FieldError> {
        self.checked(new, || self.metadata_on_update(new, old, namespaced, false))
    }

    /// All that is wrong with a write to `/status` but the schema.
    #[must_use]
    pub fn errors_on_status(&self, new: &Value, old: &Value, namespaced: bool) -> Vec<FieldError> {
        self.checked(new, || {
            let mut errors = self.metadata_on_update(new, old, namespaced, self.status_change_again);
            if self.status_again {
                errors.extend(self.metadata(new, namespaced));
            }
            errors.extend((self.validate_status)(new, old));
            ip::tolerate(&mut errors, old);
            errors
        })
    }

    /// What is wrong with a write of a member alone: with its metadata (also as of a new object, where `again`), and what
    /// `of_member` finds.
    #[must_use]
    pub fn errors_on_member(
        &self,
        (new, old): (&Value, &Value),
        namespaced: bool,
        again: bool,
        of_member: impl FnOnce() -> Vec<FieldError>,
    ) -> Vec<FieldError> {
        self.within(|| {
            let mut errors = self.metadata_on_update(new, old, namespaced, true);
            if again {
                errors.extend(self.metadata(new, namespaced));
            }
            errors.extend(of_member());
            in_words_of(self.version, &mut errors);
            errors
        })
    }

    /// What a new object is warned of, be it good or not, before it is made ready.
    pub fn early_warnings(&self, object: &Value, warnings: &mut Vec<String>) {
        self.within(|| (self.warn_early)(object, warnings));
    }

    /// What a good object is warned of: a new one, or (with `old`) a replacement, before its generation is raised.
    #[must_use]
    pub fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let raised = || old.is_some_and(|old| self.generation.raised(object, old));
        let mut found = match self.finalizers {
            Finalizers::Warned => metadata::finalizer_warnings(object, old),
            Finalizers::Strict | Finalizers::Syntax => Vec::new(),
        };
        self.within(|| (self.warn)(&warnings::WarningContext::new(object, old, &raised), &mut found));
        found
    }

    /// What a deletion is warned of that does not say what becomes of the dependents; whether it succeeds or not.
    #[must_use]
    pub fn warning_of_silent_deletion(&self) -> Option<&'static str> {
        self.silent_deletion
    }

    fn checked(&self, object: &Value, check: impl Fn() -> Vec<FieldError>) -> Vec<FieldError> {
        let mut errors = self.within(|| at::checked(check));
        in_words_of(self.version, &mut errors);
        if !errors.is_empty() {
            declared::put_last(self.version, self.declared, object, &mut errors);
            if self.told_once {
                declared::keep_first_of_each(&mut errors);
            }
        }
        errors
    }

    fn metadata(&self, object: &Value, namespaced: bool) -> Vec<FieldError> {
        let mut errors = metadata::validate(object, self.name, namespaced);
        errors.extend(self.finalizers(object));
        errors
    }

    fn metadata_on_update(&self, new: &Value, old: &Value, namespaced: bool, again: bool) -> Vec<FieldError> {
        let mut errors = metadata::validate(new, NameRule::PathSegment, namespaced);
        errors.extend(metadata::validate_update(new, old));
        if again {
            errors.extend(metadata::validate_update(new, old));
            errors.extend(self.finalizers(new));
        }
        errors
    }

    fn finalizers(&self, object: &Value) -> Vec<FieldError> {
        match self.finalizers {
            Finalizers::Strict => metadata::validate_finalizers(object),
            Finalizers::Syntax | Finalizers::Warned => Vec::new(),
        }
    }
}

/// Tells what is wrong with metadata as that version does: of owners without their place, and in other words, up to v1.36.
pub fn in_words_of(version: Version, errors: &mut [FieldError]) {
    if version < Version::V1_37 {
        errors.iter_mut().for_each(metadata::as_before_v1_37);
    }
}

#[cfg(test)]
mod tests;
