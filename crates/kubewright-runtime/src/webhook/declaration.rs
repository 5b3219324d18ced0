//! What a webhook is asked about, and how.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use k8s_openapi::{
    api::admissionregistration::v1::{MatchCondition, RuleWithOperations},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{
    admission::{Defaulter, Defaulting, DynHandler, Handler, Operation, Validating, Validator},
    context::Reading,
};
use crate::Object;

/// How long the API server waits for a webhook that says nothing about it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a webhook may change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Mutating,
    Validating,
}

/// Failure policy: what becomes of a request when the webhook cannot be asked: it is down, too slow, or it panicked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "command", derive(clap::ValueEnum), value(rename_all = "PascalCase"))]
pub enum FailurePolicy {
    /// It is refused. The default.
    #[default]
    Fail,
    /// It goes on without.
    Ignore,
}

/// One webhook: a handler, and what it is asked about.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::webhook::{FailurePolicy, Operation, Validator, Webhook};
/// # struct Checks;
/// # impl Validator<ConfigMap> for Checks {}
/// let webhook = Webhook::validating::<ConfigMap>(Checks)
///     .operations([Operation::Create, Operation::Update, Operation::Delete])
///     .failure_policy(FailurePolicy::Ignore)
///     .timeout(Duration::from_secs(3));
/// assert_eq!(webhook.path(), "/validate--v1-configmap");
/// ```
///
/// Mistakes are an error of [`Server::run`](super::Server::run).
#[derive(Clone)]
pub struct Webhook {
    pub(crate) purpose: Purpose,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) handler: Arc<dyn DynHandler>,
    pub(crate) rules: Vec<RuleWithOperations>,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) timeout: Duration,
    pub(crate) namespaces: Option<LabelSelector>,
    pub(crate) spares_home: bool,
    pub(crate) objects: Option<LabelSelector>,
    pub(crate) conditions: Vec<MatchCondition>,
    pub(crate) exact: bool,
    pub(crate) again_if_needed: bool,
    pub(crate) effects: bool,
    pub(crate) reads: Vec<Reading>,
}

impl Webhook {
    /// Fills in what users leave out, of objects that are created or changed. Its path is
    /// `/mutate-<group>-<version>-<kind>`, as controller-runtime's.
    pub fn defaulting<K: Object>(defaulter: impl Defaulter<K>) -> Self {
        let handler = Defaulting::<K, _> { defaulter: Arc::new(defaulter), kind: PhantomData };
        Self::of_kind::<K>(Purpose::Mutating, handler)
    }

    /// Checks objects that are created or changed. Its path is `/validate-<group>-<version>-<kind>`.
    pub fn validating<K: Object>(validator: impl Validator<K>) -> Self {
        let handler = Validating::<K, _> { validator: Arc::new(validator), kind: PhantomData };
        Self::of_kind::<K>(Purpose::Validating, handler)
    }

    /// Changes anything. `path` is the webhook's own, `name` has at least three parts (`pods.example.com`); what it is
    /// asked about is told by [`Self::rule`].
    pub fn mutating_with(path: &str, name: &str, handler: impl Handler) -> Self {
        Self::new(Purpose::Mutating, path.to_owned(), name.to_owned(), handler)
    }

    /// Checks anything; else as [`Self::mutating_with`].
    pub fn validating_with(path: &str, name: &str, handler: impl Handler) -> Self {
        Self::new(Purpose::Validating, path.to_owned(), name.to_owned(), handler)
    }

    fn of_kind<K: Object>(purpose: Purpose, handler: impl Handler) -> Self {
        let (group, version) = (K::group(&()), K::version(&()));
        let verb = match purpose {
            Purpose::Mutating => "mutate",
            Purpose::Validating => "validate",
        };
        let kind = K::kind(&()).to_lowercase();
        let path = format!("/{verb}-{}-{version}-{kind}", group.replace('.', "-"));
        let domain = if group.is_empty() { "core" } else { &*group };
        let name = format!("{verb}.{version}.{}.{domain}", K::plural(&()));
        Self::new(purpose, path, name, handler).rule(RuleWithOperations {
            api_groups: Some(vec![group.into_owned()]),
            api_versions: Some(vec![version.into_owned()]),
            resources: Some(vec![K::plural(&()).into_owned()]),
            operations: Some(names([Operation::Create, Operation::Update])),
            scope: None,
        })
    }

    fn new(purpose: Purpose, path: String, name: String, handler: impl Handler) -> Self {
        Self {
            purpose,
            path,
            name,
            handler: Arc::new(handler),
            rules: Vec::new(),
            failure_policy: FailurePolicy::default(),
            timeout: TIMEOUT,
            namespaces: None,
            spares_home: false,
            objects: None,
            conditions: Vec::new(),
            exact: false,
            again_if_needed: false,
            effects: false,
            reads: Vec::new(),
        }
    }

