//! A server that is asked who may do what (`k8s.io/apiserver/plugin/pkg/authorizer/webhook`).

mod conditions;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubewright_meta::selector::{LabelSelector, field_terms};
use kubewright_world::Clock;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Attributes, Decision, DecisionKind, null_is_default};
use crate::authn::User;
use crate::webhook::{Client, Remote};

pub use conditions::{MatchCondition, MatchConditions};

/// How long an answer may take, unless it is said.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many answers are remembered.
const MAX_REMEMBERED: usize = 8192;
/// What is larger is asked again each time.
const MAX_ATTRIBUTES: usize = 10_000;

/// The version of the reviews that a server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReviewVersion {
    /// `v1`
    V1,
    /// `v1beta1`, in which the member `groups` of a SubjectAccessReview is called `group`.
    V1Beta1,
}

impl ReviewVersion {
    /// The version of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// The version, as the flag and the review say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// What is decided where a server cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Others may allow it.
    #[default]
    NoOpinion,
    /// It is forbidden.
    Deny,
}

impl FailurePolicy {
    fn decision(self, error: String) -> Decision {
        match self {
            Self::NoOpinion => Decision::failed(error),
            Self::Deny => Decision { verdict: DecisionKind::Deny, ..Decision::failed(error) },
        }
    }
}

/// A version that no server is asked in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported webhook authorizer version {0:?}, supported versions are \"v1\", \"v1beta1\"")]
pub struct UnsupportedVersion(pub String);

/// A server that is asked with SubjectAccessReviews, and what it has said.
pub struct Reviewer {
    remote: Remote,
    version: ReviewVersion,
    /// How long an answer is remembered, if it allows and if it does not.
    lifetimes: (Duration, Duration),
    /// How long an answer may take.
    timeout: Duration,
    on_failure: FailurePolicy,
    conditions: MatchConditions,
    remembered: Mutex<BTreeMap<Question, (Timestamp, Decision)>>,
}

/// A question: the spec of a SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    spec: String,
    is_remembered: bool,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default, deserialize_with = "null_is_default")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    allowed: bool,
    denied: bool,
    #[serde(deserialize_with = "null_is_default")]
    reason: String,
}

impl Reviewer {
    /// Asks this server (`--authorization-webhook-config-file`) in this version. An answer that allows is remembered for five
    /// minutes, one that does not for half a minute.
    #[must_use]
    pub fn new(remote: Remote, version: ReviewVersion) -> Self {
        let lifetimes = (Duration::from_secs(300), Duration::from_secs(30));
        Self {
            remote,
            version,
            lifetimes,
            timeout: TIMEOUT,
            on_failure: FailurePolicy::default(),
            conditions: MatchConditions::default(),
            remembered: Mutex::default(),
        }
    }

