//! The requests that try the edits of an object: as data, all of them with `dryRun`.

use serde_json::{Value, json};

use super::parts::{PARTS, Part};
use super::places::{below, name_of};
use super::values::edits;
use crate::conversation::{Ask, MOMENT, Place};
use crate::edit::{Change, Edit, Step};
use crate::mutate::Maker;
use crate::schema::Resource;

/// A change to try: of the object itself, or of a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    part: Option<&'static Part>,
    edit: Edit,
}

/// A request, and the change that it tries.
#[derive(Clone, Debug)]
pub(crate) struct Try {
    pub(crate) ask: Ask,
    pub(crate) trial: Trial,
}

impl Trial {
    /// The place that is changed, without indices: `spec.ports.port`, `scale:spec.replicas`.
    pub(crate) fn spot(&self) -> String {
        let name = name_of(&self.edit.path);
        self.part.map_or(name.clone(), |part| format!("{}:{name}", part.name))
    }

    /// What is changed, for a person.
    pub(crate) fn change(&self) -> String {
        let what = match &self.edit.change {
            Change::Set(value) => format!("= {value}"),
            Change::Insert(value) => format!("gets {value}"),
            Change::Remove => "removed".to_owned(),
        };
        format!("{} {}", self.spot(), what.chars().take(300).collect::<String>())
    }

    /// What two changes have in common that are the same for a kind, whatever the object.
    pub(crate) fn key(&self, resource: &Resource) -> String {
        let of_item = matches!(self.edit.path.last(), Some(Step::Index(_)));
        format!(
            "{} {} {} {of_item} {:?}",
            resource.api_version(),
            resource.kind,
            self.spot(),
            self.edit.change
        )
    }

    fn ask(&self, ask: Ask) -> Try {
        let unknown = matches!(self.edit.path.last(), Some(Step::Key(key)) if key == "unknownField");
        let ask = ask.query("dryRun", "All");
        let ask = if unknown { ask.query("fieldValidation", "Strict") } else { ask };
        Try { ask, trial: self.clone() }
    }

    /// The creation of an object with this change.
    pub(crate) fn creation(&self, subject: &Subject) -> Option<Try> {
        let ask = Ask::new("create", "POST", &subject.place).collection().body(self.made(&subject.object));
        self.part.is_none().then(|| self.ask(ask))
    }

    /// Writes of this change to an object that is stored: it is replaced as it was read, patched, applied; or a part of it is.
    pub(crate) fn writes(&self, subject: &Subject) -> Vec<Try> {
        let asks = match self.part {
            None if !subject.place.resource.can("update") => Vec::new(),
            None => vec![
                replaced("put", subject, None, vec![self.edit.clone()]),
                patched("merge", subject, None, self.edit.merge_patch(&subject.object)),
                Ask::new("apply", "PATCH", &subject.place)
                    .header("Content-Type", "application/apply-patch+yaml")
                    .query("fieldManager", "sweep")
                    .query("force", "true")
                    .body(self.made(&subject.object)),
            ],
            Some(part) => self.writes_to(subject, part),
        };
        asks.into_iter().map(|ask| self.ask(ask)).collect()
    }

    fn writes_to(&self, subject: &Subject, part: &Part) -> Vec<Ask> {
        let object = part.object(subject);
        if part.own.is_some() {
            let ask = Ask::new(part.name, part.method, &subject.place).subresource(part.name);
            let mut asks = vec![ask.body(self.made(&object))];
            if part.method == "PUT" {
                asks.push(patched(part.name, subject, Some(part.name), self.edit.merge_patch(&object)));
            }
            return asks;
        }
        let base = Edit { path: part.way(), change: Change::Set(at(&object, part).clone()) };
        let whole = Edit { path: part.way(), change: Change::Set(at(&self.made(&object), part).clone()) };
        vec![
            replaced(part.name, subject, Some(part.name), vec![base, self.edit.clone()]),
            patched(part.name, subject, Some(part.name), whole.merge_patch(&object)),
        ]
    }

    fn made(&self, object: &Value) -> Value {
        let mut object = object.clone();
        self.edit.apply(&mut object);
        object
    }
}

/// What is at the place of an object that a part is.
fn at<'a>(object: &'a Value, part: &Part) -> &'a Value {
    part.way.iter().fold(object, |at, key| &at[*key])
}

/// An object to begin with, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) place: Place,
    pub(crate) object: Value,
    /// What others say of its status.
    pub(crate) status: Option<Value>,
}

/// The object of a kind under a name that this run alone has.
pub(crate) fn subject(resource: &Resource, object: &Value, status: Option<&Value>) -> Subject {
    // Definitions are named by what they define.
    let own = [
        (".run.", ".@run@."),
        ("-run.", "-@run@."),
        ("\"run.", "\"@run@."),
        ("\"namespace\":\"ns\"", "\"namespace\":\"@ns@\""),
    ];
    let text = own.iter().fold(object.to_string(), |text, (recorded, name)| text.replace(recorded, name));
    let mut object: Value = serde_json::from_str(&text).unwrap_or_default();
    let given = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let name = match resource.kind.as_str() {
        "IPAddress" | "CustomResourceDefinition" | "APIService" => given,
        "ClusterTrustBundle" if given.contains(':') => format!("{given}@run@"),
        _ if resource.namespaced => "a".to_owned(),
        _ => "@run@-a".to_owned(),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    object["metadata"]["name"] = json!(name);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
        metadata.remove("generateName");
    }
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
        if !resource.can("get") {
            // Reviews are nobody's.
            members.remove("metadata");
        }
    }
    if object["spec"]["serviceAccountName"].is_string() {
        // The only account that there is.
        object["spec"]["serviceAccountName"] = json!("default");
    }
    Subject { place: Place { resource: resource.clone(), name }, object, status: status.cloned() }
}

