//! Rules and selectors together: what a webhook, a policy or a binding says it is about.

use std::sync::Arc;

use kubewright_kinds::Kind;
use kubewright_meta::ApiError;
use kubewright_meta::selector::LabelSelector;
use serde_json::Value;

use super::attributes::{Attributes, has_labels};
use super::rule::Rule;

/// Which requests something is about.
#[derive(Debug)]
pub(in crate::admission) struct Constraints {
    /// Absent where every resource is meant.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    /// `matchPolicy: Equivalent`: a rule about another version of the resource counts too.
    equivalent: bool,
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
}

impl Constraints {
    /// Of a webhook: without a rule it is about nothing.
    pub(in crate::admission) fn of_webhook(hook: &Value) -> Self {
        Self { rules: Some(Rule::list(&hook["rules"])), excluded: Vec::new(), ..Self::common(hook) }
    }

    /// Of a policy or binding (`matchConstraints`, `matchResources`): without a rule it is about everything.
    pub(in crate::admission) fn of_resources(resources: &Value) -> Self {
        let rules = Rule::list(&resources["resourceRules"]);
        Self {
            rules: (!rules.is_empty()).then_some(rules),
            excluded: Rule::list(&resources["excludeResourceRules"]),
            ..Self::common(resources)
        }
    }

    fn common(of: &Value) -> Self {
        Self {
            rules: None,
            excluded: Vec::new(),
            equivalent: of["matchPolicy"] == "Equivalent",
            namespaces: LabelSelector::from_object(&of["namespaceSelector"]),
            objects: LabelSelector::from_object(&of["objectSelector"]),
        }
    }

    /// The version of the resource in which it is about the request; `None` when it is not.
    ///
    /// # Errors
    /// When a selector makes no sense, or the namespace is not there to be selected.
    pub(crate) fn matches(&self, attributes: &Attributes<'_>) -> Result<Option<Arc<Kind>>, ApiError> {
        if self.find(&self.excluded, attributes).is_some() {
            return Ok(None);
        }
        let matched = match &self.rules {
            None => Some(Arc::clone(attributes.review.call.kind)),
            Some(rules) => self.find(rules, attributes),
        };
        let Some(matched) = matched else { return Ok(None) };
        let in_namespace = self.selects_namespace(attributes);
        if matches!(in_namespace, Ok(false)) || matches!(self.selects_object(attributes), Ok(false)) {
            return Ok(None);
        }
        in_namespace?;
        self.selects_object(attributes)?;
        Ok(Some(matched))
    }

    /// The version of the request's resource that one of the rules is about: its own first.
    fn find(&self, rules: &[Rule], attributes: &Attributes<'_>) -> Option<Arc<Kind>> {
        let own = attributes.review.call.kind;
        if rules.iter().any(|rule| rule.matches(attributes, own)) {
            return Some(Arc::clone(own));
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        let kinds = attributes.review.objects.kinds();
        let others =
            || kinds.iter().filter(|kind| kind.collection == own.collection && !Arc::ptr_eq(kind, own));
        rules.iter().find_map(|rule| others().find(|kind| rule.matches(attributes, kind)).cloned())
    }

    /// What lives in no namespace, and is none, is never left out by its namespace.
    fn selects_namespace(&self, attributes: &Attributes<'_>) -> Result<bool, ApiError> {
        if attributes.namespace.is_empty() && !attributes.is_namespace() {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(|why| ApiError::internal(why))?;
        Ok(selector.is_everything() || attributes.has_namespace(selector)?)
    }

    /// The new or the old object is enough.
    fn selects_object(&self, attributes: &Attributes<'_>) -> Result<bool, ApiError> {
        let selector = self.objects.as_ref().map_err(|why| ApiError::internal(why))?;
        let selected = |object: Option<&Value>| object.is_some_and(|object| has_labels(selector, object));
        Ok(selector.is_everything() || selected(attributes.object) || selected(attributes.review.old))
    }
}
