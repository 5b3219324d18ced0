//! Which type a body says to be, and what Kubernetes says where that is not the type that its place is for
//! (`k8s.io/apimachinery/pkg/runtime/serializer/{json,versioning}`, `k8s.io/apiserver/pkg/endpoints/handlers/create.go`).

use std::sync::LazyLock;

use kubewright_codec::body::unrecognized;
use kubewright_kinds::{Kind, Kinds, Role};
use kubewright_meta::{ApiError, FieldError, object};
use serde_json::Value;

/// The types that every API group has (`k8s.io/apimachinery/pkg/apis/meta/v1`, `AddToGroupVersion`).
const IN_EVERY_GROUP: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// The types of group "" and version `v1` that are no resources.
const IN_CORE: [&str; 7] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "SerializedReference", "Status"];

/// The built-in kinds of the newest version.
pub(super) static BUILT_IN: LazyLock<Kinds> = LazyLock::new(Kinds::built_in);

/// The type that a body of an object says to have.
struct Given<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// A body that is of another type than its place is for.
pub(crate) enum Mismatch {
    /// Its `apiVersion` makes no sense.
    Unreadable(String),
    /// It is of a type that is not known, or that cannot be converted: its kind and version, and why.
    Other {
        /// The kind that the body says to have.
        kind: String,
        /// The version that the body says to have.
        version: String,
        /// What Kubernetes says of it.
        why: String,
    },
    /// It is another version of the same type.
    Version(String),
}

impl Mismatch {
    /// What is wrong, as one reason.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Unreadable(why) | Self::Version(why) | Self::Other { why, .. } => why,
        }
    }

    /// The answer to a create or an update, whose body was this text: a 400.
    pub(crate) fn refuse(&self, kind: &Kind, text: &[u8]) -> ApiError {
        match self {
            Self::Unreadable(why) => unrecognized(&kind.kind, why, text),
            Self::Other { kind: given, version, why } => ApiError::bad_request(format!(
                "{given} in version {version:?} cannot be handled as a {}: {why}",
                kind.kind
            )),
            Self::Version(why) => ApiError::bad_request(why.clone()),
        }
    }
}

/// Whether an object of a custom kind says to be one: it has to say so. (That it is of another kind is found by its
/// validation: [`of_custom`].)
pub(crate) fn check_custom(kind: &Kind, object: &Value, text: &[u8]) -> Result<(), ApiError> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    if api_version.split('/').count() > 2 {
        let why = format!("unexpected GroupVersion string: {api_version}");
        return Err(unrecognized(&kind.kind, &why, text));
    }
    if object["kind"].as_str().is_none_or(str::is_empty) {
        let shown = match text {
            [] => object.to_string(),
            text => String::from_utf8_lossy(text).into_owned(),
        };
        return Err(unrecognized(&kind.kind, &format!("Object 'Kind' is missing in '{shown}'"), text));
    }
    if api_version != kind.api_version() {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    of_custom(kind, object)
}

/// What a custom object says to be is a rule like any other: a 422
/// (`apiextensions-apiserver/pkg/registry/customresource/validator.go`).
pub(crate) fn of_custom(kind: &Kind, object: &Value) -> Result<(), ApiError> {
    let (api_version, name) =
        (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
    let mut errors = Vec::new();
    if name != kind.kind {
        errors.push(FieldError::invalid("kind", name, format!("must be {}", kind.kind)));
    }
    if api_version != kind.api_version() {
        errors.push(FieldError::invalid(
            "apiVersion",
            api_version,
            format!("must be {}", kind.api_version()),
        ));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Err(ApiError::invalid_of(group, name, object::name(object), &errors))
}

/// Compares the type that an object of a built-in kind says to have with that kind; what it leaves out is right.
pub(crate) fn check(kind: &Kind, object: &Value) -> Result<(), Mismatch> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let given_kind = object["kind"].as_str().unwrap_or_default();
    let given = Given::read(kind, api_version, given_kind)?;
    if given.group == kind.group && given.version == kind.version && given.kind == kind.kind {
        return Ok(());
    }
    let own_scheme = kind.behaviour.role == Role::Definition;
    let named = || match given.group {
        "" => given.version.to_owned(),
        group => format!("{group}/{}", given.version),
    };
    let other =
        |why| Err(Mismatch::Other { kind: given.kind.to_owned(), version: given.version.to_owned(), why });
    if !given.is_known(own_scheme) {
        return other(format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            given.kind,
            named()
        ));
    }
    if given.kind == kind.kind && internal_package(given.group) == internal_package(&kind.group) {
        return Err(Mismatch::Version(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            named(),
            kind.api_version()
        )));
    }
    other(format!(
        "converting ({}.{}) to ({}.{}): unknown conversion",
        given.version,
        given.kind,
        internal_package(&kind.group),
        kind.kind
    ))
}

