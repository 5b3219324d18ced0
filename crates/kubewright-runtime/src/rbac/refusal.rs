//! What a refusal says is missing.

use std::fmt;

use kube::core::Status;
use serde_json::Value;

use super::{Right, Rights, Verb};

/// A right that somebody was refused for. It reads as what to do about it: `add: apps/deployments patch (in the namespace
/// default, on web)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The right.
    pub right: Right,
}

impl Missing {
    /// What to do about it, where it is known what the code declares: declare it there, or install what is declared.
    #[must_use]
    pub fn remedy(&self, declared: &Rights) -> String {
        if declared.grant(&self.right) {
            return "the code declares it, the cluster does not grant it: apply what the command `manifests --rights-only` prints"
                .to_owned();
        }
        format!("the code does not declare it: add {} to the controller", self.declaration())
    }

    /// How a controller declares it.
    fn declaration(&self) -> String {
        let Right { group, resource, verb, .. } = &self.right;
        let slash = if group.is_empty() { "" } else { "/" };
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let kind = format!("with K of {group}{slash}{plural}");
        let may = |what: &str| format!(".may(|rights| rights.{what}())");
        match (subresource, verb) {
            ("exec", _) => may("exec"),
            ("", Verb::List | Verb::Watch) => {
                format!(".reads::<K>() or {} {kind}", may("watching::<K>"))
            }
            ("", Verb::Get) => format!("{} {kind}", may("live_reads::<K>")),
            ("scale", _) => format!("{} {kind}", may("scaling::<K>")),
            ("", verb) => format!(".writes::<K>([Verb::{verb:?}]) {kind}"),
            ("status", Verb::Patch) => format!(".writes_status::<K>() {kind}"),
            (part, verb) => format!(".writes_subresource::<K>({part:?}, [Verb::{verb:?}]) {kind}"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "add: {}", self.right)
    }
}

/// The right that an answer of the API server says is missing: `None` for every other answer, refusals for other reasons
/// (an admission plugin, a quota, a namespace that ends) among them.
pub(crate) fn missing_in(status: &Status) -> Option<Missing> {
    if status.code != 403 {
        return None;
    }
    let name = status.details.as_ref().map(|details| details.name.clone()).filter(|name| !name.is_empty());
    let right = refused(&status.message)?;
    Some(Missing { right: Right { name, ..right } })
}

/// The right in the message of a refusal by an authorizer: `User "u" cannot patch resource "deployments/scale" in API group
/// "apps" in the namespace "ns"` (`forbiddenMessage` in
/// `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`). It holds no `<`, `>` or `&` unescaped, which names
/// have none of.
fn refused(message: &str) -> Option<Right> {
    let (_, rest) = message.split_once(" forbidden: User \"")?;
    let (_, rest) = rest.split_once("\" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, rest) = rest.split_once('"')?;
    let namespace = match rest.strip_prefix(" in the namespace \"") {
        Some(rest) => Some(rest.split_once('"')?.0.to_owned()),
        None => rest.starts_with(" at the cluster scope").then_some(None)?,
    };
    Some(Right {
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb: Verb::named(verb)?,
        namespace,
        name: None,
    })
}

/// The rights that a request was refused for, told by what it asked for, its body and the answer. Admission asks for others
/// than the request: who may delete an object may give it owners, and who may set the finalizers of an owner may hold
/// it (`k8s.io/kubernetes/plugin/pkg/admission/gc`).
pub(super) fn refused_for(asked: &Right, body: &[u8], status: &Status) -> Vec<Missing> {
    if let Some(missing) = missing_in(status) {
        return vec![missing];
    }
    let of = |right: Right| vec![Missing { right }];
    if status.code != 403 {
        return Vec::new();
    }
    if status.message.contains("cannot set an ownerRef on a resource you can't delete") {
        return of(Right { verb: Verb::Delete, ..asked.clone() });
    }
    if status.message.contains("an ownerReference refers to a resource you can't set finalizers on") {
        return held_owners(body, asked);
    }
    // A WebSocket is asked for with `get`, and refused without a word when `create` is missing.
    let connects = ["/exec", "/attach", "/portforward"].iter().any(|part| asked.resource.ends_with(part));
    if connects && asked.verb == Verb::Get {
        return of(Right { verb: Verb::Create, ..asked.clone() });
    }
    Vec::new()
}

/// The finalizers of the owners that an object would hold. A reference tells the kind of an owner, not its plural: that is
/// guessed, as English has it.
fn held_owners(body: &[u8], asked: &Right) -> Vec<Missing> {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let held = owners.iter().filter(|owner| owner["blockOwnerDeletion"] == true);
    let missing = held.filter_map(|owner| {
        let version = owner["apiVersion"].as_str()?;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = kube::core::GroupVersionKind::gvk(group, version, owner["kind"].as_str()?);
        let plural = kube::core::ApiResource::from_gvk(&kind).plural;
        Some(Missing {
            right: Right {
                group: group.to_owned(),
                resource: format!("{plural}/finalizers"),
                verb: Verb::Update,
                namespace: asked.namespace.clone(),
                name: owner["name"].as_str().map(str::to_owned),
            },
        })
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    fn forbidden(message: &str, name: &str) -> Status {
        let status = json!({"status": "Failure", "reason": "Forbidden", "code": 403, "message": message,
            "details": {"name": name}});
        kubewright_objects::from_value(status).expect("a Status")
    }

    fn missing_right(message: &str, name: &str) -> Option<String> {
        missing_in(&forbidden(message, name)).map(|missing| missing.to_string())
    }

    #[test]
    fn a_refusal_reads_as_what_to_add() {
        let scale = r#"deployments.apps "web" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "deployments/scale" in API group "apps" in the namespace "ns""#;
        assert_eq!(
            missing_right(scale, "web").as_deref(),
            Some("add: apps/deployments/scale patch (in the namespace ns, on web)")
        );
        let nodes = r#"nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found"#;
        assert_eq!(missing_right(nodes, "").as_deref(), Some("add: nodes list (cluster-wide)"));
    }

    #[test]
    fn a_refusal_for_another_reason_is_no_missing_right() {
        for message in [
            r#"admission webhook "a.b.c" denied the request: User "u" cannot list resource"#,
            r#"pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"#,
            r#"pods "p" is forbidden: unable to create new content in namespace a because it is being terminated"#,
            r#"forbidden: User "u" cannot get path "/metrics""#,
        ] {
            assert_eq!(missing_right(message, "p"), None, "{message}");
        }
        let absent = Status {
            code: 404,
            ..forbidden(
                r#"x is forbidden: User "u" cannot list resource "x" in API group "" at the cluster scope"#,
                "",
            )
        };
        assert_eq!(missing_in(&absent), None);
    }

    #[test]
    fn what_admission_asks_for_is_told_as_it_is() {
        let asked = |verb| Right {
            group: "apps".into(),
            resource: "deployments".into(),
            verb,
            namespace: Some("a".into()),
            name: Some("web".into()),
        };
        let missing_rights = |asked: &Right, body: &Value, message: &str| -> Vec<String> {
            let body = body.to_string();
            let missing = refused_for(asked, body.as_bytes(), &forbidden(message, "web"));
            missing.iter().map(ToString::to_string).collect()
        };
        let owned = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "blockOwnerDeletion": true},
            {"apiVersion": "v1", "kind": "Node", "name": "n"},
        ]}});
        assert_eq!(
            missing_rights(
                &asked(Verb::Create),
                &owned,
                r#"deployments.apps "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"#
            ),
            ["add: example.com/widgets/finalizers update (in the namespace a, on w)"]
        );
        assert_eq!(
            missing_rights(
                &asked(Verb::Patch),
                &owned,
                r#"deployments.apps "web" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"#
            ),
            ["add: apps/deployments delete (in the namespace a, on web)"]
        );
    }

    #[test]
    fn the_remedy_says_whether_code_or_cluster_lacks_the_right() {
        let right = |verb| Missing {
            right: Right {
                group: "apps".into(),
                resource: "deployments".into(),
                verb,
                namespace: Some("a".into()),
                name: None,
            },
        };
        let mut declared = Rights::default();
        declared.add::<Deployment>([Verb::Create]);
        let of_cluster = right(Verb::Create).remedy(&declared);
        assert!(
            of_cluster.starts_with("the code declares it, the cluster does not grant it"),
            "{of_cluster}"
        );
        assert_eq!(
            right(Verb::Patch).remedy(&declared),
            "the code does not declare it: add .writes::<K>([Verb::Patch]) with K of apps/deployments to the controller"
        );
    }
}
