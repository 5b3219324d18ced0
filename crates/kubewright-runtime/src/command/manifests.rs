//! `manifests`: what a cluster needs before the operator runs, and the operator itself.

use std::collections::BTreeMap;

use clap::Args;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        authentication::v1::TokenReview,
        authorization::v1::SubjectAccessReview,
        coordination::v1::Lease,
        core::v1::{Event, Namespace, Service, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::{Value, json};

use super::Operator;
use crate::{
    Error,
    rbac::{Rights, Verb},
};

/// The ports of the Deployment.
const HEALTH: u16 = 8081;
const METRICS: u16 = 8443;
/// How long a pod may take to end: more than a graceful shutdown takes.
const GRACE: u64 = 40;

/// How an operator is installed: what the flags of `manifests` say.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The namespace that the operator lives in; `<operator>-system` if not told
    #[arg(long, value_name = "NAME")]
    pub install_namespace: Option<String>,
    /// The image of the operator; `<operator>:<version>` if not told
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// How many replicas there are, of which one works
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub replicas: u16,
    /// Let it look only at these namespaces, separated by commas, and give it no rights elsewhere
    #[arg(long = "namespace", short, value_name = "NAMES", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// Print nothing but the definitions of the operator's kinds
    #[arg(long, conflicts_with = "rights_only")]
    pub crds_only: bool,
    /// Print nothing but the account and its rights
    #[arg(long)]
    pub rights_only: bool,
}

impl Default for Installation {
    /// What an empty command line says.
    fn default() -> Self {
        Self {
            install_namespace: None,
            image: None,
            replicas: 1,
            namespaces: Vec::new(),
            crds_only: false,
            rights_only: false,
        }
    }
}

/// One object, its kind forgotten.
pub(super) fn dynamic(typed: &impl Serialize) -> Result<DynamicObject, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(typed)?)
}

impl Operator {
    /// What installs it, in the order in which it is to be applied: the definitions of its kinds, its namespace, account and
    /// rights, what else [belongs to it](Operator::install), the Service of its metrics and its Deployment.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the operator's name is no name of objects.
    pub fn manifests(&self, installation: &Installation) -> Result<Vec<DynamicObject>, Error> {
        let mut objects = Vec::new();
        let layout = Layout::new(self, installation)?;
        if !installation.rights_only {
            for definition in &self.definitions {
                objects.push(dynamic(definition)?);
            }
        }
        if installation.crds_only {
            return Ok(objects);
        }
        objects.push(dynamic(&Namespace {
            metadata: layout.global(&layout.namespace),
            ..Namespace::default()
        })?);
        let account = ServiceAccount { metadata: layout.local(&self.name), ..ServiceAccount::default() };
        objects.push(dynamic(&account)?);
        objects.extend(layout.rights(self.rights())?);
        if !installation.rights_only {
            objects.extend(self.objects.iter().cloned());
            objects.push(dynamic(&layout.service()?)?);
            objects.push(dynamic(&layout.deployment(installation)?)?);
        }
        Ok(objects)
    }

    /// [The manifests](Operator::manifests) as a stream of YAML documents.
    pub(super) fn yaml(&self, installation: &Installation) -> Result<String, Error> {
        let mut text = String::new();
        for object in self.manifests(installation)? {
            let document = serde_saphyr::to_string(&object).map_err(Error::new)?;
            text += "---\n";
            text += document.trim_end();
            text += "\n";
        }
        Ok(text)
    }
}

/// The names in an installation.
struct Layout {
    name: String,
    namespace: String,
    image: String,
    /// Which namespaces it looks at; none for all.
    watched: Vec<String>,
    labels: BTreeMap<String, String>,
}