/// The object itself.
pub(crate) fn creation(subject: &Subject) -> Ask {
    Ask::new("create", "POST", &subject.place).collection().body(subject.object.clone())
}

/// Stores it. A server writes to a definition by itself then: it is read when that is done.
pub(crate) fn stored(subject: &Subject) -> Vec<Ask> {
    let mut create = creation(subject);
    if subject.place.resource.kind != "CustomResourceDefinition" {
        return vec![create];
    }
    create.pause = 5 * MOMENT;
    vec![create, Ask::new("get", "GET", &subject.place)]
}

/// All changes of it and of its parts.
pub(crate) fn trials(maker: &Maker<'_>, subject: &Subject) -> Vec<Trial> {
    let nothing = json!({});
    let served = maker.served;
    let resource = &subject.place.resource;
    let schema = served.schema(resource).unwrap_or(&nothing);
    let status = [Step::Key("status".into())];
    let own = below(served, schema, &subject.object, &[]);
    let mut found: Vec<Trial> = own
        .iter()
        .filter(|spot| !spot.path.starts_with(&status))
        .flat_map(|spot| edits(maker, spot))
        .map(|edit| Trial { part: None, edit })
        .collect();
    for part in PARTS.iter().filter(|part| resource.subresources.iter().any(|name| name == part.name)) {
        let object = part.object(subject);
        let schema = match part.own {
            Some((group, version, kind)) => served.schema_of(group, version, kind).unwrap_or(&nothing),
            None => schema,
        };
        let spots = below(served, schema, &object, &part.way());
        found.extend(
            spots.iter().flat_map(|spot| edits(maker, spot)).map(|edit| Trial { part: Some(part), edit }),
        );
    }
    found
}

fn replaced(what: &str, subject: &Subject, part: Option<&str>, edits: Vec<Edit>) -> Ask {
    let mut ask = Ask::new(what, "PUT", &subject.place);
    ask.subresource = part.map(str::to_owned);
    ask.payload = crate::conversation::Payload::Changed { otherwise: subject.object.clone(), edits };
    ask
}

fn patched(what: &str, subject: &Subject, part: Option<&str>, patch: Value) -> Ask {
    let mut ask = Ask::new(what, "PATCH", &subject.place)
        .header("Content-Type", "application/merge-patch+json")
        .body(patch);
    ask.subresource = part.map(str::to_owned);
    ask
}

/// Whether a change belongs to a share of all: one of four, say. What it is decides, so that each share is of all sorts.
pub(crate) fn belongs(key: &str, (part, parts): (usize, usize)) -> bool {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 16) % parts as u64 == part as u64 - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Payload;
    use crate::corpus::Corpus;
    use crate::schema::Served;

    fn resource() -> Resource {
        Resource {
            group: String::new(),
            version: "v1".into(),
            plural: "things".into(),
            kind: "Thing".into(),
            namespaced: true,
            verbs: vec!["create".into(), "update".into()],
            subresources: vec!["status".into(), "scale".into()],
        }
    }

    fn all() -> (Vec<Try>, Vec<Try>) {
        let (served, corpus) = (Served::default(), Corpus::default());
        let maker = Maker { served: &served, corpus: &corpus };
        let object =
            json!({"metadata": {"name": "x", "namespace": "ns"}, "spec": {"replicas": 1}, "status": {}});
        let subject = subject(&resource(), &object, Some(&json!({"replicas": 2})));
        let trials = trials(&maker, &subject);
        (
            trials.iter().filter_map(|trial| trial.creation(&subject)).collect(),
            trials.iter().flat_map(|trial| trial.writes(&subject)).collect(),
        )
    }

    #[test]
    fn all_requests_are_tried_dry_and_are_about_one_place() {
        let (creations, writes) = all();
        for one in creations.iter().chain(&writes) {
            assert!(one.ask.query.contains(&("dryRun".into(), "All".into())), "{one:?}");
        }
        assert!(creations.iter().any(|one| one.trial.spot() == "spec.replicas"));
        assert!(
            creations.iter().all(|one| !one.trial.spot().starts_with("status")),
            "a creation has no status"
        );
    }

    #[test]
    fn a_stored_object_is_replaced_as_it_was_read_patched_applied_and_so_are_its_parts() {
        let (_, writes) = all();
        let has = |what: &str, method: &str, spot: &str| {
            writes
                .iter()
                .any(|one| one.ask.what == what && one.ask.method == method && one.trial.spot() == spot)
        };
        assert!(has("put", "PUT", "spec.replicas"));
        assert!(has("merge", "PATCH", "spec.replicas"));
        assert!(has("apply", "PATCH", "spec.replicas"));
        assert!(has("status", "PUT", "status:status.replicas"));
        assert!(has("scale", "PUT", "scale:spec.replicas") && has("scale", "PATCH", "scale:spec.replicas"));
        let status = writes
            .iter()
            .find(|one| one.trial.spot() == "status:status.replicas")
            .map(|one| &one.ask.payload);
        assert!(matches!(status, Some(Payload::Changed { edits, .. }) if edits.len() == 2));
    }

    #[test]
    fn each_change_belongs_to_one_share() {
        let (creations, writes) = all();
        for one in creations.iter().chain(&writes) {
            let key = one.trial.key(&resource());
            let shares = (1..=3).filter(|part| belongs(&key, (*part, 3))).count();
            assert_eq!(shares, 1, "{key}");
        }
    }
}
