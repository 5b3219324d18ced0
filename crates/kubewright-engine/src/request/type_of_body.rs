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

/// The group and version of options that do not say theirs.
const META: &str = "meta.k8s.io/v1";
/// What else that version has.
const IN_META: [&str; 4] = ["PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"];

/// The types of group "" and version `v1` that are no resources.
const IN_CORE: [&str; 1] = ["List"];

/// The types of no version in particular: they are known in each, and are of Go's package `v1` (`AddUnversionedTypes`).
const UNVERSIONED: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// What kube-apiserver knows and does not serve: versions of before, and bodies of subresources. Each line has a version and its kinds
/// (the `register.go` of `k8s.io/api` v0.36); their lists are known as well.
const UNSERVED: &str = include_str!("unserved_types.txt");

/// What is said of an object that has no version where one is asked for.
pub(super) const NO_VERSION: &str = "Object 'apiVersion' is missing in 'object has no apiVersion field'";

/// The built-in kinds of the newest version.
pub(super) static BUILT_IN: LazyLock<Kinds> = LazyLock::new(Kinds::built_in);

/// The type that a body of an object says to have.
struct Given<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// The type that a place is for.
pub(crate) struct Wanted<'a> {
    /// Its group.
    pub(crate) group: &'a str,
    /// Its version.
    pub(crate) version: &'a str,
    /// Its kind.
    pub(crate) kind: &'a str,
    /// The kinds that have a server of their own, if it is one of them.
    server: Option<Role>,
}

impl<'a> Wanted<'a> {
    /// A type that the server of most kinds has.
    pub(crate) fn of_most(group: &'a str, version: &'a str, kind: &'a str) -> Self {
        Self { group, version, kind, server: None }
    }

    /// The type of a kind.
    pub(crate) fn of(kind: &'a Kind) -> Self {
        let server = server_of(kind.behaviour.role);
        Self { group: &kind.group, version: &kind.version, kind: &kind.kind, server }
    }
}

/// A body that is of another type than its place is for.
pub(crate) enum Mismatch {
    /// Its `apiVersion` makes no sense.
    Unreadable(String),
    /// It is of a type that is not known, or that cannot be converted: its kind and version, and why.
    Other {
        /// Whether the type is known.
        is_known: bool,
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

    /// Whether the type is known, and is none that could be converted.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            Self::Other { is_known, .. } => *is_known,
            Self::Version(_) => true,
        }
    }

    /// The answer to a create or an update, whose body was this text: a 400.
    pub(crate) fn refuse(&self, wanted: &str, text: &[u8]) -> ApiError {
        match self {
            Self::Unreadable(why) => unrecognized(wanted, why, text),
            Self::Other { kind: given, version, why, .. } => ApiError::bad_request(format!(
                "{given} in version {version:?} cannot be handled as a {wanted}: {why}"
            )),
            Self::Version(why) => ApiError::bad_request(why.clone()),
        }
    }
}

/// Whether an object of a custom kind says to be something: it has to. (That this is another kind is found by its
/// validation: [`errors_of_custom`].)
pub(crate) fn check_custom(kind: &Kind, object: &Value, text: &[u8]) -> Result<(), ApiError> {
    let shown = || match text {
        [] => object.to_string(),
        text => String::from_utf8_lossy(text).into_owned(),
    };
    read_custom(object, shown).map_err(|why| unrecognized(&kind.kind, &why, text))?;
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    if api_version != kind.api_version() {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    Ok(())
}

/// Whether an object says to be something, in a version that can be one; `shown` is the object for the message.
fn read_custom(object: &Value, shown: impl FnOnce() -> String) -> Result<(), String> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    if api_version.split('/').count() > 2 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    match object["kind"].as_str() {
        None | Some("") => Err(missing_kind(&shown())),
        Some(_) => Ok(()),
    }
}

/// What is said of an object without a kind.
pub(super) fn missing_kind(shown: &str) -> String {
    format!("Object 'Kind' is missing in '{shown}'")
}

/// What is wrong with what a custom object says to be; of built-in kinds nothing. It is a rule like any other
/// (`apiextensions-apiserver/pkg/registry/customresource/validator.go`, `ValidateTypeMeta`).
pub(crate) fn errors_of_custom(kind: &Kind, object: &Value) -> Vec<FieldError> {
    if !says_other(kind, object) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (field, own) in [("kind", kind.kind.clone()), ("apiVersion", kind.api_version())] {
        let said = object[field].as_str().unwrap_or_default();
        if said != own {
            errors.push(FieldError::invalid(field, said, format!("must be {own}")));
        }
    }
    errors
}