impl Layout {
    fn new(operator: &Operator, installation: &Installation) -> Result<Self, Error> {
        let name = operator.name.clone();
        let is_label = |name: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !name.is_empty() && !name.starts_with('-') && !name.ends_with('-') && name.chars().all(inner)
        };
        // The longest suffix, and what names of services may have.
        if !is_label(&name) || name.len() > 50 {
            return Err(Error::Misconfigured(format!(
                "{name:?} is no name for an operator: lower case letters, digits and dashes, at most 50"
            )));
        }
        let mut mistakes = operator.mistakes.clone();
        mistakes.extend(operator.controllers.iter().flat_map(|make| make().mistakes));
        if !mistakes.is_empty() {
            return Err(Error::Misconfigured(mistakes.join("; ")));
        }
        let namespace = installation.install_namespace.clone().unwrap_or_else(|| format!("{name}-system"));
        let image = installation.image.clone().unwrap_or_else(|| format!("{name}:{}", operator.version));
        let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), name.clone())]);
        let mut watched = installation.namespaces.clone();
        watched.sort();
        watched.dedup();
        Ok(Self { name, namespace, image, watched, labels })
    }

    fn global(&self, name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.to_owned()), labels: Some(self.labels.clone()), ..ObjectMeta::default() }
    }

    fn local(&self, name: &str) -> ObjectMeta {
        self.inside(&self.namespace, name)
    }

    fn inside(&self, namespace: &str, name: &str) -> ObjectMeta {
        ObjectMeta { namespace: Some(namespace.to_owned()), ..self.global(name) }
    }

    /// The roles: the operator's own (in the namespaces that it looks at, if not everywhere), one for the election of a
    /// leader, one for asking who reads metrics, and one to be bound to who does.
    fn rights(&self, rights: Rights) -> Result<Vec<DynamicObject>, Error> {
        let own = format!("{}-operator", self.name);
        let mut objects = Vec::new();
        if self.watched.is_empty() {
            objects.extend(self.cluster_role(&own, rights.rules())?);
        } else {
            let (inside, outside) = rights.by_scope();
            if !outside.is_empty() {
                objects.extend(self.cluster_role(&own, outside.rules())?);
            }
            for namespace in &self.watched {
                objects.extend(self.role(namespace, &own, inside.rules())?);
            }
        }
        let mut electing = Rights::default();
        electing.add::<Lease>([Verb::Get, Verb::Create, Verb::Update]);
        electing.add::<Event>([Verb::Create, Verb::Patch]);
        objects.extend(self.role(&self.namespace, &format!("{}-leader", self.name), electing.rules())?);
        let mut asking = Rights::default();
        asking.add::<TokenReview>([Verb::Create]).add::<SubjectAccessReview>([Verb::Create]);
        objects.extend(self.cluster_role(&format!("{}-metrics-auth", self.name), asking.rules())?);
        let reading = PolicyRule {
            non_resource_urls: Some(vec!["/metrics".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        };
        let metadata = self.global(&format!("{}-metrics-reader", self.name));
        objects.push(dynamic(&ClusterRole {
            metadata,
            rules: Some(vec![reading]),
            ..ClusterRole::default()
        })?);
        Ok(objects)
    }

    fn cluster_role(&self, name: &str, rules: Vec<PolicyRule>) -> Result<[DynamicObject; 2], Error> {
        let role = ClusterRole { metadata: self.global(name), rules: Some(rules), ..ClusterRole::default() };
        let binding = ClusterRoleBinding {
            metadata: self.global(name),
            role_ref: reference("ClusterRole", name),
            subjects: Some(vec![self.account()]),
        };
        Ok([dynamic(&role)?, dynamic(&binding)?])
    }

    fn role(&self, namespace: &str, name: &str, rules: Vec<PolicyRule>) -> Result<[DynamicObject; 2], Error> {
        let role = Role { metadata: self.inside(namespace, name), rules: Some(rules) };
        let binding = RoleBinding {
            metadata: self.inside(namespace, name),
            role_ref: reference("Role", name),
            subjects: Some(vec![self.account()]),
        };
        Ok([dynamic(&role)?, dynamic(&binding)?])
    }

    fn account(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".to_owned(),
            name: self.name.clone(),
            namespace: Some(self.namespace.clone()),
            ..Subject::default()
        }
    }

    fn service(&self) -> Result<Service, Error> {
        let metadata = self.local(&format!("{}-metrics", self.name));
        Ok(serde_json::from_value(json!({
            "metadata": metadata,
            "spec": {
                "selector": self.labels,
                "ports": [{"name": "https", "port": METRICS, "protocol": "TCP", "targetPort": METRICS}],
            },
        }))?)
    }

    /// Hardened as the `restricted` Pod Security Standard asks for.
    fn deployment(&self, installation: &Installation) -> Result<Deployment, Error> {
        Ok(serde_json::from_value(json!({
            "metadata": self.local(&self.name),
            "spec": {
                "replicas": installation.replicas,
                "selector": {"matchLabels": self.labels},
                "template": {
                    "metadata": {"labels": self.labels},
                    "spec": {
                        "serviceAccountName": self.name,
                        "terminationGracePeriodSeconds": GRACE,
                        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                        "containers": [self.container()],
                    },
                },
            },
        }))?)
    }

    fn container(&self) -> Value {
        let mut arguments = vec![
            "run".to_owned(),
            "--leader-elect".to_owned(),
            format!("--health-probe-bind-address=:{HEALTH}"),
            format!("--metrics-bind-address=:{METRICS}"),
            "--log-format=json".to_owned(),
        ];
        if !self.watched.is_empty() {
            arguments.push(format!("--namespace={}", self.watched.join(",")));
        }
        let probe = |path: &str, delay: u8, period: u8| {
            json!({
                "httpGet": {"path": path, "port": HEALTH},
                "initialDelaySeconds": delay,
                "periodSeconds": period,
            })
        };
        json!({
            "name": "operator",
            "image": self.image,
            "args": arguments,
            "ports": [
                {"name": "health", "containerPort": HEALTH, "protocol": "TCP"},
                {"name": "metrics", "containerPort": METRICS, "protocol": "TCP"},
            ],
            "livenessProbe": probe("/healthz", 15, 20),
            "readinessProbe": probe("/readyz", 1, 5),
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        })
    }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}
