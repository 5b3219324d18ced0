//! The class that is marked as the default one of its kind.

use std::cmp::Reverse;

use kubewright_kinds::BuiltIn;
use kubewright_meta::object;
use serde_json::Value;

use super::Review;

/// Where an object names its class, and how the default class is marked.
pub(super) struct DefaultClass {
    /// The annotation that names the class of an object.
    pub(super) annotation: &'static str,
    /// The field of `spec` that does.
    pub(super) field: &'static str,
    /// The kind of the classes.
    pub(super) classes: &'static BuiltIn,
    /// The annotations of a class that make it the default.
    pub(super) marks: &'static [&'static str],
}

impl DefaultClass {
    /// Gives an object that names no class the default one.
    pub(super) fn set(&self, review: &Review<'_>, object: &mut Value) {
        let named = object["metadata"]["annotations"].get(self.annotation).is_some()
            || object["spec"].get(self.field).is_some_and(|class| !class.is_null());
        if named {
            return;
        }
        if let Some(class) = self.find(review) {
            object::member_mut(object, "spec").insert(self.field.to_owned(), object::name(&class).into());
        }
    }

    /// The newest; of those of one second the first by name.
    fn find(&self, review: &Review<'_>) -> Option<Value> {
        let marked =
            self.marks.iter().flat_map(|mark| review.objects.mentioning(self.classes, mark)).filter(
                |class| self.marks.iter().any(|mark| class["metadata"]["annotations"][*mark] == "true"),
            );
        marked.min_by_key(|class| {
            (
                Reverse(object::meta_text(class, "creationTimestamp").to_owned()),
                object::name(class).to_owned(),
            )
        })
    }
}
