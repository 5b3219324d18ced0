//! A `Stage` of kwok (`kwok.x-k8s.io/v1alpha1`): which objects it is for, when, and what happens to them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kubewright_meta::duration;
use serde::Deserialize;
use serde_json::Value;

use super::jq::Query;
use super::template::Template;

/// A stage that can be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) name: String,
    /// `Pod` or `Node`.
    pub(super) kind: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    requirements: Vec<Requirement>,
    weight: u64,
    weight_from: Option<Query>,
    delay: Delay,
    pub(super) next: Next,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Delay {
    duration: Duration,
    duration_from: Option<Query>,
    jitter: Option<Duration>,
    jitter_from: Option<Query>,
}

/// What happens to an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Next {
    pub(super) event: Option<StageEvent>,
    pub(super) finalizers: Finalizers,
    pub(super) delete: bool,
    pub(super) patches: Vec<Patch>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct StageEvent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Finalizers {
    add: Vec<String>,
    remove: Vec<String>,
    empty: bool,
}

/// A strategic merge patch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Patch {
    pub(super) subresource: Option<String>,
    /// The field that the template makes; the whole object when empty.
    pub(super) root: String,
    pub(super) template: Template,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    query: Query,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Stage {
    /// Reads `spec` of the stage called `name`.
    ///
    /// # Errors
    /// What it asks for that is not known here: nothing of a stage is left out silently.
    pub(super) fn read(name: &str, spec: &Value) -> Result<Self, String> {
        let raw: Raw = kubewright_objects::from_value(spec).map_err(|error| error.to_string())?;
        let kind = raw.resource_ref.kind;
        let group = raw.resource_ref.api_group.unwrap_or_else(|| "v1".into());
        if group != "v1" || !matches!(kind.as_str(), "Pod" | "Node") {
            return Err(format!("resourceRef {group}/{kind} is not supported: only v1/Pod and v1/Node are"));
        }
        if !raw.steps.is_null() {
            return Err("steps are not supported: use next".into());
        }
        let selector = raw.selector.unwrap_or_default();
        let requirements = selector.match_expressions.into_iter().map(Requirement::read);
        let delay = raw.delay.unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            kind,
            labels: selector.match_labels,
            annotations: selector.match_annotations,
            requirements: requirements.collect::<Result<_, _>>()?,
            weight: raw.weight,
            weight_from: raw.weight_from.map(RawFrom::query).transpose()?,
            delay: Delay {
                duration: Duration::from_millis(delay.duration_milliseconds.unwrap_or_default()),
                duration_from: delay.duration_from.map(RawFrom::query).transpose()?,
                jitter: delay.jitter_duration_milliseconds.map(Duration::from_millis),
                jitter_from: delay.jitter_duration_from.map(RawFrom::query).transpose()?,
            },
            next: Next::read(raw.next.unwrap_or_default())?,
        })
    }

    /// Whether the stage is for this object as it is now.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let has = |of: &str, wanted: &BTreeMap<String, String>| {
            let all = &object["metadata"][of];
            wanted.iter().all(|(name, value)| all.get(name).and_then(Value::as_str) == Some(value))
        };
        has("labels", &self.labels)
            && has("annotations", &self.annotations)
            && self.requirements.iter().all(|requirement| requirement.holds(object))
    }

    /// How likely the stage is among others that match.
    pub(super) fn weight(&self, object: &Value) -> u64 {
        let said = self.weight_from.as_ref().and_then(|query| {
            query.run(object).into_iter().find_map(|value| match value {
                Value::Number(number) => number.as_u64(),
                Value::String(text) => text.parse().ok(),
                _ => None,
            })
        });
        said.unwrap_or(self.weight)
    }

    /// How long it is until the stage; `dice` (0 to 1) decides within the jitter. The jitter is a second duration: the
    /// stage comes between both, or at the jitter when that is the shorter.
    pub(super) fn delay(&self, object: &Value, now: Timestamp, dice: f64) -> Duration {
        let said = |query: &Option<Query>| query.as_ref().and_then(|query| duration_from(query, object, now));
        let duration = said(&self.delay.duration_from).unwrap_or(self.delay.duration);
        match said(&self.delay.jitter_from).or(self.delay.jitter) {
            Some(jitter) if jitter < duration => jitter,
            Some(jitter) => duration + (jitter - duration).mul_f64(dice),
            None => duration,
        }
    }
}

