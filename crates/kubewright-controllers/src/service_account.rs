//! The service account controller: every namespace has an account `default`, for pods that name none
//! (`pkg/controller/serviceaccount/serviceaccounts_controller.go`).

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Predicate, Reconciler};

use crate::{is_active_namespace, is_namespace_terminating};

/// The account of pods that name none.
const DEFAULT: &str = "default";

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    Controller::new("serviceaccount-controller", DefaultAccount)
        .for_kind::<Namespace>()
        .watches(|account: &ServiceAccount| {
            account.metadata.namespace.iter().map(Key::cluster_scoped).collect()
        })
        .predicate(Predicate::of(|event: &kubewright_runtime::Event<'_, ServiceAccount>| {
            event.object().metadata.name.as_deref() == Some(DEFAULT)
        }))
}

struct DefaultAccount;

impl Reconciler for DefaultAccount {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(namespace) = ctx.get::<Namespace>(key) else { return Ok(Outcome::Done) };
        let account = ctx.get::<ServiceAccount>(&Key::namespaced(&key.name, DEFAULT));
        let Some(missing) = plan(&namespace, account.as_deref()) else { return Ok(Outcome::Done) };
        match ctx.create(&missing).await {
            Err(error) if error.is_already_exists() || is_namespace_terminating(&error) => Ok(Outcome::Done),
            created => created.map(|_| Outcome::Done),
        }
    }
}

/// The account that `namespace` lacks.
fn plan(namespace: &Namespace, account: Option<&ServiceAccount>) -> Option<ServiceAccount> {
    if account.is_some() || !is_active_namespace(namespace) {
        return None;
    }
    let mut missing = ServiceAccount::default();
    missing.metadata.name = Some(DEFAULT.into());
    missing.metadata.namespace = namespace.metadata.name.clone();
    Some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::namespace;

    #[test]
    fn an_active_namespace_without_the_account_gets_it() {
        let missing = plan(&namespace("Active"), None).expect("an account");
        assert_eq!(Key::of(&missing), Key::namespaced("shop", "default"));
        assert_eq!(plan(&namespace("Active"), Some(&missing)), None);
    }

    #[test]
    fn a_terminating_namespace_gets_none() {
        assert_eq!(plan(&namespace("Terminating"), None), None);
    }
}
