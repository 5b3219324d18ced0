//! Who reconciles objects of a custom kind: the accounts that may write their status, and the programs that run under them.

use serde_json::Value;

use super::read::{Listing, Reader};
use super::{listing, recorded_reconciles, refused_requests};
use crate::kinds::ServedKind;
use crate::object::{Id, Object};
use crate::picture::Picture;

impl Reader<'_> {
    /// Reads the definition of a kind, the roles that grant writes of it, and the programs and leases of who has them.
    pub(super) async fn operator(&mut self, kind: &ServedKind, namespace: &str) {
        let definition = Id::new("apiextensions.k8s.io", "CustomResourceDefinition", "", &kind.full_name());
        self.objects(vec![definition]).await;
        let mut wanted = Vec::new();
        for (name, place) in
            [("ClusterRole", ""), ("ClusterRoleBinding", ""), ("Role", namespace), ("RoleBinding", namespace)]
        {
            if let (Some(kind), true) = (
                self.kinds.get("rbac.authorization.k8s.io", name),
                !name.starts_with("Role") || !place.is_empty(),
            ) {
                self.picture.objects.retain(|one| one.kind() != name);
                wanted.push(listing(kind, place, false));
            }
        }
        self.lists(wanted).await;
        let mut places: Vec<String> = accounts(self.picture, &kind.group, &kind.plural)
            .into_iter()
            .map(|(namespace, _)| namespace)
            .collect();
        places.sort();
        places.dedup();
        let mut wanted: Vec<Listing> = Vec::new();
        for place in places {
            for (group, name) in [
                ("apps", "Deployment"),
                ("apps", "StatefulSet"),
                ("coordination.k8s.io", "Lease"),
                ("", "Pod"),
            ] {
                if let Some(kind) = self.kinds.get(group, name) {
                    // Leases of the object's own namespace may be there as metadata.
                    self.picture
                        .objects
                        .retain(|one| (one.kind(), one.namespace()) != ("Lease", place.as_str()));
                    wanted.push(listing(kind, &place, false));
                }
            }
        }
        self.lists(wanted).await;
        self.references().await;
        self.picture.refused = refused_requests(self.client).await;
        self.picture.reconciles = recorded_reconciles(self.client).await;
    }
}

/// The service accounts (namespace and name) that may write the status of a kind by a role that names its group.
pub(crate) fn accounts(picture: &Picture, group: &str, plural: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for binding in
        picture.objects.iter().filter(|one| matches!(one.kind(), "ClusterRoleBinding" | "RoleBinding"))
    {
        let place = if binding.text("/roleRef/kind") == "Role" { binding.namespace() } else { "" };
        let kind = binding.text("/roleRef/kind");
        let role = picture.get("rbac.authorization.k8s.io", kind, place, binding.text("/roleRef/name"));
        if !role.is_some_and(|role| writes(role, group, plural)) {
            continue;
        }
        for subject in binding.list("/subjects").filter(|one| one["kind"] == "ServiceAccount") {
            let text = |key: &str| subject[key].as_str().unwrap_or_default().to_owned();
            found.push((text("namespace"), text("name")));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a role grants writes of a kind's objects or their status, naming the group.
fn writes(role: &Object, group: &str, plural: &str) -> bool {
    let has = |list: &Value, wanted: &[&str]| {
        list.as_array().into_iter().flatten().any(|one| one.as_str().is_some_and(|one| wanted.contains(&one)))
    };
    let status = format!("{plural}/status");
    role.list("/rules").any(|rule| {
        has(&rule["apiGroups"], &[group])
            && has(&rule["resources"], &["*", plural, &status, "*/status"])
            && has(&rule["verbs"], &["*", "update", "patch"])
    })
}

/// The programs that run under one of these accounts.
pub(crate) fn programs<'a>(picture: &'a Picture, accounts: &[(String, String)]) -> Vec<&'a Object> {
    let runs_as = |object: &&Object| {
        let account = object.text("/spec/template/spec/serviceAccountName");
        let account = if account.is_empty() { "default" } else { account };
        accounts.iter().any(|(namespace, name)| namespace == object.namespace() && name == account)
    };
    let all = picture.all("apps", "Deployment").chain(picture.all("apps", "StatefulSet"));
    all.filter(runs_as).collect()
}