/// Whether an object of a custom kind says to be of another kind or version.
pub(crate) fn says_other(kind: &Kind, object: &Value) -> bool {
    kind.custom.is_some() && (object["kind"] != *kind.kind || object["apiVersion"] != *kind.api_version())
}

/// The group and kind by which an object is refused: of a custom one those that it says to be of.
pub(crate) fn named_in_refusals(kind: &Kind, object: &Value) -> (String, String) {
    if !says_other(kind, object) {
        return (kind.own_group().to_owned(), kind.kind.clone());
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), text("kind").to_owned())
}

/// 422 for an object, as one of what it says to be.
pub(crate) fn invalid(kind: &Kind, object: &Value, name: &str, errors: &[FieldError]) -> ApiError {
    let (group, said) = named_in_refusals(kind, object);
    ApiError::invalid_of(&group, &said, name, errors)
}

/// Whether what a patch has made can be read as an object of a kind: its `kind` and `apiVersion` are texts that make sense, of a type that
/// the kind's server converts (`k8s.io/apimachinery/pkg/runtime/serializer/json`, `Interpret`, and what follows).
pub(crate) fn read(kind: &Kind, object: &Value) -> Result<(), String> {
    texts(object)?;
    if kind.custom.is_none() && has_no_version(object) {
        return check_internal(kind, object["kind"].as_str().unwrap_or_default());
    }
    if kind.custom.is_none() {
        return check(kind, object).map_err(|mismatch| mismatch.reason().to_owned());
    }
    read_custom(object, || object.to_string())?;
    match object.get("apiVersion") {
        Some(Value::Null) => {
            Err(".apiVersion accessor error: <nil> is of the type <nil>, expected string".to_owned())
        }
        _ => Ok(()),
    }
}

/// Compares the kind that an object without a version says to have with its own: it is sought among the internal types of the group.
fn check_internal(kind: &Kind, given: &str) -> Result<(), String> {
    if given.is_empty() || given == kind.kind {
        return Ok(());
    }
    let group = kind.group.as_str();
    let server = server_of(kind.behaviour.role);
    let is_of_group = |known: &str| known.split_once('/').map_or("", |(group, _)| group) == group;
    let item = given.strip_suffix("List").unwrap_or(given);
    let mut served =
        BUILT_IN.iter().filter(|one| one.group == group && server_of(one.behaviour.role) == server);
    let mut unserved = UNSERVED.lines().map(str::split_whitespace);
    let is_internal = served.any(|one| one.kind == given || one.list_kind == given)
        || server.is_none()
            && (group.is_empty() && IN_CORE.contains(&given)
                || unserved.any(|mut words| {
                    words.next().is_some_and(is_of_group) && words.any(|one| one == given || one == item)
                }));
    let package = internal_package(group, &kind.kind);
    let (of, name) = match given {
        "WatchEvent" => ("v1", "InternalEvent"),
        given if UNVERSIONED.contains(&given) => ("v1", given),
        given if is_internal => (internal_package(group, given), given),
        _ => {
            return Err(format!(
                "no kind {given:?} is registered for the internal version of group {group:?} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
    };
    Err(format!("converting ({of}.{name}) to ({package}.{}): unknown conversion", kind.kind))
}

/// Whether what an object says to be is said in texts.
pub(crate) fn texts(object: &Value) -> Result<(), String> {
    let mut texts = ["apiVersion", "kind"].into_iter().map(|field| (field, &object[field]));
    match texts.find(|(_, value)| !value.is_string() && !value.is_null()) {
        None => Ok(()),
        Some((field, wrong)) => Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{field} of type string",
            kubewright_codec::json::type_name(wrong)
        )),
    }
}

/// Whether an object does not say of which version it is.
pub(crate) fn has_no_version(object: &Value) -> bool {
    object["apiVersion"].as_str().is_none_or(str::is_empty)
}

/// Reads an object of a built-in kind as that of no version, as kube-apiserver does with what a patch leaves without one: its internal type
/// has the fields of its metadata as its own, and no others that JSON could name. Returns those that it does not have.
pub(crate) fn as_internal(kind: &Kind, object: &mut Value) -> Vec<String> {
    let metadata = kind.schema().root().field("metadata").map(|metadata| metadata.target());
    let mut unknown = Vec::new();
    let mut known = serde_json::Map::new();
    for (name, value) in std::mem::take(object::as_map(object)) {
        match &*name {
            "apiVersion" | "kind" => {}
            field if metadata.is_some_and(|metadata| metadata.properties.contains_key(field)) => {
                known.insert(name, value);
            }
            _ => unknown.push(name),
        }
    }
    *object = serde_json::json!({"metadata": known});
    unknown
}

/// Compares the type that an object of a built-in kind says to have with that kind; what it leaves out is right.
pub(crate) fn check(kind: &Kind, object: &Value) -> Result<(), Mismatch> {
    check_as(&Wanted::of(kind), object)
}

/// The same for any type.
pub(crate) fn check_as(wanted: &Wanted<'_>, object: &Value) -> Result<(), Mismatch> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let given_kind = object["kind"].as_str().unwrap_or_default();
    let given = Given::read(wanted, api_version, given_kind)?;
    if given.group == wanted.group && given.version == wanted.version && given.kind == wanted.kind {
        return Ok(());
    }
    let other = |is_known, why| {
        Err(Mismatch::Other { is_known, kind: given.kind.to_owned(), version: given.version.to_owned(), why })
    };
    if !given.is_known(wanted.server) {
        let why = format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            given.kind,
            given.group_version()
        );
        return other(false, why);
    }
    let package = internal_package(wanted.group, wanted.kind);
    if given.kind == wanted.kind && internal_package(given.group, given.kind) == package {
        return Err(Mismatch::Version(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            given.group_version(),
            group_version(wanted.group, wanted.version)
        )));
    }
    let version = if UNVERSIONED.contains(&given.kind) { "v1" } else { given.version };
    let why =
        format!("converting ({version}.{}) to ({package}.{}): unknown conversion", given.kind, wanted.kind);
    other(true, why)
}

