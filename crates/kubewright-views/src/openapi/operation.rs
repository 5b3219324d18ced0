//! What can be done at a path.

use kubewright_schema::patch;
use serde_json::{Map, Value, json};

use super::components::Components;
use super::parameter;
use kubewright_kinds::Kind;

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    List,
    Create,
    DeleteCollection,
    Read,
    Replace,
    Patch,
    Delete,
}

impl Action {
    /// What is done to collections.
    pub(super) const OF_COLLECTIONS: [Self; 3] = [Self::List, Self::Create, Self::DeleteCollection];
    /// What is done to objects.
    pub(super) const OF_OBJECTS: [Self; 4] = [Self::Read, Self::Replace, Self::Patch, Self::Delete];
    /// What is done to subresources.
    pub(super) const OF_SUBRESOURCES: [Self; 4] = [Self::Read, Self::Create, Self::Replace, Self::Patch];

    /// The verb of discovery and authorization.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::DeleteCollection => "deletecollection",
            Self::Read => "get",
            Self::Replace => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// The HTTP method.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::List | Self::Read => "get",
            Self::Create => "post",
            Self::Replace => "put",
            Self::Patch => "patch",
            Self::DeleteCollection | Self::Delete => "delete",
        }
    }

    /// `x-kubernetes-action`.
    fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::DeleteCollection => "deletecollection",
            other => other.method(),
        }
    }

    /// The start of `operationId`.
    fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::DeleteCollection | Self::Delete => "delete",
            Self::Read => "read",
            Self::Replace => "replace",
            Self::Patch => "patch",
        }
    }
}

/// What an operation is about.
#[derive(Clone)]
pub(super) struct OperationTarget<'a> {
    pub(super) kind: &'a Kind,
    /// How `operationId` calls it, such as `NamespacedDeploymentScale`.
    pub(super) name: String,
    /// Group, version and kind of the body.
    pub(super) body_kind: (&'a str, &'a str, &'a str),
    /// A reference to the body's schema.
    pub(super) body: Value,
}

impl OperationTarget<'_> {
    /// The operation as OpenAPI has it.
    pub(super) fn operation(&self, action: Action, components: &mut Components) -> Value {
        let (group, version, kind) = self.body_kind;
        let mut operation = Map::new();
        let mut say = |key: &str, value: Value| operation.insert(key.to_owned(), value);
        say("tags", json!([tag(self.kind)]));
        say("description", format!("{} {}", action.word(), self.name).into());
        say("operationId", self.id(action).into());
        say("x-kubernetes-action", action.name().into());
        say("x-kubernetes-group-version-kind", json!({"group": group, "version": version, "kind": kind}));
        let parameters = match action {
            Action::Read => Vec::new(),
            Action::List => parameter::queries(parameter::LIST),
            Action::Create | Action::Replace | Action::Patch => parameter::queries(parameter::WRITE),
            Action::Delete => parameter::queries(parameter::DELETE),
            Action::DeleteCollection => parameter::queries(parameter::DELETE.iter().chain(parameter::LIST)),
        };
        if !parameters.is_empty() {
            say("parameters", parameters.into());
        }
        if let Some(body) = self.request(action, components) {
            say("requestBody", body);
        }
        say("responses", self.responses(action, components));
        Value::Object(operation)
    }

    fn id(&self, action: Action) -> String {
        let collection = if action == Action::DeleteCollection { "Collection" } else { "" };
        format!("{}{}{collection}{}", action.word(), words(self.kind), self.name)
    }

    fn request(&self, action: Action, components: &mut Components) -> Option<Value> {
        let any = |schema: &Value| json!({"*/*": {"schema": schema}});
        Some(match action {
            Action::List | Action::Read => return None,
            Action::Create | Action::Replace => json!({"required": true, "content": any(&self.body)}),
            Action::Delete | Action::DeleteCollection => {
                json!({"content": any(&components.delete_options())})
            }
            Action::Patch => {
                let schema = components.patch();
                let strategic = self.kind.custom.is_none().then_some(patch::STRATEGIC);
                let types = [patch::JSON, patch::MERGE].into_iter().chain(strategic);
                let content: Map<String, Value> =
                    types.map(|one| (one.to_owned(), json!({"schema": schema}))).collect();
                json!({"required": true, "content": content})
            }
        })
    }

    fn responses(&self, action: Action, components: &mut Components) -> Value {
        let (body, codes): (Value, &[(&str, &str)]) = match action {
            Action::Read => (self.body.clone(), &[("200", "OK")]),
            Action::List => (components.list(self.kind, &self.body), &[("200", "OK")]),
            Action::Create => (self.body.clone(), &[("200", "OK"), ("201", "Created"), ("202", "Accepted")]),
            Action::Replace | Action::Patch => (self.body.clone(), &[("200", "OK"), ("201", "Created")]),
            Action::Delete => (components.status(), &[("200", "OK"), ("202", "Accepted")]),
            Action::DeleteCollection => (components.status(), &[("200", "OK")]),
        };
        let content = json!({"application/json": {"schema": body}, "application/yaml": {"schema": body}});
        let mut responses: Map<String, Value> = codes
            .iter()
            .map(|(code, words)| ((*code).to_owned(), json!({"description": words, "content": content})))
            .collect();
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }
}

/// A group's name without the domain of Kubernetes' own.
fn short_group(kind: &Kind) -> &str {
    match kind.group.trim_end_matches(".k8s.io") {
        "" => "core",
        group => group,
    }
}

/// The tag of all operations of a version.
fn tag(kind: &Kind) -> String {
    format!("{}_{}", short_group(kind).replace(['.', '-'], "_"), kind.version)
}

/// Group and version as `operationId` has them, such as `RbacAuthorizationV1`.
fn words(kind: &Kind) -> String {
    short_group(kind).split(['.', '-']).chain([kind.version.as_str()]).map(capitalized).collect()
}

/// The word with its first letter in upper case.
pub(super) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
