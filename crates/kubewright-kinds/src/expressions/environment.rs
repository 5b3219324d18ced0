//! What expressions may name (`k8s.io/apiserver/pkg/admission/plugin/cel/compile.go`).

use std::sync::LazyLock;

use kubewright_cel::{DeclField, DeclType, Environment, Type};

/// Which of the names that are not always there an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// `params`.
    pub params: bool,
    /// `authorizer` and `authorizer.requestResource`.
    pub authorizer: bool,
    /// `Object`, `JSONPatch` and `jsonpatch.escapeKey`.
    pub(crate) patches: bool,
}

impl Names {
    /// Those of a match condition or validation.
    pub fn of_condition(params: bool) -> Self {
        Self { params, authorizer: true, patches: false }
    }

    /// Those of a message: who asks for it may not ask the authorizer.
    pub fn of_message(params: bool) -> Self {
        Self { params, authorizer: false, patches: false }
    }

    /// Those of a mutation.
    pub fn of_mutation(params: bool) -> Self {
        Self { params, authorizer: true, patches: true }
    }
}

/// The environment in which objects are of any type.
pub(super) fn environment(names: Names) -> Environment {
    typed(names, DeclType::dynamic(), DeclType::dynamic())
}

/// The environment in which `object` and `oldObject`, and `params`, are of these types.
pub(super) fn typed(names: Names, object: DeclType, params: DeclType) -> Environment {
    static REQUEST: LazyLock<DeclType> = LazyLock::new(request_type);
    static NAMESPACE: LazyLock<DeclType> = LazyLock::new(namespace_type);
    let mut environment = Environment::new()
        .variable("object", object.clone())
        .variable("oldObject", object)
        .variable("request", REQUEST.clone())
        .variable("namespaceObject", NAMESPACE.clone());
    if names.params {
        environment = environment.variable("params", params);
    }
    if names.authorizer {
        environment = environment
            .variable("authorizer", DeclType::of(Type::authorizer()))
            .variable("authorizer.requestResource", DeclType::of(Type::resource_check()));
    }
    if names.patches { environment.patch_types() } else { environment }
}

fn string() -> DeclType {
    DeclType::of(Type::String)
}

fn strings() -> DeclType {
    DeclType::of(Type::list(Type::String))
}

fn object(name: &str, required: bool, fields: Vec<(&str, DeclType)>) -> DeclType {
    let fields = fields.into_iter().map(|(field, declared)| DeclField::new(field, declared, required));
    DeclType::object(fields).named(name)
}

/// `kubernetes.AdmissionRequest`: what an AdmissionReview tells, but for the objects.
fn request_type() -> DeclType {
    let gvk = object(
        "kubernetes.GroupVersionKind",
        true,
        vec![("group", string()), ("version", string()), ("kind", string())],
    );
    let gvr = object(
        "kubernetes.GroupVersionResource",
        true,
        vec![("group", string()), ("version", string()), ("resource", string())],
    );
    let user = object(
        "kubernetes.UserInfo",
        false,
        vec![
            ("username", string()),
            ("uid", string()),
            ("groups", strings()),
            ("extra", DeclType::of(Type::map(Type::String, Type::list(Type::String)))),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        true,
        vec![
            ("kind", gvk.clone()),
            ("resource", gvr.clone()),
            ("subResource", string()),
            ("requestKind", gvk),
            ("requestResource", gvr),
            ("requestSubResource", string()),
            ("name", string()),
            ("namespace", string()),
            ("operation", string()),
            ("userInfo", user),
            ("dryRun", DeclType::boolean()),
            ("options", DeclType::dynamic()),
        ],
    )
}

/// `kubernetes.Namespace`: what policies see of the namespace.
fn namespace_type() -> DeclType {
    let time = || DeclType::of(Type::Timestamp);
    let texts = || DeclType::of(Type::map(Type::String, Type::String));
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        true,
        vec![
            ("name", string()),
            ("generateName", string()),
            ("namespace", string()),
            ("labels", texts()),
            ("annotations", texts()),
            ("UID", string()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", DeclType::integer()),
            ("deletionTimestamp", time()),
            ("generation", DeclType::integer()),
            ("resourceVersion", string()),
            ("finalizers", strings()),
        ],
    );
    let condition = object(
        "kubernetes.NamespaceCondition",
        true,
        vec![
            ("status", string()),
            ("type", string()),
            ("lastTransitionTime", time()),
            ("message", string()),
            ("reason", string()),
        ],
    );
    let spec = object("kubernetes.NamespaceSpec", true, vec![("finalizers", strings())]);
    let conditions = DeclType::list(condition, kubewright_cel::ListKind::Atomic, None);
    let status =
        object("kubernetes.NamespaceStatus", true, vec![("conditions", conditions), ("phase", string())]);
    object("kubernetes.Namespace", true, vec![("metadata", metadata), ("spec", spec), ("status", status)])
}
