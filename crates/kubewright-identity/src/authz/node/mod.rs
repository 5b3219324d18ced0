//! What a node may do: with its own objects, and with those that the pods on it use
//! (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/node`).
//!
//! Kubernetes keeps a graph of what leads to which node; here the pods are looked through when a node asks, as nothing in
//! this process does. What a node may write is limited further by the admission plugin NodeRestriction there, which is
//! not here: a node may write other nodes' objects where this file says so.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bytes::Bytes;
use kubewright_meta::selector;
use kubewright_store::Snapshot;
use serde_json::Value;

use super::rule::Rule;
use super::{Attributes, Decision, bootstrap};
use crate::authn::{NODES, User};

const PREFIX: &str = "system:node:";
const LEASES: &str = "kube-node-lease";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The objects that say what belongs to a node.
pub(super) trait Objects: Send + Sync {
    /// The object under a key of a collection.
    fn get(&self, collection: &str, key: &str) -> Option<Bytes>;
    /// All objects of a collection, in a namespace (empty: in all).
    fn all(&self, collection: &str, namespace: &str) -> Vec<Bytes>;
}

impl<T: Send + Sync> Objects for Snapshot<T> {
    fn get(&self, collection: &str, key: &str) -> Option<Bytes> {
        Self::get(self, collection, key).map(|entry| entry.bytes.clone())
    }

    fn all(&self, collection: &str, namespace: &str) -> Vec<Bytes> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        self.range(collection, &prefix, None).map(|entry| entry.bytes.clone()).collect()
    }
}

/// What Kubernetes allows all nodes: the rules of the cluster role `system:node`.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| bootstrap::rules_of_cluster_role("system:node"));

/// The node that a user is: a member of `system:nodes` whose name begins as those of nodes do.
pub(super) fn name(user: &User) -> Option<&str> {
    user.name.strip_prefix(PREFIX).filter(|_| user.is_in(NODES))
}

/// May this user do that, as a node?
pub(super) fn decide(objects: &dyn Objects, user: &User, what: &Attributes<'_>) -> Decision {
    let Some(node) = name(user) else { return Decision::no_opinion("") };
    if node.is_empty() {
        return Decision::no_opinion(format!("unknown node for user {:?}", user.name));
    }
    let request = NodeRequest { objects, node, what };
    let reads = matches!(what.verb, "get" | "list" | "watch");
    let nothing = Decision::no_opinion("");
    match (what.group, what.resource) {
        _ if what.path.is_some() => request.by_rules(),
        ("", "secrets" | "configmaps") => request.read_in_namespace(),
        ("", "serviceaccounts") if what.verb == "get" && what.subresource.is_empty() => {
            request.read_in_namespace()
        }
        ("", "serviceaccounts") => request.token(),
        ("", "persistentvolumeclaims") if what.subresource == "status" => match what.verb {
            "update" | "patch" => request.related(),
            _ => Decision::no_opinion("can only get/update/patch this type"),
        },
        ("", "persistentvolumeclaims" | "persistentvolumes")
        | ("resource.k8s.io", "resourceclaims")
        | ("storage.k8s.io", "volumeattachments") => request.get(),
        ("coordination.k8s.io", "leases") => request.lease(),
        ("storage.k8s.io", "csinodes") => request.csi_node(),
        ("resource.k8s.io", "resourceslices") => request.resource_slice(),
        ("certificates.k8s.io", "podcertificaterequests") => request.certificate_request(),
        ("", "nodes") => match (what.subresource, what.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Decision::allow(""),
            ("", _) if reads => request.own_node(),
            _ => nothing,
        },
        ("", "pods") => match (what.subresource, what.verb) {
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Decision::allow("")
            }
            ("", "get") => request.get(),
            ("", "list" | "watch") if request.selects("spec.nodeName") => Decision::allow(""),
            ("", "list" | "watch") if !what.name.is_empty() => request.related(),
            ("", "list" | "watch") => {
                Decision::no_opinion("can only list/watch pods with spec.nodeName field selector")
            }
            _ => nothing,
        },
        _ => request.by_rules(),
    }
}

/// What a node asks for.
struct NodeRequest<'a> {
    objects: &'a dyn Objects,
    node: &'a str,
    what: &'a Attributes<'a>,
}

