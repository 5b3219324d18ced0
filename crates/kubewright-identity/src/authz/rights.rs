//! What everybody may do at one moment, by all modes in their order (`k8s.io/apiserver/pkg/authorization/union`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::node::{self, Objects};
use super::rbac::aggregate_in_order;
use super::webhook::Question;
use super::{Attributes, Decision, DecisionKind, Mode, Rbac, Rule};
use crate::authn::{SYSTEM_MASTERS, User};

/// The rights of one moment. Asking for them waits for nobody: what only a webhook knows is told by
/// [`Authorizer::resolve`](super::Authorizer::resolve), which asks it between two attempts.
pub struct Rights {
    rbac: Arc<Rbac>,
    modes: Arc<[Mode]>,
    objects: Option<Box<dyn Objects>>,
    webhook: Mutex<WebhookDecisions>,
}

/// What webhooks were asked, and what one is yet to be asked; each by its place among the modes.
#[derive(Debug, Default)]
struct WebhookDecisions {
    answers: BTreeMap<(usize, Question), Decision>,
    missing: Option<(usize, Question)>,
}

/// All rules that somebody holds in a namespace.
#[derive(Debug, Default)]
pub(crate) struct Held<'a> {
    pub rules: Vec<Cow<'a, Rule>>,
    /// There are rights beside these rules.
    pub incomplete: bool,
    pub errors: Vec<String>,
}

impl Rights {
    pub(super) fn new(rbac: Arc<Rbac>, modes: Arc<[Mode]>, objects: Option<Box<dyn Objects>>) -> Self {
        Self { rbac, modes, objects, webhook: Mutex::default() }
    }

    /// The roles and bindings, whether they are a mode or not: what guards them against their own users looks at them.
    #[must_use]
    pub fn rbac(&self) -> &Rbac {
        &self.rbac
    }

    /// May `user` do that? Members of `system:masters` may do everything, whatever the modes say.
    #[must_use]
    pub fn authorize(&self, user: &User, what: &Attributes<'_>) -> Decision {
        if user.is_in(SYSTEM_MASTERS) {
            return Decision::allow("");
        }
        if self.modes.len() == 1 {
            return self.ask(0, user, what);
        }
        let mut reasons: Vec<String> = Vec::new();
        let mut errors: Vec<String> = Vec::new();
        for index in 0..self.modes.len() {
            let decision = self.ask(index, user, what);
            if decision.verdict != DecisionKind::NoOpinion {
                return decision;
            }
            reasons.extend(Some(decision.reason).filter(|reason| !reason.is_empty()));
            errors.extend(decision.error);
        }
        let error = (!errors.is_empty()).then(|| aggregate_in_order(&errors));
        Decision { error, ..Decision::no_opinion(reasons.join("\n")) }
    }

    /// What the mode at this place says.
    fn ask(&self, index: usize, user: &User, what: &Attributes<'_>) -> Decision {
        match &self.modes[index] {
            Mode::AlwaysAllow => Decision::allow(""),
            Mode::AlwaysDeny => Decision::no_opinion("Everything is forbidden."),
            Mode::Abac(policies) => policies.decide(user, what),
            Mode::Rbac => self.rbac.decide(user, what.namespace, &what.action()),
            Mode::Node => match &self.objects {
                Some(objects) => node::decide(&**objects, user, what),
                None => Decision::no_opinion(""),
            },
            Mode::Webhook(reviewer) => {
                let question = match reviewer.question(user, what) {
                    Ok(question) => (index, question),
                    Err(decision) => return decision,
                };
                let mut webhook = self.webhook.lock();
                if let Some(answer) = webhook.answers.get(&question) {
                    return answer.clone();
                }
                // The first one that was not asked may decide: those after it wait.
                webhook.missing.get_or_insert(question);
                Decision::failed("the authorization webhook cannot be asked here")
            }
        }
    }

    /// The question that only a webhook can answer and that was not asked yet, and the place of the webhook among the modes.
    pub(super) fn missing(&self) -> Option<(usize, Question)> {
        self.webhook.lock().missing.take()
    }

    /// What a webhook said.
    pub(super) fn learn(&self, question: (usize, Question), answer: Decision) {
        self.webhook.lock().answers.insert(question, answer);
    }

    /// All rules that `user` holds in a namespace by modes that can tell.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> Held<'_> {
        let mut held = Held::default();
        for mode in &*self.modes {
            match mode {
                Mode::AlwaysAllow => held.rules.extend(Rule::everything().map(Cow::Owned)),
                Mode::AlwaysDeny => {}
                Mode::Abac(policies) => {
                    held.rules.extend(policies.rules(user, namespace).into_iter().map(Cow::Owned));
                }
                Mode::Rbac => {
                    let (rules, missing) = self.rbac.rules_for(user, namespace);
                    held.rules.extend(rules.into_iter().map(Cow::Borrowed));
                    held.errors.extend(missing.iter().map(|role| role.describe("")));
                }
                Mode::Node if node::name(user).is_some() => {
                    held.incomplete = true;
                    held.errors.push("node authorizer does not support user rule resolution".to_owned());
                }
                Mode::Node => {}
                Mode::Webhook(_) => {
                    held.incomplete = true;
                    held.errors.push("webhook authorizer does not support user rule resolution".to_owned());
                }
            }
        }
        held
    }
}

impl From<Rbac> for Rights {
    /// What roles alone allow.
    fn from(rbac: Rbac) -> Self {
        Self::new(Arc::new(rbac), Arc::new([Mode::Rbac]), None)
    }
}

impl std::fmt::Debug for Rights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rights").field("modes", &self.modes).finish_non_exhaustive()
    }
}
