//! Schemas: what the objects of a kind look like, for built-in kinds (from tables of Kubernetes' types) and for custom ones (the
//! structural schema of a CustomResourceDefinition) alike; and what is made of objects by them: patches ([`patch`]), and who
//! manages which fields ([`fields`]). No kind is known here: who has some tells a schema, or the versions that
//! [`fields::Versions`] asks for.
//!
//! [`Schema`] is the door. Behind it one tree of [`Node`]s serves [decoding](Schema::decode), [defaulting](Schema::default),
//! [validation](Schema::value_errors), patches and server-side apply. Descriptions are not part of the tree: OpenAPI documents
//! are made on demand from where the schema came from.

mod as_sent;
mod built_in;
mod decode;
mod default;
mod definitions;
mod doubled;
mod empties;
mod facts;
pub mod fields;
pub mod format;
pub mod names;
pub mod node;
mod openapi;
pub mod patch;
pub mod pattern;
pub mod prune;
pub mod rules;
mod scalar;
pub mod structural;
pub mod validate;
mod zeros;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use kubewright_meta::FieldError;
use kubewright_meta::field::Problem;
use kubewright_spec::Version;
use openapi::Grammar;
use rules::{Budget, Finding, Rules};
use serde_json::Value;
use validate::Former;

pub(crate) use empties::Empties;
pub use empties::Encoding;
pub(crate) use node::Coding;
pub use node::{Additional, Bounds, ListType, Logic, MapType, Merge, Node, Reason, Rule, Type};
pub use openapi::type_meta;
pub use pattern::Pattern;
pub use scalar::seconds as time;

/// A structural schema.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
    origin: Origin,
    /// Compiled at first use.
    rules: Arc<OnceLock<Option<Rules>>>,
    asks_much: Arc<OnceLock<bool>>,
    /// Whether lists that are one value may have quantities or maps in them, as far as somebody has asked.
    has_unsettled: Arc<OnceLock<bool>>,
}

/// A write that a schema is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// What the object will be.
    pub object: &'a Value,
    /// What an update replaces: what is unchanged may stay wrong (validation ratcheting).
    pub old: Option<&'a Value>,
    /// What of the object is written.
    pub part: Extent,
    /// The version of the server.
    pub version: Version,
}

/// What of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The object.
    Whole,
    /// Its status alone.
    Status,
}

/// Who has made what is decoded ([`Schema::decode_made`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A client, who sent it. Quantities and maps without entries that stand in lists that are one value stay as they were sent, until
    /// [`Schema::settle`].
    Client,
    /// A strategic merge patch or an applied configuration. That, and whole numbers that are too large are cut. A custom object is not
    /// pruned, and its metadata goes on saying what has no contents: nobody decodes it before it is stored ([`Schema::prune`]).
    Merge,
    /// Admission, which has changed it. A custom object keeps fields that the schema does not have until it is stored ([`Schema::prune`]).
    Admission,
}

/// Where a schema came from.
#[derive(Clone, Debug)]
enum Origin {
    /// A type of Kubernetes.
    BuiltIn { version: Version, name: Cow<'static, str>, empties: Empties },
    /// The text of an `openAPIV3Schema`.
    Custom { source: Arc<str>, fingerprint: u64 },
}

impl Schema {
    /// The schema of a built-in type, by the name that Kubernetes' OpenAPI documents have for it
    /// (`io.k8s.api.apps.v1.Deployment`). Of a name that no type has it is that of any value.
    #[must_use]
    pub fn built_in(name: impl Into<Cow<'static, str>>) -> Self {
        Self::of_version(Version::DEFAULT, name)
    }

    /// As [`built_in`](Self::built_in), as that version of Kubernetes has the type.
    #[must_use]
    pub fn of_version(version: Version, name: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        Self {
            root: built_in::named(version, &name),
            origin: Origin::BuiltIn { version, name, empties: Empties::Lists },
            rules: Arc::default(),
            asks_much: Arc::default(),
            has_unsettled: Arc::default(),
        }
    }

