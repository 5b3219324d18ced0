//! The authorizer that expressions ask: the cluster's own, but for webhooks (an expression waits for nobody).

use kubewright_cel::{Attributes, Authorizer, Decision, Subject};
use kubewright_identity::authn::User;
use kubewright_identity::authz::{self, Rights};

/// Answers by the rights of this moment, for who makes the request and for service accounts.
pub(super) struct UserAuthorizer<'a> {
    pub(super) rights: &'a Rights,
    pub(super) user: &'a User,
}

impl Authorizer for UserAuthorizer<'_> {
    fn authorize(&self, subject: &Subject, attributes: &Attributes) -> Decision {
        let account;
        let user = match subject {
            Subject::Requester => self.user,
            Subject::ServiceAccount { namespace, name } => {
                account = User::service_account(namespace, name, "").authenticated();
                &account
            }
        };
        let what = match attributes {
            Attributes::Path { path, verb } => {
                authz::Attributes { verb, path: Some(path), ..authz::Attributes::default() }
            }
            Attributes::Resource { resource, verb } => authz::Attributes {
                verb,
                group: &resource.group,
                version: &resource.version,
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
                path: None,
                field_selector: resource.field_selector.as_deref().unwrap_or_default(),
                label_selector: resource.label_selector.as_deref().unwrap_or_default(),
            },
        };
        let decision = self.rights.authorize(user, &what);
        Decision { allowed: decision.allowed(), reason: decision.reason, error: decision.error }
    }
}