/// A duration, or a time that is still to come.
fn duration_from(query: &Query, object: &Value, now: Timestamp) -> Option<Duration> {
    let text = query.run(object).into_iter().find_map(Value::as_str)?;
    match text.parse::<Timestamp>() {
        Ok(time) => Some(Duration::try_from(time.duration_since(now)).unwrap_or_default()),
        Err(_) => duration::parse_positive(text),
    }
}

impl Requirement {
    fn read(raw: RawExpression) -> Result<Self, String> {
        let raw = match (raw.jq, raw.cel) {
            (Some(jq), None) => {
                RawExpression { key: jq.key, operator: jq.operator, values: jq.values, ..raw_none() }
            }
            (None, None) => RawExpression { jq: None, cel: None, ..raw },
            _ => return Err("matchExpressions: cel is not supported".into()),
        };
        let query = Query::parse(&raw.key).map_err(|error| format!("key {:?}: {error}", raw.key))?;
        let operator = match (raw.operator.as_str(), raw.values) {
            ("In", values) if !values.is_empty() => Operator::In(values),
            ("NotIn", values) if !values.is_empty() => Operator::NotIn(values),
            ("Exists", values) if values.is_empty() => Operator::Exists,
            ("DoesNotExist", values) if values.is_empty() => Operator::DoesNotExist,
            (operator, _) => return Err(format!("operator {operator:?} is unknown or has wrong values")),
        };
        Ok(Self { query, operator })
    }

    fn holds(&self, object: &Value) -> bool {
        let found = self.query.run(object);
        let has = |values: &[String]| {
            found.iter().any(|value| match value {
                Value::String(text) => values.contains(text),
                Value::Bool(_) | Value::Number(_) => values.contains(&value.to_string()),
                _ => false,
            })
        };
        match &self.operator {
            Operator::In(values) => has(values),
            Operator::NotIn(values) => !has(values),
            Operator::Exists => found.iter().any(|value| !value.is_null()),
            Operator::DoesNotExist => found.iter().all(|value| value.is_null()),
        }
    }
}

impl Next {
    fn read(raw: RawNext) -> Result<Self, String> {
        let mut patches = Vec::new();
        if !raw.status_template.is_empty() {
            patches.push(Patch {
                subresource: Some(raw.status_subresource.unwrap_or_else(|| "status".into())),
                root: "status".into(),
                template: Template::parse(&raw.status_template)?,
            });
        }
        for patch in raw.patches {
            if patch.kind.as_deref().is_some_and(|kind| kind != "strategic") || patch.impersonation.is_some()
            {
                return Err("only strategic patches without impersonation are supported".into());
            }
            patches.push(Patch {
                subresource: patch.subresource.filter(|name| !name.is_empty()),
                root: patch.root,
                template: Template::parse(&patch.template)?,
            });
        }
        let known = |patch: &Patch| patch.subresource.as_deref().is_none_or(|name| name == "status");
        if !patches.iter().all(known) || raw.status_patch_as.is_some() {
            return Err("only status can be patched besides the object, without impersonation".into());
        }
        let finalizers = raw.finalizers.unwrap_or_default();
        let values = |items: Vec<RawItem>| items.into_iter().map(|item| item.value).collect();
        Ok(Self {
            event: raw.event,
            finalizers: Finalizers {
                add: values(finalizers.add),
                remove: values(finalizers.remove),
                empty: finalizers.empty,
            },
            delete: raw.delete,
            patches,
        })
    }
}

