//! Authorizers of a file: `AuthorizationConfiguration` (`k8s.io/apiserver/pkg/apis/apiserver`, `validation/validation.go`).

use std::collections::BTreeSet;
use std::time::Duration;

use kubewright_meta::{FieldError, Problem, duration, text};
use serde::Deserialize;

use super::{
    FailurePolicy, MatchCondition, MatchConditions, Mode, Policies, ReviewVersion, Reviewer, null_is_default,
};
use crate::webhook::Remote;

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1alpha1", "v1beta1"];
const KIND: &str = "AuthorizationConfiguration";
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const POLICIES: [&str; 2] = ["NoOpinion", "Deny"];
const CONNECTIONS: [&str; 2] = ["InClusterConfig", "KubeConfigFile"];

/// How long an answer may take, at most.
const LONGEST: Duration = Duration::from_secs(30);
/// The most conditions of a webhook.
const MAX_CONDITIONS: usize = 64;

/// Who decides about requests, in their order, as a file of kube-apiserver's `--authorization-config` says it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Configuration {
    api_version: String,
    kind: String,
    #[serde(deserialize_with = "null_is_default")]
    authorizers: Vec<Authorizer>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Authorizer {
    r#type: String,
    name: String,
    webhook: Option<Webhook>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Webhook {
    #[serde(rename = "authorizedTTL")]
    authorized_ttl: Option<String>,
    cache_authorized_requests: Option<bool>,
    #[serde(rename = "unauthorizedTTL")]
    unauthorized_ttl: Option<String>,
    cache_unauthorized_requests: Option<bool>,
    timeout: Option<String>,
    subject_access_review_version: String,
    match_condition_subject_access_review_version: String,
    failure_policy: String,
    connection_info: Connection,
    #[serde(deserialize_with = "null_is_default")]
    match_conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Connection {
    r#type: String,
    kube_config_file: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Condition {
    expression: String,
}

/// Why a file does not say who decides.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadConfiguration {
    /// It is no YAML or JSON, or has something that nobody knows.
    #[error("{0}")]
    Unreadable(String),
    /// It is something else.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    OtherKind {
        /// What it says to be.
        kind: String,
        /// And in which version.
        api_version: String,
    },
    /// Fields of it are wrong.
    #[error("{}", listed(.0))]
    Invalid(Vec<FieldError>),
}

fn listed(errors: &[FieldError]) -> String {
    let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    match errors.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// What is found wrong, field by field.
#[derive(Default)]
struct Findings(Vec<FieldError>);

impl Findings {
    fn required(&mut self, field: String, detail: &str) {
        self.0.push(FieldError::required(field, detail));
    }

    fn invalid(&mut self, field: String, value: &str, detail: impl Into<String>) {
        self.0.push(FieldError::invalid(field, value, detail));
    }

    /// Whether a value that must be there is one of these.
    fn is_one_of(&mut self, field: String, value: &str, known: &[&'static str]) {
        if value.is_empty() {
            self.required(field, "");
        } else if !known.contains(&value) {
            self.0.push(FieldError::not_supported(field, value, known.iter().copied()));
        }
    }

    /// A time that must be above zero.
    fn time(&mut self, field: String, text: &str, most: Option<Duration>) -> Duration {
        let time = match duration::nanoseconds(text) {
            Ok(nanoseconds) => u64::try_from(nanoseconds).ok().map(Duration::from_nanos),
            Err(why) => {
                self.invalid(field, text, why.to_string());
                return Duration::ZERO;
            }
        };
        match (time, most) {
            (Some(Duration::ZERO), _) => self.required(field, ""),
            (Some(time), None) => return time,
            (Some(time), Some(most)) if time <= most => return time,
            (_, Some(_)) => self.invalid(field, text, "must be > 0s and <= 30s"),
            (None, None) => self.invalid(field, text, "must be > 0s"),
        }
        Duration::ZERO
    }
}

/// The server that a kubeconfig file of this path names.
pub type OpenRemote<'a> = &'a dyn Fn(&str) -> Result<Remote, String>;

impl Configuration {
    /// The configuration in a text, YAML or JSON.
    ///
    /// # Errors
    /// [`BadConfiguration`], without [`BadConfiguration::Invalid`].
    pub fn parse(text: &str) -> Result<Self, BadConfiguration> {
        let read: Self =
            serde_saphyr::from_str(text).map_err(|why| BadConfiguration::Unreadable(why.to_string()))?;
        let (group, version) = read.api_version.split_once('/').unwrap_or(("", &read.api_version));
        if read.kind != KIND || group != GROUP || !VERSIONS.contains(&version) {
            return Err(BadConfiguration::OtherKind { kind: read.kind, api_version: read.api_version });
        }
        Ok(read)
    }

    /// The modes that it says, in their order. `policies`: those of ABAC (`--authorization-policy-file`); `open` reads the files of webhooks.
    ///
    /// # Errors
    /// [`BadConfiguration::Invalid`], with all that is wrong.
    pub fn modes(
        self,
        mut policies: Option<Policies>,
        open: OpenRemote<'_>,
    ) -> Result<Vec<Mode>, BadConfiguration> {
        let mut found = Findings::default();
        if self.authorizers.is_empty() {
            found.required("authorizers".to_owned(), "at least one authorization mode must be defined");
        }
        let (mut types, mut names) = (BTreeSet::new(), BTreeSet::new());
        let mut modes = Vec::new();
        for (index, Authorizer { r#type, name, webhook }) in self.authorizers.into_iter().enumerate() {
            let at = |field: &str| format!("authorizers[{index}].{field}");
            let before = found.0.len();
            found.is_one_of(at("type"), &r#type, &TYPES);
            if found.0.len() > before {
                continue;
            }
            if !types.insert(r#type.clone()) && r#type != "Webhook" {
                found.0.push(FieldError::duplicate(at("type"), r#type));
                continue;
            }
            if name.is_empty() {
                found.required(at("name"), "");
            } else if names.contains(&name) {
                found.0.push(FieldError::duplicate(at("name"), name.clone()));
            } else if let wrong @ [_, ..] = text::subdomain(&name).as_slice() {
                let why = format!("authorizer name is invalid: {}", wrong.join(", "));
                found.invalid(at("name"), &name, why);
            }
            names.insert(name);
            if r#type != "Webhook" && webhook.is_some() {
                found.invalid(at("webhook"), "non-null", "may only be specified when type=Webhook");
            }
            modes.extend(match r#type.as_str() {
                "AlwaysAllow" => Some(Mode::AlwaysAllow),
                "AlwaysDeny" => Some(Mode::AlwaysDeny),
                "Node" => Some(Mode::Node),
                "RBAC" => Some(Mode::Rbac),
                "ABAC" => {
                    let policies = policies.take().map(Mode::Abac);
                    if policies.is_none() {
                        found.invalid(at("type"), "ABAC", "authorization policy file not passed");
                    }
                    policies
                }
                _ => match webhook {
                    Some(webhook) => webhook.reviewer(&at, open, &mut found).map(Box::new).map(Mode::Webhook),
                    None => {
                        found.required(at("webhook"), "required when type=Webhook");
                        None
                    }
                },
            });
        }
        if found.0.is_empty() { Ok(modes) } else { Err(BadConfiguration::Invalid(found.0)) }
    }
}

impl Webhook {
    /// Who is asked; none where something is wrong. `at` is the path of a field of the authorizer: kube-apiserver leaves `webhook` out of it.
    fn reviewer(
        self,
        at: &dyn Fn(&str) -> String,
        open: OpenRemote<'_>,
        found: &mut Findings,
    ) -> Option<Reviewer> {
        let before = found.0.len();
        let timeout = found.time(at("timeout"), self.timeout.as_deref().unwrap_or("0s"), Some(LONGEST));
        let mut lifetime = |field: &str, given: &Option<String>, default: &str, remembers: Option<bool>| {
            let given = given.as_deref().filter(|text| !matches!(*text, "0" | "0s"));
            let lifetime = found.time(at(field), given.unwrap_or(default), None);
            if remembers.unwrap_or(true) { lifetime } else { Duration::ZERO }
        };
        let allowed = lifetime("authorizedTTL", &self.authorized_ttl, "5m", self.cache_authorized_requests);
        let others =
            lifetime("unauthorizedTTL", &self.unauthorized_ttl, "30s", self.cache_unauthorized_requests);
        let version = &self.subject_access_review_version;
        found.is_one_of(at("subjectAccessReviewVersion"), version, &REVIEWS);
        let of_conditions = &self.match_condition_subject_access_review_version;
        let field = at("matchConditionSubjectAccessReviewVersion");
        if of_conditions.is_empty() {
            if !self.match_conditions.is_empty() {
                found.required(field, "required if match conditions are specified");
            }
        } else {
            found.is_one_of(field, of_conditions, &["v1"]);
        }
        found.is_one_of(at("failurePolicy"), &self.failure_policy, &POLICIES);
        let remote = self.connection_info.open(at, open, found);
        let conditions = conditions(&self.match_conditions, at, found);
        let reviewer = Reviewer::new(remote?, ReviewVersion::of_name(version)?)
            .remembering(allowed, others)
            .timing_out(timeout)
            .on_failure(match self.failure_policy.as_str() {
                "Deny" => FailurePolicy::Deny,
                _ => FailurePolicy::NoOpinion,
            })
            .matching(conditions);
        (found.0.len() == before).then_some(reviewer)
    }
}

impl Connection {
    fn open(
        &self,
        at: &dyn Fn(&str) -> String,
        open: OpenRemote<'_>,
        found: &mut Findings,
    ) -> Option<Remote> {
        let field = at("connectionInfo.kubeConfigFile");
        let file = self.kube_config_file.as_deref().unwrap_or_default();
        match self.r#type.as_str() {
            "InClusterConfig" => {
                let why =
                    "not supported: there is no cluster around this server; name a file by KubeConfigFile";
                found.invalid(at("connectionInfo.type"), "InClusterConfig", why);
            }
            "KubeConfigFile" if file.is_empty() => found.required(field, ""),
            "KubeConfigFile" if !file.starts_with('/') => {
                found.invalid(field, file, "must be an absolute path");
            }
            "KubeConfigFile" => match open(file) {
                Ok(remote) => return Some(remote),
                Err(why) => found.invalid(field, file, format!("error loading file: {why}")),
            },
            other => found.is_one_of(at("connectionInfo.type"), other, &CONNECTIONS),
        }
        None
    }
}

fn conditions(given: &[Condition], at: &dyn Fn(&str) -> String, found: &mut Findings) -> MatchConditions {
    let field = |index: usize| at(&format!("matchConditions[{index}].expression"));
    if given.len() > MAX_CONDITIONS {
        found.0.push(FieldError {
            field: at("matchConditions"),
            problem: Problem::TooMany(given.len()),
            detail: format!("must have at most {MAX_CONDITIONS} items"),
        });
        return MatchConditions::default();
    }
    let mut seen = BTreeSet::new();
    let mut compiled = Vec::new();
    for (index, Condition { expression }) in given.iter().enumerate() {
        if expression.trim().is_empty() {
            found.required(field(index), "");
        } else if !seen.insert(expression) {
            found.0.push(FieldError::duplicate(field(index), expression.clone()));
        } else {
            match MatchCondition::compile(expression) {
                Ok(condition) => compiled.push(condition),
                Err(why) => found.invalid(field(index), expression, why),
            }
        }
    }
    compiled.into_iter().collect()
}

#[cfg(test)]
mod tests;