    /// The same, whose objects keep maps without entries until they are encoded: of kinds whose objects are compared by
    /// `reflect.DeepEqual`.
    #[must_use]
    pub fn keeping_empty_maps(mut self) -> Self {
        if let Origin::BuiltIn { empties, .. } = &mut self.origin {
            *empties = Empties::All;
        }
        self
    }

    /// The schema of a custom kind: an `openAPIV3Schema` that was validated (room `definition` of `kubewright-kinds`).
    #[must_use]
    pub fn custom(schema: &Value) -> Self {
        let source: Arc<str> = schema.to_string().into();
        let mut hasher = DefaultHasher::new();
        source.hash(&mut hasher);
        Self {
            root: Arc::new(structural::node(schema)),
            origin: Origin::Custom { source, fingerprint: hasher.finish() },
            rules: Arc::default(),
            asks_much: Arc::default(),
            has_unsettled: Arc::default(),
        }
    }

    /// Whether to hold an object against it may be much work, however small the object is: for rules
    /// (`x-kubernetes-validations`), or for large patterns.
    #[must_use]
    pub fn asks_much(&self) -> bool {
        /// What many patterns may take together before that is much.
        const LARGE: usize = 1 << 20;
        let sizes = Cell::new(0_usize);
        let large = |node: &Node| {
            let pattern = node.bounds.as_ref().and_then(|bounds| bounds.pattern.as_ref());
            sizes.set(sizes.get().saturating_add(pattern.map_or(0, Pattern::size)));
            sizes.get() > LARGE || pattern.is_some_and(Pattern::is_large)
        };
        *self.asks_much.get_or_init(|| self.root.any(&|node| !node.rules.is_empty() || large(node)))
    }

    /// The schema of a whole object.
    #[must_use]
    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// Checks JSON types and removes unknown fields. Returns the paths of the removed fields, such as
    /// `spec.containers[0].foo`.
    ///
    /// What comes out of a built-in kind is what Go would work on: nulls and empty maps are gone, empty lists stay until
    /// [`Schema::leave_out`]; quantities, times and bytes are in canonical form. Doing it twice changes nothing more.
    ///
    /// # Errors
    /// Built-in kinds: the first value of a wrong type, in the words of Go's decoder (a 400). Custom kinds fail here
    /// only on their metadata: all other types are part of [`Schema::value_errors`].
    pub fn decode(&self, object: &mut Value) -> Result<Vec<String>, String> {
        match self.origin {
            Origin::BuiltIn { empties, .. } => {
                decode::decode(&self.root, object, "", decode::Reading { empties, ..decode::Reading::PLAIN })
            }
            Origin::Custom { .. } => prune::object(&self.root, object),
        }
    }

    /// As [`Schema::decode`], of what somebody has made who leaves more as it was: [`Maker`] says what.
    ///
    /// # Errors
    /// As there; of merges in the words of what converts.
    pub fn decode_made(&self, object: &mut Value, by: Maker) -> Result<Vec<String>, String> {
        match (&self.origin, by) {
            (Origin::BuiltIn { empties, .. }, _) => {
                let reading = decode::Reading {
                    empties: *empties,
                    converts: by == Maker::Merge,
                    as_sent: by != Maker::Admission,
                };
                decode::decode(&self.root, object, "", reading)
            }
            (Origin::Custom { .. }, Maker::Client) => prune::object(&self.root, object),
            (Origin::Custom { .. }, Maker::Admission) => prune::metadata_of(&self.root, object),
            (Origin::Custom { .. }, Maker::Merge) => {
                prune::applied(&self.root, object).map_err(|why| fields::printed::converted(&why))?;
                Ok(Vec::new())
            }
        }
    }

