//! How long the work on a request may take: a pure function of what is asked for, and of how much there is of it.

use kubewright_codec::negotiate::{Encoding, MediaTypeOptions, Shape};
use kubewright_kinds::{Kind, Role};

use super::places::Length;

/// From so many bytes on, a body, an object or a list is large.
const LARGE: usize = 32 * 1024;
/// From so many objects on, a collection is.
const MANY: usize = 500;
/// From so many bytes on, a query may ask a lot of each object.
const LONG_QUERY: usize = 2 * 1024;

/// What there is, of what a request is about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// Bytes of the request's body.
    pub body: usize,
    /// Bytes of the request's query.
    pub query: usize,
    /// Bytes of the stored object, where one is named.
    pub object: usize,
    /// Objects in the collection.
    pub objects: usize,
    /// Whether policies are asked about writes.
    pub policies: bool,
}

/// How long the work on a request for objects may take. What is made of a list while its client reads it is not counted.
pub(super) fn length(kind: &Kind, verb: &str, wanted: MediaTypeOptions, extent: Extent) -> Length {
    // Answers of other forms are made at once of the whole.
    let in_pieces = wanted.encoding == Encoding::Json;
    match verb {
        "get" if extent.object < LARGE => Length::Moment,
        // Its bytes are there; those of a custom object may have to be made anew.
        "get" if in_pieces && wanted.shape == Shape::Object && kind.custom.is_none() => Length::Moment,
        "list" | "watch" if extent.query >= LONG_QUERY => Length::Long,
        "list" if !in_pieces && extent.objects > 1 => Length::Long,
        "list" | "watch" if extent.objects < MANY => Length::Moment,
        "list" | "watch" => Length::Short,
        "create" | "update" | "patch" | "delete" if !asks_much(kind, extent) => Length::Moment,
        "get" | "create" | "update" | "patch" | "delete" | "deletecollection" => Length::Long,
        _ => Length::Moment,
    }
}

/// Whether a write may be much work: for its size, or for expressions and patterns of users.
fn asks_much(kind: &Kind, extent: Extent) -> bool {
    extent.body >= LARGE
        || extent.object >= LARGE
        || extent.policies
        || matches!(kind.behaviour.role, Role::Definition | Role::ValidatingPolicy)
        || kind.custom.is_some() && kind.schema().asks_much()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewright_codec::negotiate::MetaVersion;
    use kubewright_kinds::Kinds;

    fn of(plural: &str, verb: &str, wanted: MediaTypeOptions, extent: Extent) -> Length {
        let kinds = Kinds::built_in();
        let group = if plural == "customresourcedefinitions" { "apiextensions.k8s.io" } else { "" };
        length(kinds.get(group, "v1", plural).expect("a kind"), verb, wanted, extent)
    }

    const JSON: MediaTypeOptions = MediaTypeOptions { encoding: Encoding::Json, shape: Shape::Object };
    const YAML: MediaTypeOptions = MediaTypeOptions { encoding: Encoding::Yaml, shape: Shape::Object };
    const TABLE: MediaTypeOptions =
        MediaTypeOptions { encoding: Encoding::Json, shape: Shape::Table(MetaVersion::V1) };

    #[test]
    fn what_is_small_is_done_on_the_spot() {
        let extent = Extent { body: 2000, query: 100, object: 2000, objects: 50, policies: false };
        for verb in ["get", "list", "watch", "create", "update", "patch", "delete", ""] {
            assert_eq!(of("configmaps", verb, JSON, extent), Length::Moment, "{verb}");
        }
    }

    #[test]
    fn a_write_is_long_for_its_body_for_its_object_or_for_the_expressions_of_users() {
        for extent in [
            Extent { body: LARGE, ..Extent::default() },
            Extent { object: LARGE, ..Extent::default() },
            Extent { policies: true, ..Extent::default() },
        ] {
            assert_eq!(of("configmaps", "patch", JSON, extent), Length::Long, "{extent:?}");
        }
        assert_eq!(of("customresourcedefinitions", "create", JSON, Extent::default()), Length::Long);
        assert_eq!(of("configmaps", "deletecollection", JSON, Extent::default()), Length::Long);
    }

    #[test]
    fn a_read_is_long_for_what_is_made_of_all_at_once_and_for_what_is_asked_of_each() {
        let many = Extent { objects: MANY, ..Extent::default() };
        assert_eq!(of("pods", "list", JSON, many), Length::Short);
        assert_eq!(of("pods", "list", TABLE, many), Length::Short);
        assert_eq!(of("pods", "list", YAML, many), Length::Long);
        assert_eq!(of("pods", "watch", YAML, many), Length::Short);
        assert_eq!(of("pods", "list", JSON, Extent { query: LONG_QUERY, ..many }), Length::Long);
        let large = Extent { object: LARGE, ..Extent::default() };
        assert_eq!(of("pods", "get", JSON, large), Length::Moment);
        assert_eq!(of("pods", "get", YAML, large), Length::Long);
        assert_eq!(of("pods", "get", TABLE, large), Length::Long);
    }
}
