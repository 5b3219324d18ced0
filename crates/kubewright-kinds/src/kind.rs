//! What a kind is: a value. Built-in kinds and custom resources differ in their values, not in the code they go through.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use kubewright_meta::TypeNames;
use kubewright_schema::{Encoding, Schema};
use kubewright_spec::{Version, is_served};
use kubewright_store::{Name, Revision};
use serde_json::{Map, Value, json};

use super::behaviour::{Behaviour, Counted, Role};
use super::built_in::{BuiltIn, StoredAs};
use super::ownership::Ownership;
use super::plugins::PluginSet;
use super::rules::Rules;
use crate::definition::Versions;
use crate::selector::Selectable;
use kubewright_table::Columns;

/// A resource that the server serves in one version.
pub struct Kind {
    /// API group; empty for core.
    pub group: String,
    /// API version within the group.
    pub version: String,
    /// CamelCase name, as in `kind:`.
    pub kind: String,
    /// The `kind:` of a list of it.
    pub list_kind: String,
    /// Lower-case plural, as in URLs.
    pub plural: String,
    /// Lower-case singular.
    pub singular: String,
    /// Abbreviations for kubectl.
    pub short_names: Vec<String>,
    /// Groups of kinds that kubectl lists together.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// What can be done with it.
    pub verbs: Verbs,
    /// What is served below an object.
    pub subresources: Vec<Subresource>,
    /// The collection of the store that holds its objects. Versions of one resource share it.
    pub collection: Name,
    /// The columns of its table.
    pub columns: Columns,
    /// Its own functions.
    pub rules: Rules,
    /// How the engine treats its objects.
    pub behaviour: Behaviour,
    /// What field ownership has to know of it.
    pub ownership: Ownership,
    /// How its objects count for quotas.
    pub counted: Counted,
    /// The admission plugins that look at its objects.
    pub plugins: PluginSet,
    /// What only custom resources have.
    pub custom: Option<Custom>,
    /// What only built-in kinds have.
    built_in: Option<&'static BuiltIn>,
    /// The version of Kubernetes whose types it is made of: built-in kinds only.
    kubernetes: Version,
    /// Made at first use; that of a custom kind with it.
    schema: OnceLock<Arc<Schema>>,
    blank: OnceLock<Value>,
    selectable: OnceLock<Arc<Selectable>>,
}

/// What a [`Kind`] that came from a CustomResourceDefinition has beyond a built-in one.
#[derive(Clone, Debug, Default)]
pub struct Custom {
    /// The name of its CustomResourceDefinition.
    pub definition: String,
    /// All versions of the definition.
    pub versions: Arc<Versions>,
    /// The kinds of versions that the definition has and does not serve. Of these themselves: none.
    pub unserved: Arc<[Kind]>,
    /// The warning that goes with every answer, when the version is deprecated.
    pub deprecation: Option<String>,
    /// JSON paths of the fields that field selectors may name (without the leading dot, such as `spec.color`).
    pub selectable_fields: Vec<String>,
    /// Whether the definition is being deleted, so that no object comes any more.
    pub terminating: bool,
    /// The revision at which it was first served: a watch cannot begin before.
    pub served_since: Revision,
}

/// Namespaced or cluster-wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in namespaces.
    Namespaced,
    /// Objects belong to the cluster.
    Cluster,
}

/// The verbs that discovery tells of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbs {
    /// All eight.
    All,
    /// All but `deletecollection`.
    WithoutDeleteCollection,
    /// `create`: nothing is stored, the answer is computed.
    CreateOnly,
    /// `get` and `list`: nothing is stored, the answer is computed.
    ReadOnly,
}

impl Verbs {
    /// The verbs in discovery's order (alphabetical).
    #[must_use]
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::All => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            Self::WithoutDeleteCollection => &["create", "delete", "get", "list", "patch", "update", "watch"],
            Self::CreateOnly => &["create"],
            Self::ReadOnly => &["get", "list"],
        }
    }

    /// Whether objects are stored.
    #[must_use]
    pub fn are_of_stored(self) -> bool {
        !matches!(self, Self::CreateOnly | Self::ReadOnly)
    }
}

/// What is served below an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// `status`.
    Status,
    /// `scale` of a built-in kind: `spec.replicas`, `status.replicas` and `spec.selector`.
    Scale,
    /// `scale` of a custom resource.
    CustomScale(ScalePaths),
    /// `binding` of a pod.
    Binding,
    /// `eviction` of a pod.
    Eviction,
    /// `ephemeralcontainers` of a pod.
    EphemeralContainers,
    /// `resize` of a pod.
    Resize,
    /// `token` of a service account.
    Token,
    /// `finalize` of a namespace.
    Finalize,
    /// `approval` of a certificate signing request.
    Approval,
    /// `log` of a pod.
    Log,
    /// `exec` of a pod.
    Exec,
    /// `attach` of a pod.
    Attach,
    /// `portforward` of a pod.
    PortForward,
    /// `proxy` of a pod, service or node.
    Proxy(Proxied),
}