    /// Under which path it is served.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Serves it under another path.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Another name in its configuration, of at least three parts. It is what clients read in refusals.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Which operations it is asked about, by all of its rules.
    #[must_use]
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        let operations = names(operations);
        for rule in &mut self.rules {
            rule.operations = Some(operations.clone());
        }
        self
    }

    /// Something else that it is asked about.
    #[must_use]
    pub fn rule(mut self, rule: RuleWithOperations) -> Self {
        self.rules.push(rule);
        self
    }

    /// What becomes of a request when it cannot be asked.
    #[must_use]
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = policy;
        self
    }

    /// How long the API server waits for its answer: whole seconds from 1 to 30, 10 by default. Its handler is dropped then.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Only objects in namespaces with such labels.
    #[must_use]
    pub fn in_namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespaces = Some(selector);
        self
    }

    /// Nothing in the namespace of the Service that it is behind: the pods that serve it can be replaced while nobody serves it.
    /// For what is asked about pods, or about what makes them.
    #[must_use]
    pub fn sparing_its_own_namespace(mut self) -> Self {
        self.spares_home = true;
        self
    }

    /// Only objects with such labels. Users set labels: this is no protection.
    #[must_use]
    pub fn for_objects(mut self, selector: LabelSelector) -> Self {
        self.objects = Some(selector);
        self
    }

    /// Only requests for which this expression (CEL) is true.
    #[must_use]
    pub fn when(mut self, name: &str, expression: &str) -> Self {
        self.conditions.push(MatchCondition { name: name.to_owned(), expression: expression.to_owned() });
        self
    }

    /// Only requests in exactly the versions that its rules name (`matchPolicy: Exact`). By default requests in other
    /// versions are converted for it.
    #[must_use]
    pub fn exact_versions(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Asks it again when another webhook has changed the object after it (`reinvocationPolicy: IfNeeded`). For mutating
    /// ones.
    #[must_use]
    pub fn again_if_needed(mut self) -> Self {
        self.again_if_needed = true;
        self
    }

    /// It has effects outside of its answer, but none when a request is a [dry run](super::Request::dry_run)
    /// (`sideEffects: NoneOnDryRun`). By default it has none at all.
    #[must_use]
    pub fn with_effects(mut self) -> Self {
        self.effects = true;
        self
    }

    /// Reads objects of another kind from the manager's caches, by [`Request::context`](super::Request::context): the kind is watched as one that
    /// a controller reads, and the handler is not called before it is there. Until then, and as long as the kind is not served,
    /// requests end by the webhook's time-out.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// use kubewright_runtime::{
    ///     Key,
    ///     webhook::{Denied, Request, ValidationResult, Validator, Warnings, Webhook},
    /// };
    ///
    /// struct Open;
    ///
    /// impl Validator<ConfigMap> for Open {
    ///     async fn validate_create(&self, request: &Request, _: &ConfigMap) -> ValidationResult {
    ///         let namespace = request.context()?.get::<Namespace>(&Key::cluster_scoped(&request.namespace));
    ///         match namespace.is_some_and(|namespace| namespace.metadata.labels.is_some()) {
    ///             true => Ok(Warnings::none()),
    ///             false => Err(Denied::forbidden("the namespace has no labels")),
    ///         }
    ///     }
    /// }
    ///
    /// let webhook = Webhook::validating::<ConfigMap>(Open).reads::<Namespace>();
    /// ```
    #[must_use]
    pub fn reads<K: Object>(mut self) -> Self {
        self.reads.push(Reading::of::<K>());
        self
    }

    /// What the API server would refuse of its configuration, and what would never be called.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        mistakes.extend(mistake_in_path(&self.path));
        if self.name.split('.').filter(|part| !part.is_empty()).count() < 3 {
            mistakes
                .push(format!("its name {:?} needs at least three parts, as checks.example.com", self.name));
        }
        if self.rules.is_empty() {
            mistakes.push("it has no rule: it would never be asked".to_owned());
        }
        let seconds = self.timeout.as_secs();
        if self.timeout.subsec_nanos() > 0 || !(1..=30).contains(&seconds) {
            mistakes.push(format!("its timeout is {:?}, not whole seconds from 1 to 30", self.timeout));
        }
        if self.again_if_needed && self.purpose == Purpose::Validating {
            mistakes.push("only a mutating webhook is asked again".to_owned());
        }
        let nothing = |rule: &RuleWithOperations| rule.operations.as_ref().is_none_or(Vec::is_empty);
        if self.rules.iter().any(nothing) {
            mistakes.push("a rule names no operation".to_owned());
        }
        mistakes.into_iter().map(|mistake| format!("webhook {}: {mistake}", self.path)).collect()
    }
}

/// What is wrong with a path, if something is.
pub(super) fn mistake_in_path(path: &str) -> Option<String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
    let is_path = path.starts_with('/') && path.chars().all(good) && !path.contains("//");
    (!is_path).then(|| format!("{path:?} is no path: write /like-this"))
}

fn names(operations: impl IntoIterator<Item = Operation>) -> Vec<String> {
    operations.into_iter().map(|operation| operation.name().to_owned()).collect()
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::NetworkPolicy};

    use super::*;

    struct Yes;
    impl Validator<NetworkPolicy> for Yes {}
    impl Validator<ConfigMap> for Yes {}

    #[test]
    fn paths_are_those_of_controller_runtime() {
        let webhook = Webhook::validating::<NetworkPolicy>(Yes);
        assert_eq!(webhook.path(), "/validate-networking-k8s-io-v1-networkpolicy");
        assert_eq!(webhook.name, "validate.v1.networkpolicies.networking.k8s.io");
        assert_eq!(Webhook::validating::<ConfigMap>(Yes).name, "validate.v1.configmaps.core");
        assert_eq!(webhook.mistakes(), Vec::<String>::new());
    }

    #[test]
    fn what_the_api_server_would_refuse_is_told_before() {
        let odd = Webhook::validating::<ConfigMap>(Yes)
            .at("no//path")
            .named("two.parts")
            .timeout(Duration::from_millis(1500))
            .operations([])
            .again_if_needed();
        assert_eq!(odd.mistakes().len(), 5, "{:?}", odd.mistakes());
        let nothing = Webhook { rules: Vec::new(), ..Webhook::validating::<ConfigMap>(Yes) };
        assert_eq!(
            nothing.mistakes(),
            ["webhook /validate--v1-configmap: it has no rule: it would never be asked"]
        );
    }
}