    /// Makes what a configuration or admission has made of a custom object what is read of it once it is stored. Returns whether that is
    /// less. Built-in kinds: nothing.
    pub fn prune(&self, object: &mut Value) -> bool {
        match self.origin {
            Origin::BuiltIn { .. } => false,
            Origin::Custom { .. } => prune::as_read(&self.root, object),
        }
    }

    /// Puts what stood in a text before at a place (a JSON pointer) under what stands there in the end, as Go's decoder would have read
    /// both. Custom kinds: nothing, as the last one counts. Before it is decoded.
    pub fn put_under(&self, object: &mut Value, pointer: &str, earlier: Value) {
        if matches!(self.origin, Origin::BuiltIn { .. }) {
            doubled::put_under(&self.root, object, pointer, earlier);
        }
    }

    /// Writes what [`Schema::decode_made`] has left as it was sent in canonical form.
    pub fn settle(&self, object: &mut Value) {
        let Origin::BuiltIn { empties, .. } = self.origin else { return };
        if *self.has_unsettled.get_or_init(|| as_sent::may_be_in(&self.root)) {
            as_sent::settle(&self.root, object, false, empties == Empties::All);
        }
    }

    /// Leaves out the lists and maps without entries that are not written. Returns whether bytes without contents were left out, which
    /// protobuf has. Custom kinds: nothing.
    pub fn leave_out(&self, object: &mut Value, encoding: Encoding) -> bool {
        matches!(self.origin, Origin::BuiltIn { .. }) && encoding.leave_out(&self.root, object)
    }