/// What a client is led to by `proxy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxied {
    /// What listens in a pod.
    Pod,
    /// What is behind a service.
    Service,
    /// The kubelet of a node.
    Node,
}

impl Subresource {
    /// Its name in URLs and discovery.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale | Self::CustomScale(_) => "scale",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Token => "token",
            Self::Finalize => "finalize",
            Self::Approval => "approval",
            Self::Log => "log",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
            Self::Proxy(_) => "proxy",
        }
    }

    /// Its verbs in discovery's order.
    #[must_use]
    pub fn verbs(&self) -> &'static [&'static str] {
        match self {
            Self::Binding | Self::Eviction | Self::Token => &["create"],
            Self::Finalize => &["update"],
            Self::Log => &["get"],
            Self::Exec | Self::Attach | Self::PortForward => &["create", "get"],
            Self::Proxy(_) => &["create", "delete", "get", "patch", "update"],
            _ => &["get", "patch", "update"],
        }
    }

    /// Group, version and kind of its body, where that is not the parent's.
    #[must_use]
    pub fn body_kind(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::Scale | Self::CustomScale(_) => Some(("autoscaling", "v1", "Scale")),
            Self::Binding => Some(("", "v1", "Binding")),
            Self::Eviction => Some(("policy", "v1", "Eviction")),
            Self::Token => Some(("authentication.k8s.io", "v1", "TokenRequest")),
            Self::Exec => Some(("", "v1", "PodExecOptions")),
            Self::Attach => Some(("", "v1", "PodAttachOptions")),
            Self::PortForward => Some(("", "v1", "PodPortForwardOptions")),
            Self::Proxy(Proxied::Pod) => Some(("", "v1", "PodProxyOptions")),
            Self::Proxy(Proxied::Service) => Some(("", "v1", "ServiceProxyOptions")),
            Self::Proxy(Proxied::Node) => Some(("", "v1", "NodeProxyOptions")),
            _ => None,
        }
    }
}

/// Where a scale subresource finds its numbers: JSON paths with a leading dot, as in a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Wanted replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// Seen replicas, such as `.status.replicas`.
    pub status_replicas: String,
    /// A label selector as text, such as `.status.selector`.
    pub label_selector: Option<String>,
}

impl Kind {
    /// What clients of a deprecated version are warned of.
    #[must_use]
    pub fn deprecation(&self) -> Option<&str> {
        match &self.custom {
            Some(custom) => custom.deprecation.as_deref(),
            None => self.built_in?.deprecation,
        }
    }

    /// A built-in kind, as a version of Kubernetes serves it; none where it does not.
    #[must_use]
    pub fn of_version(version: Version, of: &'static BuiltIn) -> Option<Self> {
        let api_version = of.api_version();
        if !is_served(version, &api_version, of.plural) {
            return None;
        }
        let mut kind = Self { kubernetes: version, ..Self::built_in(of) };
        kind.subresources
            .retain(|below| is_served(version, &api_version, &format!("{}/{}", of.plural, below.name())));
        kind.rules.version = version;
        kind.rules.told_once = version >= Version::V1_37;
        kind.columns = Columns::of_version(version, (of.group, of.version, of.plural), of.columns);
        for (_, change) in of.since.iter().filter(|(since, _)| *since <= version) {
            change(&mut kind);
        }
        Some(kind)
    }