impl Finalizers {
    /// The finalizers of an object after the stage; `None` when they stay as they are.
    pub(super) fn after(&self, before: &[String]) -> Option<Vec<String>> {
        let stays = |name: &&String| !self.empty && !self.remove.contains(name);
        let mut after: Vec<String> = before.iter().filter(stays).cloned().collect();
        after.extend(self.add.iter().filter(|name| !after.contains(name)).cloned().collect::<Vec<_>>());
        (after != before).then_some(after)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    resource_ref: RawRef,
    selector: Option<RawSelector>,
    #[serde(default)]
    weight: u64,
    weight_from: Option<RawFrom>,
    delay: Option<RawDelay>,
    next: Option<RawNext>,
    #[serde(default)]
    steps: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRef {
    api_group: Option<String>,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSelector {
    match_labels: BTreeMap<String, String>,
    match_annotations: BTreeMap<String, String>,
    match_expressions: Vec<RawExpression>,
}

#[derive(Deserialize)]
struct RawExpression {
    #[serde(default)]
    key: String,
    #[serde(default)]
    operator: String,
    #[serde(default)]
    values: Vec<String>,
    jq: Option<RawJq>,
    cel: Option<Value>,
}

fn raw_none() -> RawExpression {
    RawExpression { key: String::new(), operator: String::new(), values: Vec::new(), jq: None, cel: None }
}

#[derive(Deserialize)]
struct RawJq {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawFrom {
    #[serde(default)]
    expression_from: String,
    jq: Option<RawFromJq>,
    cel: Option<Value>,
}

#[derive(Deserialize)]
struct RawFromJq {
    expression: String,
}

impl RawFrom {
    fn query(self) -> Result<Query, String> {
        if self.cel.is_some() {
            return Err("expressions in cel are not supported".into());
        }
        Query::parse(&self.jq.map_or(self.expression_from, |jq| jq.expression))
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawDelay {
    duration_milliseconds: Option<u64>,
    duration_from: Option<RawFrom>,
    jitter_duration_milliseconds: Option<u64>,
    jitter_duration_from: Option<RawFrom>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawNext {
    event: Option<StageEvent>,
    finalizers: Option<RawFinalizers>,
    delete: bool,
    patches: Vec<RawPatch>,
    status_template: String,
    status_subresource: Option<String>,
    status_patch_as: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawFinalizers {
    add: Vec<RawItem>,
    remove: Vec<RawItem>,
    empty: bool,
}

#[derive(Deserialize)]
struct RawItem {
    value: String,
}

#[derive(Deserialize)]
struct RawPatch {
    subresource: Option<String>,
    #[serde(default)]
    root: String,
    #[serde(default)]
    template: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    impersonation: Option<Value>,
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;

    fn stage(more: &Value) -> Result<Stage, String> {
        let mut spec = json!({"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "next": {}});
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        Stage::read("s", &spec)
    }

    #[test]
    fn a_stage_is_for_those_that_meet_all_its_requirements() {
        let stage = stage(&json!({"selector": {"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
            {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
            {"key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status", "operator": "NotIn", "values": ["True"]},
        ]}}))
        .expect("a stage");
        let pod = |phase: &str, app: &str| json!({"metadata": {"labels": {"app": app}}, "status": {"phase": phase}});
        assert!(stage.matches(&pod("Pending", "web")));
        assert!(!stage.matches(&pod("Running", "web")));
        assert!(!stage.matches(&pod("Pending", "db")));
        let mut ready = pod("Pending", "web");
        ready["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        assert!(!stage.matches(&ready));
    }

    #[test]
    fn delays_come_from_the_stage_or_the_object() {
        let stage =
            stage(&json!({"delay": {"durationMilliseconds": 1000, "jitterDurationMilliseconds": 5000,
            "durationFrom": {"expressionFrom": ".metadata.annotations[\"delay\"]"}}}))
            .expect("a stage");
        let plain = json!({"metadata": {}});
        assert_eq!(stage.delay(&plain, NOW, 0.0), Duration::from_secs(1));
        assert_eq!(stage.delay(&plain, NOW, 0.5), Duration::from_secs(3));
        let said = json!({"metadata": {"annotations": {"delay": "10s"}}});
        assert_eq!(stage.delay(&said, NOW, 0.5), Duration::from_secs(5), "the jitter is the shorter");
        let until =
            json!({"metadata": {"annotations": {"delay": (NOW + Duration::from_secs(2)).to_string()}}});
        assert_eq!(stage.delay(&until, NOW, 0.0), Duration::from_secs(2));
    }

    #[test]
    fn finalizers_come_and_go() {
        let stage =
            stage(&json!({"next": {"finalizers": {"add": [{"value": "a"}], "remove": [{"value": "b"}]}}}))
                .expect("a stage");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(stage.next.finalizers.after(&names(&["b", "c"])), Some(names(&["c", "a"])));
        assert_eq!(stage.next.finalizers.after(&names(&["a"])), None);
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (more, message) in [
            (json!({"resourceRef": {"kind": "Service"}}), "resourceRef v1/Service is not supported"),
            (json!({"steps": [{"delete": true}]}), "steps are not supported"),
            (
                json!({"selector": {"matchExpressions": [{"cel": {"expression": "true"}}]}}),
                "cel is not supported",
            ),
            (json!({"next": {"statusTemplate": "{{ end }}"}}), "without a beginning"),
            (json!({"next": {"patches": [{"type": "json", "template": "[]"}]}}), "only strategic patches"),
        ] {
            let error = stage(&more).expect_err(message);
            assert!(error.contains(message), "{error}");
        }
    }
}
