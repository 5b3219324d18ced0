//! What can be done at a path.

use kubewright_schema::patch;
use kubewright_spec::Version;
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
    /// The subresource; empty for the object itself.
    pub(super) subresource: &'a str,
    /// Group, version and kind of the body.
    pub(super) body_kind: (&'a str, &'a str, &'a str),
    /// A reference to the body's schema.
    pub(super) body: Value,
}

impl OperationTarget<'_> {
    /// The operation as OpenAPI has it, without its parameters.
    pub(super) fn operation(&self, action: Action, components: &mut Components) -> Map<String, Value> {
        let (group, version, kind) = self.body_kind;
        let mut operation = Map::new();
        let mut say = |key: &str, value: Value| operation.insert(key.to_owned(), value);
        say("tags", json!([tag(self.kind)]));
        say("description", self.description(action).into());
        say("operationId", self.id(action).into());
        say("x-kubernetes-action", action.name().into());
        say("x-kubernetes-group-version-kind", json!({"group": group, "version": version, "kind": kind}));
        if let Some(body) = self.request(action, components) {
            say("requestBody", body);
        }
        say("responses", self.responses(action, components));
        operation
    }

    /// The parameters of the operation at a path, in the order of their names.
    pub(super) fn parameters(&self, action: Action, path: &str, version: Version) -> Vec<Value> {
        let custom = self.is_custom();
        let own: [&[&str]; 2] = match action {
            Action::Read if custom => [parameter::READ, &[]],
            Action::Read => [&[], &[]],
            Action::List => [parameter::LIST, &[]],
            Action::DeleteCollection if custom => [parameter::LIST, &[]],
            Action::DeleteCollection => [parameter::DELETE, parameter::LIST_TO_DELETE],
            Action::Create | Action::Replace => [parameter::WRITE, &[]],
            Action::Patch => [parameter::PATCH, &[]],
            Action::Delete => [parameter::DELETE, &[]],
        };
        let kind = if custom { &self.kind.kind } else { self.body_kind.2 };
        let mut all = parameter::of_path(path, kind);
        all.extend(parameter::queries(version, own.into_iter().flatten().chain(parameter::ALL)));
        parameter::sort(&mut all);
        all
    }

    fn is_custom(&self) -> bool {
        self.kind.custom.is_some()
    }

    /// What it does, in words (`k8s.io/apiserver/pkg/endpoints/installer.go`).
    fn description(&self, action: Action) -> String {
        let kind = &self.kind.kind;
        let part =
            if self.subresource.is_empty() { String::new() } else { format!(" {} of", self.subresource) };
        match action {
            Action::List if self.is_custom() => format!("list objects of kind {kind}"),
            Action::List => format!("list or watch objects of kind {kind}"),
            Action::DeleteCollection => format!("delete collection of {kind}"),
            Action::Create => format!("create{part} {}{kind}", article(kind)),
            Action::Delete => format!("delete{part} {}{kind}", article(kind)),
            Action::Read => format!("read{part} the specified {kind}"),
            Action::Replace => format!("replace{part} the specified {kind}"),
            Action::Patch => format!("partially update{part} the specified {kind}"),
        }
    }

    fn id(&self, action: Action) -> String {
        let collection = if action == Action::DeleteCollection { "Collection" } else { "" };
        format!("{}{}{collection}{}", action.word(), words(self.kind), self.name)
    }

    fn request(&self, action: Action, components: &mut Components) -> Option<Value> {
        let custom = self.is_custom();
        let any = |schema: &Value| match custom {
            true => json!({"application/json": {"schema": schema}, "application/yaml": {"schema": schema}}),
            false => json!({"*/*": {"schema": schema}}),
        };
        Some(match action {
            Action::List | Action::Read => return None,
            Action::DeleteCollection if custom => return None,
            Action::Create | Action::Replace => json!({"required": true, "content": any(&self.body)}),
            Action::Delete | Action::DeleteCollection => {
                json!({"content": any(&components.delete_options())})
            }
            Action::Patch => {
                let schema = components.patch();
                let strategic = (!custom).then_some(patch::STRATEGIC);
                let types = [patch::JSON, patch::MERGE, patch::APPLY].into_iter().chain(strategic);
                let content: Map<String, Value> =
                    types.map(|one| (one.to_owned(), json!({"schema": schema}))).collect();
                json!({"required": true, "content": content})
            }
        })
    }

    fn responses(&self, action: Action, components: &mut Components) -> Value {
        let custom = self.is_custom();
        let (body, codes): (Value, &[(&str, &str)]) = match action {
            Action::Read => (self.body.clone(), &[OK]),
            Action::List => (components.list(self.kind, &self.body), &[OK]),
            Action::Create => (self.body.clone(), &[OK, CREATED, ACCEPTED]),
            Action::Patch if custom => (self.body.clone(), &[OK]),
            Action::Replace | Action::Patch => (self.body.clone(), &[OK, CREATED]),
            Action::Delete if self.kind.behaviour.deletion_answers_object => {
                (self.body.clone(), &[OK, ACCEPTED])
            }
            Action::Delete => (components.status(), &[OK, ACCEPTED]),
            Action::DeleteCollection => (components.status(), &[OK]),
        };
        let media_types = match (custom, action) {
            (true, _) => &MEDIA_TYPES[..2],
            (false, Action::List) => &MEDIA_TYPES,
            (false, _) => &MEDIA_TYPES[..3],
        };
        let content: Map<String, Value> =
            media_types.iter().map(|one| ((*one).to_owned(), json!({"schema": body}))).collect();
        let mut responses: Map<String, Value> = codes
            .iter()
            .map(|(code, words)| ((*code).to_owned(), json!({"description": words, "content": content})))
            .collect();
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }
}

const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");

/// The forms of an answer: of custom kinds the first two, of built-in ones the first three, and all of a list, which may be a
/// watch.
pub(super) const MEDIA_TYPES: [&str; 5] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// The article of a noun, where it has one (`GetArticleForNoun`).
fn article(noun: &str) -> &'static str {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return "";
    }
    if noun.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an " } else { "a " }
}

/// A group's name without the domain of Kubernetes' own.
fn short_group(kind: &Kind) -> &str {
    match kind.group.trim_end_matches(".k8s.io") {
        "" => "core",
        group => group,
    }
}

/// The tag of all operations of a version (`ToValidOperationID`).
fn tag(kind: &Kind) -> String {
    let mut parts = short_group(kind).split(['.', '-']);
    let first = parts.next().unwrap_or_default().to_owned();
    let group = parts.fold(first, |group, part| group + &capitalized(part));
    format!("{group}_{}", kind.version)
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