    /// A built-in kind, with all that its descriptor says.
    #[must_use]
    pub fn built_in(of: &'static BuiltIn) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Self {
            group: of.group.to_owned(),
            version: of.version.to_owned(),
            kind: of.kind.to_owned(),
            list_kind: format!("{}List", of.kind),
            plural: of.plural.to_owned(),
            singular: of.kind.to_ascii_lowercase(),
            short_names: owned(of.short_names),
            categories: owned(of.categories),
            scope: of.scope,
            verbs: of.verbs,
            subresources: of.subresources.to_vec(),
            collection: Name::from(of.collection()),
            columns: Columns::built_in(of.columns),
            rules: of.rules,
            behaviour: of.behaviour,
            ownership: Ownership::built_in(of.left_alone, of.subresources.contains(&Subresource::Status)),
            counted: of.counted,
            plugins: PluginSet::OF_EVERY_KIND.union(PluginSet::of(of.plugins)),
            custom: None,
            built_in: Some(of),
            kubernetes: Version::DEFAULT,
            schema: OnceLock::new(),
            blank: OnceLock::new(),
            selectable: OnceLock::new(),
        }
    }

    /// Assembles a kind of a CustomResourceDefinition.
    #[must_use]
    pub fn custom(parts: CustomParts) -> Self {
        let collection = Name::from(format!("{}/{}", parts.group, parts.plural));
        let has_status = parts.subresources.contains(&Subresource::Status);
        Self {
            collection,
            group: parts.group,
            version: parts.version,
            kind: parts.kind,
            list_kind: parts.list_kind,
            plural: parts.plural,
            singular: parts.singular,
            short_names: parts.short_names,
            categories: parts.categories,
            scope: parts.scope,
            verbs: Verbs::All,
            subresources: parts.subresources,
            columns: parts.columns,
            rules: Rules::custom(),
            behaviour: Behaviour::CUSTOM,
            ownership: Ownership::custom(has_status),
            counted: Counted::Objects,
            plugins: PluginSet::OF_EVERY_KIND,
            custom: Some(parts.custom),
            built_in: None,
            kubernetes: Version::DEFAULT,
            schema: OnceLock::from(Arc::new(parts.schema)),
            blank: OnceLock::new(),
            selectable: OnceLock::new(),
        }
    }

    /// The version of Kubernetes whose types it is made of; of a custom kind the one that it is judged by.
    #[must_use]
    pub fn kubernetes(&self) -> Version {
        self.kubernetes
    }

    /// Has a custom kind be judged by the rules of a version of Kubernetes.
    pub fn judge_by(&mut self, version: Version) {
        self.kubernetes = version;
        self.rules.version = version;
    }

    /// Its schema, made at first use.
    #[inline]
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        self.schema.get_or_init(|| {
            let built_in =
                self.built_in.unwrap_or_else(|| unreachable!("a custom kind is made with its schema"));
            Arc::new(built_in.schema(self.kubernetes))
        })
    }

    /// How its objects are stored.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self.behaviour.role {
            Role::Definition | Role::ApiService => Encoding::Json,
            _ => Encoding::Protobuf,
        }
    }

    /// An object that nobody has written anything to, without metadata: of built-in kinds it has the fields that
    /// Go writes even when they are empty. Nobody owns them for having been the first to write them.
    #[must_use]
    pub fn blank(&self) -> &Value {
        self.blank.get_or_init(|| {
            let mut blank = Value::Object(Map::new());
            if self.custom.is_none()
                && self.schema().decode(&mut blank).is_ok()
                && let Value::Object(members) = &mut blank
            {
                members.retain(|member, _| member != "metadata");
            }
            blank
        })
    }

    /// An object that nobody has written, under metadata that it may have: what Go writes of a new value of its type. Of a custom kind
    /// that is its type alone.
    #[must_use]
    pub fn unwritten(&self, metadata: Option<&Value>) -> Value {
        let mut object = json!({"kind": self.kind, "apiVersion": self.api_version()});
        if let Some(metadata) = metadata {
            object["metadata"] = metadata.clone();
        }
        if self.custom.is_none() {
            // Nothing in it is of a wrong type.
            let _ = self.schema().decode(&mut object);
            (self.rules.unwritten)(&mut object);
        }
        object
    }

    /// The fields that its objects can be selected by, beyond name and namespace.
    #[inline]
    #[must_use]
    pub fn selectable(&self) -> &Arc<Selectable> {
        self.selectable.get_or_init(|| {
            Arc::new(match (&self.custom, self.built_in) {
                (Some(custom), _) => {
                    Selectable::custom(custom.selectable_fields.iter().cloned(), self.namespaced())
                }
                (None, Some(built_in)) => {
                    Selectable::built_in(built_in.fields, self.namespaced(), self.kubernetes)
                }
                (None, None) => Selectable::default(),
            })
        })
    }

    /// `group/version`, or the version alone for core.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `plural.group`, or the plural alone for core: how messages name a resource.
    #[must_use]
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Kind.group`, or the kind alone for core: how messages of validation name a kind.
    #[must_use]
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Whether objects are stored as this version has them.
    #[must_use]
    pub fn is_storage(&self) -> bool {
        match &self.custom {
            Some(custom) => self.version == custom.versions.storage(),
            None => self.stored_as().is_none(),
        }
    }

    /// The `apiVersion` that its objects are stored with.
    #[must_use]
    pub fn storage_api_version(&self) -> String {
        match (&self.custom, self.built_in) {
            (Some(custom), _) => format!("{}/{}", self.group, custom.versions.storage()),
            (None, Some(built_in)) => built_in.stored().api_version(),
            (None, None) => self.api_version(),
        }
    }

    /// Turns an object of this built-in kind into the stored one. Others are left as they are.
    pub fn to_storage(&self, object: &mut Value) {
        if let Some(stored_as) = self.stored_as() {
            (stored_as.to_storage)(object);
        }
    }

    /// An object of this kind as columns print it: one of a built-in kind in the version that it is stored in, as kube-apiserver
    /// prints its internal version.
    #[must_use]
    pub fn in_storage<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        match self.stored_as() {
            Some(stored_as) => {
                let mut object = object.clone();
                (stored_as.to_storage)(&mut object);
                Cow::Owned(object)
            }
            None => Cow::Borrowed(object),
        }
    }

    /// Turns a stored object into one of this built-in kind. Others are left as they are.
    pub fn to_served(&self, object: &mut Value) {
        if let Some(stored_as) = self.stored_as() {
            (stored_as.from_storage)(object);
        }
    }

    /// The built-in kind that its objects are stored as, where that is another one.
    #[must_use]
    pub fn stored_in(&self) -> Option<&'static BuiltIn> {
        self.stored_as().map(|other| other.kind)
    }

    fn stored_as(&self) -> Option<&'static StoredAs> {
        self.built_in?.stored_as.as_ref()
    }

    /// The finalizer that holds an object as long as it is in use.
    #[must_use]
    pub fn finalizer_in_use(&self) -> Option<&'static str> {
        self.built_in?.finalizer_in_use
    }

    /// Where kube-apiserver would keep its objects.
    #[must_use]
    pub fn storage_prefix(&self) -> String {
        match self.built_in {
            Some(built_in) => built_in.storage_prefix.unwrap_or(built_in.plural).to_owned(),
            None => format!("{}/{}", self.group, self.plural),
        }
    }

    /// The group that its objects belong to at heart: that of the version they are stored in (an Event of
    /// `events.k8s.io` is one of the core group). Messages of validation name it.
    #[must_use]
    pub fn own_group(&self) -> &str {
        self.built_in.map_or(self.group.as_str(), |built_in| built_in.stored().group)
    }

    /// Whether its objects live in namespaces.
    #[inline]
    #[must_use]
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The subresource of that name, when it is served.
    #[inline]
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|served| served.name() == name)
    }

    /// Whether status is written apart from the rest.
    #[inline]
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&Subresource::Status)
    }
}

impl TypeNames for Kind {
    fn group(&self) -> &str {
        &self.group
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn plural(&self) -> &str {
        &self.plural
    }

    fn own_group(&self) -> &str {
        self.own_group()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// The parts of a custom [`Kind`].
pub struct CustomParts {
    /// See [`Kind::group`].
    pub group: String,
    /// See [`Kind::version`].
    pub version: String,
    /// See [`Kind::kind`].
    pub kind: String,
    /// See [`Kind::list_kind`].
    pub list_kind: String,
    /// See [`Kind::plural`].
    pub plural: String,
    /// See [`Kind::singular`].
    pub singular: String,
    /// See [`Kind::short_names`].
    pub short_names: Vec<String>,
    /// See [`Kind::categories`].
    pub categories: Vec<String>,
    /// See [`Kind::scope`].
    pub scope: Scope,
    /// See [`Kind::subresources`].
    pub subresources: Vec<Subresource>,
    /// See [`Kind::columns`].
    pub columns: Columns,
    /// See [`Kind::schema`].
    pub schema: Schema,
    /// See [`Kind::custom`].
    pub custom: Custom,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Kinds;

    /// `Selector *metav1.LabelSelector` has no `omitempty` in `k8s.io/api/apps/v1`: a webhook that replaces it finds it.
    #[test]
    fn a_workload_without_a_selector_has_null_there_until_it_is_refused() {
        let kinds = Kinds::built_in();
        for plural in ["daemonsets", "deployments", "replicasets", "statefulsets"] {
            let kind = kinds.get("apps", "v1", plural).expect("it is served");
            assert_eq!(kind.blank()["spec"].get("selector"), Some(&json!(null)), "{plural}");
            let mut sent = json!({"spec": {"template": {}}});
            kind.schema().decode(&mut sent).expect("an object");
            assert_eq!(sent["spec"].get("selector"), Some(&json!(null)), "{plural}");
            let wrong = (kind.rules.validate)(&sent);
            assert!(
                wrong.iter().any(|error| error.field == "spec.template.metadata.labels"),
                "{plural}: {wrong:?}"
            );
        }
    }
}