impl NodeRequest<'_> {
    fn by_rules(&self) -> Decision {
        let action = self.what.action();
        if RULES.iter().any(|rule| rule.allows(&action)) {
            Decision::allow("")
        } else {
            Decision::no_opinion("")
        }
    }

    fn get(&self) -> Decision {
        if self.what.verb != "get" {
            return Decision::no_opinion("can only get individual resources of this type");
        }
        if !self.what.subresource.is_empty() {
            return Decision::no_opinion("cannot get subresource");
        }
        self.related()
    }

    fn read_in_namespace(&self) -> Decision {
        if !matches!(self.what.verb, "get" | "list" | "watch") {
            return Decision::no_opinion("can only read resources of this type");
        }
        if !self.what.subresource.is_empty() {
            return Decision::no_opinion("cannot read subresource");
        }
        if self.what.namespace.is_empty() {
            return Decision::no_opinion("can only read namespaced object of this type");
        }
        self.related()
    }

    fn token(&self) -> Decision {
        if self.what.verb != "create" || self.what.name.is_empty() {
            return Decision::no_opinion("can only create tokens for individual service accounts");
        }
        if self.what.subresource != "token" {
            return Decision::no_opinion("can only create token subresource of serviceaccount");
        }
        self.related()
    }

    fn lease(&self) -> Decision {
        let Attributes { verb, namespace, name, .. } = *self.what;
        if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
            return Decision::no_opinion("can only get, create, update, patch, or delete a node lease");
        }
        if namespace != LEASES {
            return Decision::no_opinion(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        if verb != "create" && name != self.node {
            let why = "can only access node lease with the same name as the requesting node";
            return Decision::no_opinion(why);
        }
        Decision::allow("")
    }

    fn csi_node(&self) -> Decision {
        let Attributes { verb, subresource, name, .. } = *self.what;
        if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
            return Decision::no_opinion("can only get, create, update, patch, or delete a CSINode");
        }
        if !subresource.is_empty() {
            return Decision::no_opinion("cannot authorize CSINode subresources");
        }
        if verb != "create" && name != self.node {
            return Decision::no_opinion("can only access CSINode with the same name as the requesting node");
        }
        Decision::allow("")
    }

    fn resource_slice(&self) -> Decision {
        if !self.what.subresource.is_empty() {
            return Decision::no_opinion("cannot authorize ResourceSlice subresources");
        }
        match self.what.verb {
            "create" => Decision::allow(""),
            "get" | "update" | "patch" | "delete" => self.related(),
            "watch" | "list" | "deletecollection" if self.selects("spec.nodeName") => Decision::allow(""),
            "watch" | "list" | "deletecollection" => Decision::no_opinion(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => Decision::no_opinion(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn certificate_request(&self) -> Decision {
        if !self.what.subresource.is_empty() {
            return Decision::no_opinion(
                "nodes may not access the status subresource of PodCertificateRequests",
            );
        }
        match self.what.verb {
            "create" => Decision::allow(""),
            "get" => self.related(),
            "list" | "watch" if self.selects("spec.nodeName") => Decision::allow(""),
            "list" | "watch" => Decision::no_opinion(
                "can only list/watch podcertificaterequests with nodeName field selector",
            ),
            verb => Decision::no_opinion(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn own_node(&self) -> Decision {
        let (node, name) = (self.node, self.what.name);
        match name {
            _ if name == node => Decision::allow(""),
            "" => {
                Decision::no_opinion(format!("node '{node}' cannot read all nodes, only its own Node object"))
            }
            _ => {
                Decision::no_opinion(format!("node '{node}' cannot read '{name}', only its own Node object"))
            }
        }
    }

    /// Whether a list is of what has this node in a field.
    fn selects(&self, field: &str) -> bool {
        let terms = selector::field_terms(self.what.field_selector).unwrap_or_default();
        terms.iter().any(|term| term.equal && term.field == field && term.value == self.node)
    }

    /// Whether the object has to do with the node.
    fn related(&self) -> Decision {
        if self.what.name.is_empty() {
            return Decision::no_opinion("No Object name found");
        }
        if self.is_related() {
            return Decision::allow("");
        }
        Decision::no_opinion(format!("no relationship found between node '{}' and this object", self.node))
    }

    fn is_related(&self) -> bool {
        let Attributes { namespace, name, resource, .. } = *self.what;
        let on_node = |collection: &str, key: &str| {
            self.read(collection, key).is_some_and(|object| object["spec"]["nodeName"] == self.node)
        };
        let namespaced = || format!("{namespace}/{name}");
        let pods = || self.pods(namespace).into_iter();
        match resource {
            "pods" => on_node("/pods", &namespaced()),
            "volumeattachments" => on_node("storage.k8s.io/volumeattachments", name),
            "resourceslices" => on_node("resource.k8s.io/resourceslices", name),
            "podcertificaterequests" => on_node("certificates.k8s.io/podcertificaterequests", &namespaced()),
            "serviceaccounts" => pods().any(|pod| pod["spec"]["serviceAccountName"] == name),
            "configmaps" => pods().any(|pod| names(&pod["spec"], is_config_map).contains(name)),
            "secrets" => {
                pods().any(|pod| names(&pod["spec"], is_secret).contains(name)) || self.in_volumes(pods())
            }
            "persistentvolumeclaims" => pods().any(|pod| claims(&pod).contains(name)),
            "persistentvolumes" => {
                let Some(volume) = self.read("/persistentvolumes", name) else { return false };
                let claim = &volume["spec"]["claimRef"];
                let (namespace, name) = (claim["namespace"].as_str(), claim["name"].as_str());
                let (Some(namespace), Some(name)) = (namespace, name) else { return false };
                self.pods(namespace).iter().any(|pod| claims(pod).contains(name))
            }
            "resourceclaims" => pods().any(|pod| {
                let given = array(&pod["spec"]["resourceClaims"]).iter();
                let made = array(&pod["status"]["resourceClaimStatuses"]).iter();
                given.chain(made).any(|claim| claim["resourceClaimName"] == name)
            }),
            _ => false,
        }
    }

    /// Whether a volume that one of the pods claims names the secret.
    fn in_volumes(&self, pods: impl Iterator<Item = Value>) -> bool {
        let Attributes { namespace, name, .. } = *self.what;
        let claimed: BTreeSet<String> = pods.flat_map(|pod| claims(&pod)).collect();
        if claimed.is_empty() {
            return false;
        }
        let volumes = self.objects.all("/persistentvolumes", "");
        volumes.iter().filter_map(|bytes| serde_json::from_slice::<Value>(bytes).ok()).any(|volume| {
            let claim = &volume["spec"]["claimRef"];
            claim["namespace"] == namespace
                && claim["name"].as_str().is_some_and(|name| claimed.contains(name))
                && names(&volume["spec"], is_secret_of_node).contains(name)
        })
    }

    /// The pods on the node, in a namespace. Those of files (mirror pods) use nothing of the API.
    fn pods(&self, namespace: &str) -> Vec<Value> {
        let pods = self.objects.all("/pods", namespace);
        let pods = pods.iter().filter_map(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        pods.filter(|pod| {
            pod["spec"]["nodeName"] == self.node && pod["metadata"]["annotations"].get(MIRROR).is_none()
        })
        .collect()
    }

    fn read(&self, collection: &str, key: &str) -> Option<Value> {
        serde_json::from_slice(&self.objects.get(collection, key)?).ok()
    }
}

/// The claims of a pod: those that it names, and those that are made for it.
fn claims(pod: &Value) -> BTreeSet<String> {
    let of = |volume: &Value| {
        let made = || Some(format!("{}-{}", pod["metadata"]["name"].as_str()?, volume["name"].as_str()?));
        let named = volume["persistentVolumeClaim"]["claimName"].as_str().map(str::to_owned);
        named.or_else(|| volume.get("ephemeral").and_then(|_| made()))
    };
    array(&pod["spec"]["volumes"]).iter().filter_map(of).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_config_map(member: &str) -> bool {
    matches!(member, "configMap" | "configMapKeyRef" | "configMapRef")
}

fn is_secret(member: &str) -> bool {
    matches!(
        member,
        "secret" | "secretKeyRef" | "secretRef" | "secretName" | "imagePullSecrets" | "nodePublishSecretRef"
    )
}

fn is_secret_of_node(member: &str) -> bool {
    is_secret(member) || matches!(member, "nodeStageSecretRef" | "nodeExpandSecretRef")
}

/// What a spec refers to in members of these names: a text, or the name in an object or in each of a list.
fn names(spec: &Value, is_reference: fn(&str) -> bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![spec];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(list) => left.extend(list),
            Value::Object(members) => {
                for (member, value) in members {
                    if is_reference(member) {
                        let one = |value: &Value| {
                            let text = value.as_str().or_else(|| value["name"].as_str());
                            text.or_else(|| value["secretName"].as_str()).map(str::to_owned)
                        };
                        found.extend(one(value));
                        found.extend(array(value).iter().filter_map(one));
                    }
                    left.push(value);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests;