    /// An object as JSON writes it: what webhooks and policies see.
    #[must_use]
    pub fn as_json<'v>(&self, object: &'v Value) -> Cow<'v, Value> {
        self.written(object, Encoding::Json)
    }

    /// An object without what is left out of it: [`Schema::leave_out`].
    #[must_use]
    pub fn written<'v>(&self, object: &'v Value, encoding: Encoding) -> Cow<'v, Value> {
        match self.origin {
            Origin::BuiltIn { .. } => encoding.written(&self.root, object),
            Origin::Custom { .. } => Cow::Borrowed(object),
        }
    }

    /// Sets the defaults of the schema in objects that are there. Custom kinds: nulls that the schema does not allow are
    /// dropped. Doing it twice changes nothing more.
    pub fn default(&self, object: &mut Value) {
        if matches!(self.origin, Origin::Custom { .. }) {
            default::drop_nulls(&self.root, object);
        }
        default::set(&self.root, object);
    }

    /// Sets the defaults of the schema, and leaves nulls.
    pub fn default_with_nulls(&self, object: &mut Value) {
        default::set(&self.root, object);
    }

    /// Whether [`Schema::default`] leaves an object as it is. Of an odd one it is not said, though it does: nulls in lists.
    pub fn is_defaulted(&self, object: &Value) -> bool {
        default::is_done(&self.root, object)
    }

    /// Makes an object that was written under another schema one of this schema: what is unknown goes, and so do nulls that
    /// the schema does not allow.
    pub fn conform(&self, object: &mut Value) {
        // Metadata that does not decode is left as it is: it was checked when it was written.
        let _ = prune::object(&self.root, object);
        default::drop_nulls(&self.root, object);
    }

    /// Whether both were made from the same text.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        matches!(
            (&self.origin, &other.origin),
            (Origin::Custom { source: one, .. }, Origin::Custom { source: other, .. }) if one == other
        )
    }

    /// Whether it was made from this `openAPIV3Schema`.
    #[must_use]
    pub fn is_of(&self, schema: &Value) -> bool {
        matches!(&self.origin, Origin::Custom { source, .. } if **source == *schema.to_string())
    }

    /// A number that changes with the text it was made from, at no cost. Built-in types change with the program only.
    #[must_use]
    pub fn fingerprint(&self) -> Option<u64> {
        match self.origin {
            Origin::BuiltIn { .. } => None,
            Origin::Custom { fingerprint, .. } => Some(fingerprint),
        }
    }

    /// What values of a custom object break its schema. Built-in kinds: nothing; their rules say it
    /// (room `rules` of `kubewright-kinds`).
    #[must_use]
    pub fn value_errors(&self, candidate: Candidate<'_>) -> Vec<FieldError> {
        match (&self.origin, candidate.part) {
            (Origin::BuiltIn { .. }, _) => Vec::new(),
            (Origin::Custom { .. }, Extent::Whole) => {
                validate::values(candidate.version, &self.root, candidate.object, candidate.old)
            }
            (Origin::Custom { .. }, Extent::Status) => {
                validate::status(candidate.version, &self.root, candidate.object, candidate.old)
            }
        }
    }

    /// What is wrong with a custom object beyond single values: embedded resources that do not say what they are, and
    /// elements that stand in their list twice.
    #[must_use]
    pub fn structure_errors(&self, candidate: Candidate<'_>) -> Vec<FieldError> {
        if matches!(self.origin, Origin::BuiltIn { .. }) {
            return Vec::new();
        }
        let mut errors = match candidate.part {
            Extent::Whole => validate::embedded(&self.root, candidate.object),
            Extent::Status => Vec::new(),
        };
        errors.extend(validate::duplicates(&self.root, candidate.object, candidate.old));
        errors
    }

    /// What rules (`x-kubernetes-validations`) say about a custom object. They are not asked where a value is `wrong` in a way
    /// that they could not bear; that is then told, too.
    ///
    /// Returns the errors, and the warnings: what does not hold of values that are as they were.
    #[must_use]
    pub fn rule_errors(
        &self,
        candidate: Candidate<'_>,
        wrong: &[FieldError],
    ) -> (Vec<FieldError>, Vec<String>) {
        if matches!(self.origin, Origin::BuiltIn { .. }) {
            return Default::default();
        }
        let Some(rules) = self.rules.get_or_init(|| Rules::of(&self.root, true)) else {
            return Default::default();
        };
        if wrong.iter().any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            return (vec![FieldError::invalid("<nil>", Value::Null, detail)], Vec::new());
        }
        let former = candidate.old.map(|old| Former::of(&self.root, old));
        let mut budget = Budget::default();
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        for finding in rules.evaluate("", candidate.object, candidate.old, former, &mut budget) {
            match finding {
                Finding::Error(error) => errors.push(error),
                Finding::Warning(error) => warnings.push(error.to_string()),
            }
        }
        (errors, warnings)
    }

    /// As an OpenAPI v3 schema. Built-in kinds: a reference (`{"$ref": "#/components/schemas/io.k8s.api.apps.v1.Deployment"}`),
    /// and its type and all that it refers to are put into `components` by their names (those that are there are left
    /// alone). Custom kinds: the schema itself, with apiVersion, kind and metadata, of which only the latter is a reference.
    ///
    /// The metadata of custom kinds is that of `version`.
    #[must_use]
    pub fn openapi(&self, version: Version, components: &mut BTreeMap<String, Value>) -> Value {
        match &self.origin {
            Origin::BuiltIn { version, name, .. } => openapi::built_in(*version, name, components),
            Origin::Custom { source, .. } => openapi::custom(version, source, components),
        }
    }

    /// A custom kind in OpenAPI v2; `None` for a built-in one.
    #[must_use]
    pub fn swagger(&self, version: Version) -> Option<Value> {
        match &self.origin {
            Origin::BuiltIn { .. } => None,
            Origin::Custom { source, .. } => Some(openapi::published(version, source, Grammar::V2)),
        }
    }
}

/// Whether rules cannot be asked of an object with this mistake
/// (`apiextensions-apiserver/pkg/registry/customresource/strategy.go`, `hasBlockingErr`).
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.problem,
        Problem::NotSupported(_)
            | Problem::Required
            | Problem::TooLong
            | Problem::TooMany(_)
            | Problem::TypeInvalid(_)
    )
}

#[cfg(test)]
mod tests;