impl<'a> Given<'a> {
    fn read(own: &'a Kind, api_version: &'a str, kind: &'a str) -> Result<Self, Mismatch> {
        let kind = if kind.is_empty() { &own.kind } else { kind };
        let (group, version) = match api_version.split('/').collect::<Vec<_>>()[..] {
            [""] => (own.group.as_str(), own.version.as_str()),
            [version] => ("", version),
            [group, version] => (group, version),
            _ => {
                let why = format!("unexpected GroupVersion string: {api_version}");
                return Err(Mismatch::Unreadable(why));
            }
        };
        Ok(Self { group, version, kind })
    }

    /// Whether Kubernetes knows the type. CustomResourceDefinitions have a server of their own, which knows no other.
    fn is_known(&self, of_definitions: bool) -> bool {
        let core = self.group.is_empty() && self.version == "v1";
        let in_group = |found: &std::sync::Arc<Kind>| {
            (found.behaviour.role == Role::Definition) == of_definitions
                && (found.kind == self.kind
                    || found.list_kind == self.kind
                    || IN_EVERY_GROUP.contains(&self.kind))
        };
        let plain = core && IN_CORE.contains(&self.kind) && (!of_definitions || self.kind != "List");
        plain
            || core && IN_EVERY_GROUP.contains(&self.kind)
            || BUILT_IN.in_version(self.group, self.version).any(in_group)
    }
}

/// The Go package of the internal types of a group: what its versions have in common.
fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        "rbac.authorization.k8s.io" => "rbac",
        group => group.split('.').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(group: &str, version: &str, plural: &str, api_version: &str, given: &str) -> String {
        let kind = BUILT_IN.get(group, version, plural).expect("a kind");
        let object = json!({"apiVersion": api_version, "kind": given});
        check(kind, &object)
            .map_err(|mismatch| mismatch.refuse(kind, b"{}"))
            .expect_err("another type")
            .message
    }

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn another_type_is_told_in_the_words_of_the_scheme() {
        let config_map = |api_version, given| refused("", "v1", "configmaps", api_version, given);
        assert_eq!(
            config_map("v1", "Secret"),
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"
        );
        assert_eq!(
            config_map("v2", ""),
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert!(config_map("", "Foo").contains("no kind \"Foo\" is registered for version \"v1\""));
        assert!(config_map("v1", "SecretList").contains("converting (v1.SecretList) to (core.ConfigMap)"));
        assert!(config_map("apps/v1", "DeleteOptions").contains("converting (v1.DeleteOptions)"));
        assert_eq!(
            config_map("a/b/c", ""),
            "the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({})"
        );
        let definitions = refused("apiextensions.k8s.io", "v1", "customresourcedefinitions", "v1", "Secret");
        assert!(definitions.contains("no kind \"Secret\" is registered for version \"v1\""), "{definitions}");
        let role = refused("rbac.authorization.k8s.io", "v1", "clusterroles", "v1", "Secret");
        assert!(role.ends_with("converting (v1.Secret) to (rbac.ClusterRole): unknown conversion"), "{role}");
    }

    #[test]
    fn another_version_of_the_same_type_is_told_as_such() {
        assert_eq!(
            refused(
                "autoscaling",
                "v1",
                "horizontalpodautoscalers",
                "autoscaling/v2",
                "HorizontalPodAutoscaler"
            ),
            "the API version in the data (autoscaling/v2) does not match the expected API version (autoscaling/v1)"
        );
    }

    #[test]
    fn what_is_left_out_is_right() {
        let kind = BUILT_IN.get("apps", "v1", "deployments").expect("a kind");
        for object in [json!({}), json!({"kind": "Deployment"}), json!({"apiVersion": "apps/v1"})] {
            assert!(check(kind, &object).is_ok(), "{object}");
        }
    }
}