    /// How long an answer may take. Default: 30 seconds.
    #[must_use]
    pub fn timing_out(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// What is decided where the server cannot be asked, or the conditions fail. Default: [`FailurePolicy::NoOpinion`].
    #[must_use]
    pub fn on_failure(self, on_failure: FailurePolicy) -> Self {
        Self { on_failure, ..self }
    }

    /// Asks only about requests for which all these conditions hold, and has no opinion of others. Default: about all.
    #[must_use]
    pub fn matching(self, conditions: MatchConditions) -> Self {
        Self { conditions, ..self }
    }

    /// How long answers are remembered, in the cluster's time (`--authorization-webhook-cache-authorized-ttl` and
    /// `-unauthorized-ttl`). Zero: not at all.
    #[must_use]
    pub fn remembering(mut self, allowed: Duration, not_allowed: Duration) -> Self {
        self.lifetimes = (allowed, not_allowed);
        self
    }

    /// What the server is asked about a request.
    ///
    /// # Errors
    /// The decision, where it is not asked.
    pub(super) fn question(&self, user: &User, what: &Attributes<'_>) -> Result<Question, Decision> {
        match self.conditions.hold(user, what) {
            Ok(true) => Ok(Question::new(self.version, user, what)),
            Ok(false) => Err(Decision::no_opinion("")),
            Err(why) => Err(self.on_failure.decision(why)),
        }
    }

    /// The answer to a question, remembered or new.
    pub(super) async fn ask(&self, client: &Client, clock: Clock, question: &Question) -> Decision {
        let now = clock.now();
        if let Some((until, known)) = self.remembered.lock().get(question)
            && now < *until
        {
            return known.clone();
        }
        let body = format!(
            r#"{{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/{}","metadata":{{}},"spec":{},"status":{{"allowed":false}}}}"#,
            self.version.name(),
            question.spec
        );
        let answer = match self.remote.post(client, body.into(), self.timeout).await {
            Ok(answer) => answer,
            Err(why) => {
                tracing::error!(%why, "the authorization webhook gave no answer");
                return self.on_failure.decision(why.to_string());
            }
        };
        match serde_json::from_slice::<Answer>(&answer) {
            Ok(answer) => {
                let decision = answer.status.decision();
                self.remember(question, &decision, answer.status.allowed, now);
                decision
            }
            Err(why) => self.on_failure.decision(why.to_string()),
        }
    }

    fn remember(&self, question: &Question, decision: &Decision, allowed: bool, now: Timestamp) {
        let lifetime = if allowed { self.lifetimes.0 } else { self.lifetimes.1 };
        if !question.is_remembered || lifetime.is_zero() {
            return;
        }
        let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
        let until = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let mut remembered = self.remembered.lock();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(question.clone(), (until, decision.clone()));
    }
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl Status {
    fn decision(&self) -> Decision {
        let error = (self.denied && self.allowed)
            .then(|| "webhook subject access review returned both allow and deny response".to_owned());
        let verdict = match (self.denied, self.allowed) {
            (true, _) => DecisionKind::Deny,
            (false, true) => DecisionKind::Allow,
            (false, false) => DecisionKind::NoOpinion,
        };
        Decision { verdict, reason: self.reason.clone(), error }
    }
}

impl Question {
    pub(super) fn new(version: ReviewVersion, user: &User, what: &Attributes<'_>) -> Self {
        let mut spec = Map::new();
        let mut tell = |member: &str, value: Value| {
            let empty = match &value {
                Value::String(text) => text.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            if !empty {
                spec.insert(member.to_owned(), value);
            }
        };
        match what.path {
            None => tell("resourceAttributes", resource_attributes(what)),
            Some(path) => tell("nonResourceAttributes", json!({"path": path, "verb": what.verb})),
        }
        tell("user", json!(user.name));
        tell(if version == ReviewVersion::V1 { "groups" } else { "group" }, json!(user.groups));
        tell("extra", json!(user.extra));
        tell("uid", json!(user.uid));
        let texts = [
            what.namespace,
            what.verb,
            what.group,
            what.version,
            what.resource,
            what.subresource,
            what.name,
            what.path.unwrap_or_default(),
        ];
        let is_remembered = texts.iter().map(|text| text.len()).sum::<usize>() < MAX_ATTRIBUTES;
        Self { spec: Value::Object(spec).to_string(), is_remembered }
    }
}

fn resource_attributes(what: &Attributes<'_>) -> Value {
    let texts = [
        ("namespace", what.namespace),
        ("verb", what.verb),
        ("group", what.group),
        ("version", what.version),
        ("resource", what.resource),
        ("subresource", what.subresource),
        ("name", what.name),
    ];
    let told = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut attributes: Map<String, Value> =
        told.map(|(member, text)| (member.to_owned(), text.into())).collect();
    attributes.extend(selectors(what).map(|(member, selector)| (member.to_owned(), selector)));
    Value::Object(attributes)
}

/// The selectors of a list, as a review tells them.
fn selectors(what: &Attributes<'_>) -> impl Iterator<Item = (&'static str, Value)> {
    let fields: Vec<Value> = field_terms(what.field_selector)
        .unwrap_or_default()
        .iter()
        .map(|term| {
            let operator = if term.equal { "In" } else { "NotIn" };
            json!({"key": term.field, "operator": operator, "values": [term.value]})
        })
        .collect();
    let labels = LabelSelector::parse(what.label_selector).unwrap_or_default().requirements();
    let both = [("fieldSelector", fields), ("labelSelector", labels)];
    let told = both.into_iter().filter(|(_, requirements)| !requirements.is_empty());
    told.map(|(member, requirements)| (member, json!({"requirements": requirements})))
}

#[cfg(test)]
pub(super) mod tests;
