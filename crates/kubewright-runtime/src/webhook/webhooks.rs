//! All webhooks of an operator.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Authenticator, Webhook,
    authentication::DynAuthenticator,
    conversion::{Conversion, DynConversion},
};
use crate::{Error, Object, rbac::Rights};

/// The webhooks of an operator: what is served under which path, and what the cluster is to be told of it.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::webhook::{Validator, Webhook, Webhooks};
/// # struct Checks;
/// # impl Validator<ConfigMap> for Checks {}
/// let webhooks = Webhooks::new("my-operator").add(Webhook::validating::<ConfigMap>(Checks));
/// ```
#[derive(Clone, Default)]
pub struct Webhooks {
    pub(crate) operator: String,
    pub(crate) admission: Vec<Webhook>,
    pub(crate) conversions: Vec<Arc<dyn DynConversion>>,
    pub(super) authenticators: Vec<(String, Arc<dyn DynAuthenticator>)>,
    pub(crate) rights: Rights,
}

impl Webhooks {
    /// None yet, of the operator of this name. Its configurations in the cluster have the names `<operator>-mutating` and
    /// `<operator>-validating`.
    pub fn new(operator: impl Into<String>) -> Self {
        Self { operator: operator.into(), ..Self::default() }
    }

    /// These and one more.
    #[allow(clippy::should_implement_trait, reason = "the same word as in Manager::add")]
    #[must_use]
    pub fn add(mut self, webhook: Webhook) -> Self {
        self.admission.push(webhook);
        self
    }

    /// And the conversion of a kind between its versions, at `/convert`.
    #[must_use]
    pub fn convert<H: Object>(mut self, conversion: Conversion<H>) -> Self {
        self.conversions.push(Arc::new(conversion));
        self
    }

    /// And says at this path who has a bearer token. The API server has to be told of it by its own flags: nothing in the cluster leads there.
    #[must_use]
    pub fn authenticate(mut self, path: &str, authenticator: impl Authenticator) -> Self {
        self.authenticators.push((path.to_owned(), Arc::new(authenticator)));
        self
    }

    /// Rights that handlers take beside those to the kinds that they [read](Webhook::reads): what they ask the API server for by themselves.
    #[must_use]
    pub fn may(mut self, declare: impl FnOnce(&mut Rights) -> &mut Rights) -> Self {
        declare(&mut self.rights);
        self
    }

    /// These of the operator of this name.
    #[cfg(feature = "command")]
    pub(crate) fn of_operator(self, operator: &str) -> Self {
        Self { operator: operator.to_owned(), ..self }
    }

    pub(crate) fn mutating_name(&self) -> String {
        format!("{}-mutating", self.operator)
    }

    pub(crate) fn validating_name(&self) -> String {
        format!("{}-validating", self.operator)
    }

    /// # Errors
    /// [`Error::Misconfigured`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut mistakes: Vec<String> = self.admission.iter().flat_map(Webhook::mistakes).collect();
        mistakes.extend(self.conversions.iter().flat_map(|conversion| conversion.mistakes()));
        let mut paths = BTreeMap::new();
        let (mut names, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        for webhook in &self.admission {
            *paths.entry(&*webhook.path).or_insert(0) += 1;
            if !names.insert(&webhook.name) {
                mistakes.push(format!("two webhooks are named {}", webhook.name));
            }
        }
        for (path, _) in &self.authenticators {
            *paths.entry(&**path).or_insert(0) += 1;
            mistakes.extend(super::declaration::mistake_in_path(path));
        }
        if !self.conversions.is_empty() {
            *paths.entry(super::conversion::PATH).or_insert(0) += 1;
        }
        for (path, _) in paths.iter().filter(|(_, count)| **count > 1) {
            mistakes.push(format!("two webhooks are served at {path}; give one another path with `at`"));
        }
        for conversion in &self.conversions {
            if !kinds.insert(conversion.definition()) {
                mistakes.push(format!("{} is converted twice", conversion.definition()));
            }
        }
        if self.operator.is_empty() {
            mistakes.push("the operator has no name".to_owned());
        }
        if self.admission.is_empty() && self.conversions.is_empty() && self.authenticators.is_empty() {
            mistakes.push("there is nothing to serve".to_owned());
        }
        match mistakes.is_empty() {
            true => Ok(()),
            false => Err(Error::Misconfigured(mistakes.join("; "))),
        }
    }
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let conversions: Vec<_> = self.conversions.iter().map(|one| one.definition()).collect();
        f.debug_struct("Webhooks")
            .field("operator", &self.operator)
            .field("admission", &self.admission)
            .field("conversions", &conversions)
            .field("authenticators", &self.authenticators.iter().map(|(path, _)| path).collect::<Vec<_>>())
            .finish()
    }
}
