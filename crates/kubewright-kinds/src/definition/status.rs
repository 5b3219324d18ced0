//! The status of a definition (`pkg/controller/status`, `pkg/controller/establish`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{approval, list, storage_version, text, texts};
use crate::Kinds;

/// Brings the status of a definition up to date: accepted names, conditions and stored versions, given the kinds that
/// others serve (those of this definition in `others` are left out of account). Doing it twice changes nothing more.
pub fn status(definition: &mut Value, others: &Kinds, now: Timestamp) {
    let taken = Taken::of(definition, others);
    let (accepted, conflict) = accept(definition, &taken);
    let established_before =
        condition(definition, "Established").is_some_and(|one| text(one, "status") == "True");
    let names = match &conflict {
        None => Condition {
            kind: "NamesAccepted",
            status: "True",
            reason: "NoConflicts",
            message: "no conflicts found".into(),
        },
        Some(conflict) => Condition {
            kind: "NamesAccepted",
            status: "False",
            reason: conflict.reason,
            message: conflict.message.clone(),
        },
    };
    let established = match (established_before, &conflict) {
        (true, _) => None,
        (false, None) => Some(Condition {
            kind: "Established",
            status: "True",
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted".into(),
        }),
        (false, Some(_)) => Some(Condition {
            kind: "Established",
            status: "False",
            reason: "NotAccepted",
            message: "not all names are accepted".into(),
        }),
    };
    let approval = approval::condition(definition);
    let storage = storage_version(definition).map(str::to_owned);
    let Some(object) = definition.as_object_mut() else { return };
    let Some(status) = object.entry("status").or_insert_with(|| json!({})).as_object_mut() else { return };
    status.insert("acceptedNames".into(), accepted);
    for condition in approval.into_iter().chain([names]).chain(established) {
        condition.set(status, now);
    }
    let mut stored = texts(&Value::Object(status.clone()), "storedVersions");
    stored.extend(storage.filter(|storage| !stored.contains(storage)));
    status.insert("storedVersions".into(), json!(stored));
}

struct Conflict {
    reason: &'static str,
    message: String,
}

/// The names of a group that others have.
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn of(definition: &Value, others: &Kinds) -> Self {
        let (own, group) = (text(&definition["metadata"], "name"), text(&definition["spec"], "group"));
        let mut taken = Self { resources: BTreeSet::new(), kinds: BTreeSet::new() };
        let is_other = |definition: Option<&str>| definition != Some(own);
        for kind in others.iter() {
            if kind.group == group && is_other(kind.custom.as_ref().map(|custom| custom.definition.as_str()))
            {
                taken.resources.extend([kind.plural.clone(), kind.singular.clone()]);
                taken.resources.extend(kind.short_names.iter().cloned());
                taken.kinds.extend([kind.kind.clone(), kind.list_kind.clone()]);
            }
        }
        taken
    }
}

/// The names that are accepted, and the last conflict. A name that was accepted before stays so.
fn accept(definition: &Value, taken: &Taken) -> (Value, Option<Conflict>) {
    let asked = &definition["spec"]["names"];
    let before = &definition["status"]["acceptedNames"];
    let mut names =
        Names { asked, before, accepted: before.as_object().cloned().unwrap_or_default(), conflict: None };
    names.one("plural", &taken.resources, "PluralConflict");
    names.one("singular", &taken.resources, "SingularConflict");
    names.short(&taken.resources);
    names.one("kind", &taken.kinds, "KindConflict");
    names.one("listKind", &taken.kinds, "ListKindConflict");
    names.copy("categories");
    (Value::Object(names.accepted), names.conflict)
}

struct Names<'a> {
    asked: &'a Value,
    before: &'a Value,
    accepted: Map<String, Value>,
    conflict: Option<Conflict>,
}

impl Names<'_> {
    fn one(&mut self, key: &str, taken: &BTreeSet<String>, reason: &'static str) {
        let name = text(self.asked, key);
        if name != text(self.before, key) && taken.contains(name) {
            self.conflict = Some(Conflict { reason, message: in_use(name) });
            if matches!(key, "plural" | "kind") {
                self.accepted.entry(key).or_insert_with(|| "".into());
            }
        } else {
            self.accepted.insert(key.to_owned(), name.into());
        }
    }

    /// All short names, or none of them.
    fn short(&mut self, taken: &BTreeSet<String>) {
        let kept = texts(self.before, "shortNames");
        let mut clashes: Vec<String> = texts(self.asked, "shortNames")
            .iter()
            .filter(|name| !kept.contains(name) && taken.contains(*name))
            .map(|name| in_use(name))
            .collect();
        let message = match clashes.len() {
            0 => return self.copy("shortNames"),
            1 => clashes.remove(0),
            _ => format!("[{}]", clashes.join(", ")),
        };
        self.conflict = Some(Conflict { reason: "ShortNamesConflict", message });
    }

    fn copy(&mut self, key: &str) {
        match self.asked.get(key) {
            Some(value) => self.accepted.insert(key.to_owned(), value.clone()),
            None => self.accepted.remove(key),
        };
    }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&definition["status"], "conditions").find(|condition| text(condition, "type") == kind)
}

/// A condition of a definition.
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Condition {
    /// The time of the last transition changes with the status.
    fn set(self, status: &mut Map<String, Value>, now: Timestamp) {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(conditions) = conditions.as_array_mut() else { return };
        let before = conditions.iter_mut().find(|one| text(one, "type") == self.kind);
        let since = before
            .as_ref()
            .filter(|one| text(one, "status") == self.status)
            .and_then(|one| one.get("lastTransitionTime"));
        let since = since.cloned().unwrap_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        let condition = json!({
            "type": self.kind,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": since,
        });
        match before {
            Some(before) => *before = condition,
            None => conditions.push(condition),
        }
    }
}