/// The built-in kind that an object says to be, in its version, where what it leaves out is that of the place.
pub(super) fn said<'a>(wanted: &Wanted<'a>, object: &'a Value) -> Option<&'a Kind> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let given = Given::read(wanted, api_version, object["kind"].as_str().unwrap_or_default()).ok()?;
    let mut kinds = BUILT_IN.in_version(given.group, given.version);
    kinds.find(|kind| kind.kind == given.kind).map(|kind| &**kind)
}

/// Why options of a deletion are of another kind: they are of every group, and of none in particular.
pub(crate) fn of_options(object: &Value) -> Option<String> {
    let kind = object["kind"].as_str().filter(|kind| !matches!(*kind, "" | "DeleteOptions"))?;
    let version = match object["apiVersion"].as_str() {
        None | Some("") => META,
        Some(version) => version,
    };
    let is_known = UNVERSIONED.contains(&kind)
        || version == META && (IN_EVERY_GROUP.contains(&kind) || IN_META.contains(&kind));
    Some(match is_known {
        true => format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion"),
        false => {
            format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        }
    })
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The kinds that have a server of their own inside kube-apiserver, which knows no others; all the others have one.
fn server_of(role: Role) -> Option<Role> {
    matches!(role, Role::Definition | Role::ApiService).then_some(role)
}

impl<'a> Given<'a> {
    fn read(own: &Wanted<'a>, api_version: &'a str, kind: &'a str) -> Result<Self, Mismatch> {
        let kind = if kind.is_empty() { own.kind } else { kind };
        let (group, version) = match api_version.split('/').collect::<Vec<_>>()[..] {
            [""] => (own.group, own.version),
            [version] => ("", version),
            [group, version] => (group, version),
            _ => {
                let why = format!("unexpected GroupVersion string: {api_version}");
                return Err(Mismatch::Unreadable(why));
            }
        };
        Ok(Self { group, version, kind })
    }

    fn group_version(&self) -> String {
        group_version(self.group, self.version)
    }

    /// Whether the server of a kind knows the type.
    fn is_known(&self, server: Option<Role>) -> bool {
        let core = self.group.is_empty() && self.version == "v1";
        let in_group = |found: &std::sync::Arc<Kind>| {
            server_of(found.behaviour.role) == server
                && (found.kind == self.kind
                    || found.list_kind == self.kind
                    || IN_EVERY_GROUP.contains(&self.kind))
        };
        let plain = core && IN_CORE.contains(&self.kind) && (server.is_none() || self.kind != "List");
        UNVERSIONED.contains(&self.kind)
            || plain
            || server.is_none() && self.is_unserved()
            || core && IN_EVERY_GROUP.contains(&self.kind)
            || BUILT_IN.in_version(self.group, self.version).any(in_group)
    }

    fn is_unserved(&self) -> bool {
        let version = self.group_version();
        let mut lines = UNSERVED.lines().map(str::split_whitespace);
        let kinds = lines.find_map(|mut words| (words.next() == Some(&version)).then_some(words));
        let item = self.kind.strip_suffix("List").unwrap_or(self.kind);
        kinds.is_some_and(|mut kinds| {
            kinds.any(|kind| kind == self.kind || kind == item || IN_EVERY_GROUP.contains(&self.kind))
        })
    }
}

/// The Go package of the internal type of a kind: what its versions have in common.
fn internal_package<'a>(group: &'a str, kind: &str) -> &'a str {
    match (group, kind.strip_suffix("List").unwrap_or(kind)) {
        (_, "Scale") => "autoscaling",
        ("extensions", "Ingress" | "NetworkPolicy") => "networking",
        ("extensions", "Deployment" | "DaemonSet" | "ReplicaSet") => "apps",
        ("" | "events.k8s.io", _) => "core",
        ("rbac.authorization.k8s.io", _) => "rbac",
        (group, _) => group.split('.').next().unwrap_or_default(),
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
            .map_err(|mismatch| mismatch.refuse(&kind.kind, b"{}"))
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

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn what_a_patch_leaves_without_a_version_has_the_fields_of_its_metadata_alone() {
        let kind = BUILT_IN.get("", "v1", "configmaps").expect("a kind");
        let mut object =
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}, "labels": {"x": "y"}});
        assert!(has_no_version(&object) && read(kind, &object).is_ok());
        assert_eq!(as_internal(kind, &mut object), ["data", "metadata"]);
        assert_eq!(object, json!({"metadata": {"labels": {"x": "y"}}}));
        for (given, why) in [
            (
                "v1",
                "no kind \"v1\" is registered for the internal version of group \"\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
            (
                "Lease",
                "no kind \"Lease\" is registered for the internal version of group \"\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
            ("SecretList", "converting (core.SecretList) to (core.ConfigMap): unknown conversion"),
            ("PodExecOptions", "converting (core.PodExecOptions) to (core.ConfigMap): unknown conversion"),
            ("Status", "converting (v1.Status) to (core.ConfigMap): unknown conversion"),
            ("WatchEvent", "converting (v1.InternalEvent) to (core.ConfigMap): unknown conversion"),
        ] {
            assert_eq!(read(kind, &json!({"kind": given})), Err(why.to_owned()));
        }
        let wrong = read(kind, &json!({"apiVersion": {}, "kind": 5})).expect_err("no texts");
        assert_eq!(
            wrong,
            "couldn't get version/kind; json parse error: json: cannot unmarshal object into Go struct field .apiVersion of type string"
        );
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

    /// Asked of kube-apiserver v1.36.3.
    #[test]
    fn what_is_not_served_is_known_all_the_same() {
        let config_map = |api_version, given| refused("", "v1", "configmaps", api_version, given);
        for (api_version, given, version) in [
            ("apps/v1beta1", "Deployment", "v1beta1"),
            ("autoscaling/v1", "Scale", "v1"),
            ("v1", "PodExecOptions", "v1"),
            ("x/v9", "Status", "v1"),
        ] {
            let told = config_map(api_version, given);
            let why = format!("converting ({version}.{given}) to (core.ConfigMap): unknown conversion");
            assert!(told.ends_with(&why), "{told}");
        }
        assert!(config_map("policy/v1beta1", "PodSecurityPolicy").contains("no kind"), "removed");
        let scale = check_as(
            &Wanted::of_most("autoscaling", "v1", "Scale"),
            &json!({"apiVersion": "apps/v1beta2", "kind": "Scale"}),
        );
        assert_eq!(
            scale.expect_err("another version").reason(),
            "the API version in the data (apps/v1beta2) does not match the expected API version (autoscaling/v1)"
        );
    }

    #[test]
    fn options_of_a_deletion_of_another_kind_are_told_as_such() {
        let told = |api_version, kind| {
            of_options(&json!({"apiVersion": api_version, "kind": kind})).unwrap_or_default()
        };
        assert_eq!(told("v1", "DeleteOptions"), "");
        assert!(
            told("", "Other").starts_with("no kind \"Other\" is registered for version \"meta.k8s.io/v1\"")
        );
        assert_eq!(told("v1", "Status"), "converting (v1.Status) to (v1.DeleteOptions): unknown conversion");
        assert!(
            told("v1", "WatchEvent").starts_with("no kind")
                && told("", "WatchEvent").starts_with("converting")
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
