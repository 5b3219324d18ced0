//! The objects of an installation, sorted by what they are for.

use serde_json::Value;

use crate::Error;

/// Whose part of an installation an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The definition of a kind.
    Definition,
    /// The operator's namespace.
    Namespace,
    /// Its account.
    Account,
    /// A role or binding: what its name says beyond the operator's (`leader`, `metrics-auth`).
    Rbac(String),
    /// The Service of its metrics.
    MetricsService,
    /// The Service of its webhooks.
    WebhookService,
    /// The configurations of its webhooks.
    WebhookConfiguration,
    /// cert-manager's objects.
    Certificate,
    /// The operator itself.
    Program,
    /// What it has installed with it.
    Other,
}

/// The objects, each with its part.
pub(crate) struct Inventory<'a> {
    objects: Vec<(Part, &'a Value)>,
}

impl<'a> Inventory<'a> {
    /// # Errors
    /// When there is no Deployment of the operator.
    pub(crate) fn of(operator: &str, objects: &'a [Value]) -> Result<Self, Error> {
        let home = objects
            .iter()
            .find(|object| kind(object) == "Deployment" && name(object) == operator)
            .and_then(namespace)
            .ok_or(Error::Missing("Deployment"))?;
        let objects = objects.iter().map(|object| (part(operator, home, object), object)).collect();
        Ok(Self { objects })
    }

    /// All, in the order in which they are applied.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Part, &'a Value)> {
        self.objects.iter().map(|(part, object)| (part, *object))
    }

    /// Those of a part.
    pub(crate) fn all(&self, wanted: &Part) -> Vec<&'a Value> {
        self.iter().filter(|(part, _)| *part == wanted).map(|(_, object)| object).collect()
    }

    /// The one of a part.
    pub(crate) fn one(&self, wanted: &Part) -> Option<&'a Value> {
        self.all(wanted).first().copied()
    }

    /// Roles and bindings, with what their names say.
    pub(crate) fn rbac(&self) -> impl Iterator<Item = (&str, &'a Value)> {
        self.objects.iter().filter_map(|(part, object)| match part {
            Part::Rbac(suffix) => Some((suffix.as_str(), *object)),
            _ => None,
        })
    }

    /// # Errors
    /// [`Error::Missing`].
    pub(crate) fn program(&self) -> Result<&'a Value, Error> {
        self.one(&Part::Program).ok_or(Error::Missing("Deployment"))
    }

    /// The operator's namespace.
    pub(crate) fn home(&self) -> &'a str {
        self.one(&Part::Program).and_then(namespace).unwrap_or_default()
    }

    /// Whether it has webhooks.
    pub(crate) fn has_webhooks(&self) -> bool {
        self.one(&Part::WebhookService).is_some()
    }
}

fn part(operator: &str, home: &str, object: &Value) -> Part {
    let own = name(object).strip_prefix(operator).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
    let local = namespace(object) == Some(home);
    match (kind(object), own) {
        ("CustomResourceDefinition", _) => Part::Definition,
        ("Namespace", _) if name(object) == home => Part::Namespace,
        ("ServiceAccount", Some("")) if local => Part::Account,
        ("Deployment", Some("")) if local => Part::Program,
        ("Service", Some("metrics")) if local => Part::MetricsService,
        ("Service", Some("webhook")) if local => Part::WebhookService,
        ("Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding", Some(suffix))
            if ["operator", "leader", "metrics-auth", "metrics-reader", "webhook"].contains(&suffix) =>
        {
            Part::Rbac(suffix.to_owned())
        }
        ("MutatingWebhookConfiguration", Some("mutating"))
        | ("ValidatingWebhookConfiguration", Some("validating")) => Part::WebhookConfiguration,
        ("Issuer", Some("webhook-issuer")) | ("Certificate", Some("webhook-cert")) if local => {
            Part::Certificate
        }
        _ => Part::Other,
    }
}

pub(crate) fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(crate) fn namespace(object: &Value) -> Option<&str> {
    object["metadata"]["namespace"].as_str()
}

/// Which object it is: what no two of an installation have in common.
pub(crate) fn identity(object: &Value) -> (String, String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    (
        text(&object["apiVersion"]),
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"]),
    )
}

/// The group and the version in an `apiVersion`.
pub(crate) fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
