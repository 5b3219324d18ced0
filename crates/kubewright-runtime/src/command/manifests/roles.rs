//! The roles of an operator, and who has them.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::DynamicObject;

use super::{dynamic, layout::Layout};
use crate::{Error, LeaderElection, Sharding, rbac::Rights, serving::MetricsServer};

impl Layout {
    /// The operator's own roles, in the namespaces that it looks at, if not everywhere.
    pub(super) fn own_roles(&self, rights: &Rights) -> Result<Vec<DynamicObject>, Error> {
        let own = self.named("operator");
        let mut objects = Vec::new();
        if self.watched.is_empty() {
            objects.extend(self.cluster_role(&own, rights.rules())?);
        } else {
            let (inside, outside) = rights.clone().by_scope();
            if !outside.is_empty() {
                objects.extend(self.cluster_role(&own, outside.rules())?);
            }
            for namespace in &self.watched {
                objects.extend(self.role(namespace, &own, inside.rules())?);
            }
        }
        Ok(objects)
    }

    /// The roles: the operator's own (in the namespaces that it looks at, if not everywhere), one for the Leases of the
    /// election or the ring, one for asking who reads metrics, and one to be bound to who does.
    pub(super) fn roles(&self, rights: &Rights) -> Result<Vec<DynamicObject>, Error> {
        let mut objects = self.own_roles(rights)?;
        let leases = if self.sharded {
            Sharding::ring(&self.home, &self.name).rights()
        } else {
            LeaderElection::lease(&self.home, &self.name).rights()
        };
        objects.extend(self.role(&self.home, &self.named("leader"), leases.rules())?);
        let asking = MetricsServer::at("").rights();
        objects.extend(self.cluster_role(&self.named("metrics-auth"), asking.rules())?);
        let reading = PolicyRule {
            non_resource_urls: Some(vec!["/metrics".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        };
        let metadata = self.global(&self.named("metrics-reader"));
        objects.push(dynamic(&ClusterRole {
            metadata,
            rules: Some(vec![reading]),
            ..ClusterRole::default()
        })?);
        Ok(objects)
    }

    /// A ClusterRole of the operator's account.
    pub(super) fn cluster_role(
        &self,
        name: &str,
        rules: Vec<PolicyRule>,
    ) -> Result<[DynamicObject; 2], Error> {
        let role = ClusterRole { metadata: self.global(name), rules: Some(rules), ..ClusterRole::default() };
        let binding = ClusterRoleBinding {
            metadata: self.global(name),
            role_ref: reference("ClusterRole", name),
            subjects: Some(vec![self.account()]),
        };
        Ok([dynamic(&role)?, dynamic(&binding)?])
    }

    /// A Role of the operator's account in a namespace.
    pub(super) fn role(
        &self,
        namespace: &str,
        name: &str,
        rules: Vec<PolicyRule>,
    ) -> Result<[DynamicObject; 2], Error> {
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
            namespace: Some(self.home.clone()),
            ..Subject::default()
        }
    }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        // Required in older versions of k8s-openapi.
        api_group: "rbac.authorization.k8s.io".to_owned().into(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}
