//! One request as expressions see it, and the budget that they share.

use std::borrow::Cow;

use kubewright_cel::limits::PER_CALL_LIMIT;
use kubewright_cel::{Bindings, Program, ResourceAttributes, Value as Cel};
use kubewright_identity::authz::Rights;
use kubewright_kinds::Kind;
use kubewright_kinds::expressions::Expression;
use kubewright_meta::ApiError;
use serde_json::{Map, Value};

use super::super::matching::Attributes;
use super::authorizer::UserAuthorizer;
use super::request::request_value;

/// What the variables of expressions stand for.
pub(crate) struct Scope<'a> {
    object: Option<Cow<'a, Value>>,
    old: Option<Cow<'a, Value>>,
    request: Value,
    namespace: Option<Value>,
    rights: Rights,
    attributes: &'a Attributes<'a>,
    matched: &'a Kind,
}

/// What is left of the cost that the expressions of one policy may have together.
pub(in crate::admission) struct Budget(pub(in crate::admission) u64);

/// The expressions have cost more than they may.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("validation failed due to running out of cost budget, no further validation rules will be run")]
pub(in crate::admission) struct OutOfBudget;

impl<'a> Scope<'a> {
    /// A request whose objects are seen in the version of `matched`. Match conditions of webhooks do not see the namespace.
    ///
    /// # Errors
    /// 404 where the namespace is not there.
    pub(crate) fn of(
        attributes: &'a Attributes<'a>,
        matched: &'a Kind,
        with_namespace: bool,
    ) -> Result<Self, ApiError> {
        let review = attributes.review;
        let namespace = if with_namespace { attributes.namespace_object()? } else { None };
        Ok(Self {
            object: attributes.object.map(|object| attributes.in_version(object, matched)),
            old: review.old.map(|old| attributes.in_version(old, matched)),
            request: request_value(attributes, matched),
            namespace: namespace.map(|namespace| visible_namespace(&namespace)),
            rights: review.objects.rights(),
            attributes,
            matched,
        })
    }

    /// Who answers `authorizer`.
    pub(crate) fn authorizer(&self) -> impl kubewright_cel::Authorizer + '_ {
        UserAuthorizer { rights: &self.rights, user: self.attributes.review.call.user }
    }

    /// The variables for one group of expressions. `authorizer` is left out where expressions may not ask it.
    pub(crate) fn bindings<'b>(
        &'b self,
        params: Option<&'b Value>,
        authorizer: Option<&'b dyn kubewright_cel::Authorizer>,
        variables: &'b [(String, Expression)],
    ) -> Bindings<'b> {
        let json = |value: Option<&'b Value>| value.map_or(Cel::Null, Cel::dynamic);
        let mut bindings = Bindings::new();
        bindings
            .bind("object", json(self.object.as_deref()))
            .bind("oldObject", json(self.old.as_deref()))
            .bind("request", Cel::dynamic(&self.request))
            .bind("namespaceObject", json(self.namespace.as_ref()))
            .bind("params", json(params));
        if let Some(authorizer) = authorizer {
            bindings
                .bind("authorizer", Cel::authorizer(authorizer))
                .bind("authorizer.requestResource", Cel::request_resource(authorizer, self.resource()));
        }
        for (name, expression) in variables {
            bindings.define(name, &expression.program);
        }
        bindings
    }

    fn resource(&self) -> ResourceAttributes {
        let review = self.attributes.review;
        ResourceAttributes {
            group: self.matched.group.clone(),
            version: self.matched.version.clone(),
            resource: self.matched.plural.clone(),
            subresource: review.subresource.to_owned(),
            namespace: self.attributes.namespace.to_owned(),
            name: self.attributes.name.to_owned(),
            field_selector: None,
            label_selector: None,
        }
    }
}

impl Budget {
    /// Evaluates an expression: its value, or why there is none, in kube-apiserver's words.
    ///
    /// # Errors
    /// When the budget does not suffice.
    pub(crate) fn evaluate<'v>(
        &mut self,
        expression: &'v Expression,
        bindings: &Bindings<'v>,
    ) -> Result<Result<Cel<'v>, String>, OutOfBudget> {
        let program: &'v Program = &expression.program;
        let evaluation = program.evaluate(bindings, PER_CALL_LIMIT);
        self.0 = self.0.checked_sub(evaluation.cost).ok_or(OutOfBudget)?;
        let explain = |why| format!("expression '{}' resulted in error: {why}", expression.text);
        Ok(evaluation.result.map_err(explain))
    }
}

/// The fields of a namespace that expressions may see (`CreateNamespaceObject`).
fn visible_namespace(namespace: &Value) -> Value {
    const METADATA: [&str; 12] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let metadata: Map<String, Value> = METADATA
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), namespace["metadata"].get(field)?.clone())))
        .collect();
    let mut visible = Map::new();
    visible.insert("metadata".to_owned(), Value::Object(metadata));
    for field in ["spec", "status"] {
        visible.insert(field.to_owned(), namespace[field].clone());
    }
    Value::Object(visible)
}
