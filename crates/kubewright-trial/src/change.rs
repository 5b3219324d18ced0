//! What users may ask for: changes of a sample that the schema of its kind lets through.

use std::{
    collections::BTreeSet,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::meaning;

/// The name of an entry that is added to a map.
pub(crate) const ENTRY: &str = "trial";
/// Fields that stop an operator where it is.
const STOPS: [&str; 4] = ["pause", "paused", "suspend", "suspended"];
/// How long a value may be that is said whole.
const LONGEST: usize = 100;
/// How deep fields are looked for in a spec.
const DEPTH: usize = 8;

/// Value of one field of a sample.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Setting {
    /// Which sample, by its number.
    pub sample: usize,
    /// JSON pointer of the field.
    pub field: String,
    /// What it is set to, as JSON; none where it is taken away.
    pub value: Option<String>,
}

/// Change of a field of a sample, or of several at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Change {
    /// What is set, one after the other.
    pub settings: Vec<Setting>,
    /// Whether nobody would want this: the schema lets it through, and the operator may say no, but has to live on.
    pub is_hostile: bool,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.path();
        match &self.value {
            // Such as a certificate: the name of a plan has to be said.
            Some(value) if value.len() > LONGEST => {
                let mut hasher = DefaultHasher::new();
                value.hash(&mut hasher);
                let start = &value[..value.floor_char_boundary(LONGEST / 2)];
                write!(f, "{field}={start}...{:08x}", hasher.finish() >> 32)
            }
            Some(value) => write!(f, "{field}={value}"),
            None => write!(f, "no {field}"),
        }
    }
}

impl Setting {
    /// `spec.size`.
    #[must_use]
    pub fn path(&self) -> String {
        self.field.trim_start_matches('/').replace('/', ".")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, setting) in self.settings.iter().enumerate() {
            write!(f, "{}{setting}", if number == 0 { "" } else { " and " })?;
        }
        Ok(())
    }
}

impl Change {
    /// One field is set, or taken away.
    #[must_use]
    pub fn one(sample: usize, field: impl Into<String>, value: Option<String>, is_hostile: bool) -> Self {
        Self { settings: vec![Setting { sample, field: field.into(), value }], is_hostile }
    }

    /// All of these at once.
    #[must_use]
    pub fn together<'a>(changes: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self { settings: Vec::new(), is_hostile: false };
        for change in changes {
            all.settings.extend(change.settings.iter().cloned());
            all.is_hostile |= change.is_hostile;
        }
        all
    }

    /// The sample of a number with the change.
    #[must_use]
    pub fn of(&self, number: usize, sample: &Value) -> Value {
        let mut sample = sample.clone();
        for setting in self.settings.iter().filter(|setting| setting.sample == number) {
            let value = setting.value.as_ref().and_then(|text| serde_json::from_str(text).ok());
            set(&mut sample, &setting.field, value);
        }
        sample
    }

    /// Whether it only takes away.
    #[must_use]
    pub fn takes_away(&self) -> bool {
        self.settings.iter().all(|setting| setting.value.is_none())
    }

    /// Whether both set the same fields.
    #[must_use]
    pub fn is_of_same_fields(&self, other: &Self) -> bool {
        let fields = |change: &Self| -> BTreeSet<(usize, String)> {
            change.settings.iter().map(|setting| (setting.sample, setting.field.clone())).collect()
        };
        fields(self) == fields(other)
    }

    /// Whether a field of the one is a field of the other, or in it.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_in = |inner: &Setting, outer: &Setting| {
            let rest = inner.field.strip_prefix(outer.field.as_str());
            inner.sample == outer.sample && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut pairs =
            self.settings.iter().flat_map(|one| other.settings.iter().map(move |other| (one, other)));
        pairs.any(|(one, other)| is_in(one, other) || is_in(other, one))
    }
}

/// Sets what a JSON pointer leads to, with the maps on the way, or takes it away.
pub fn set(object: &mut Value, pointer: &str, value: Option<Value>) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    let last = unescaped(last);
    let mut place = object;
    for name in parent.split('/').skip(1) {
        let name = unescaped(name);
        place = match place {
            Value::Array(items) => {
                let Some(item) = name.parse().ok().and_then(|number: usize| items.get_mut(number)) else {
                    return;
                };
                item
            }
            other => {
                if !other.is_object() {
                    *other = json!({});
                }
                let Value::Object(fields) = other else { return };
                fields.entry(name).or_insert(Value::Null)
            }
        };
    }
    match (place, value) {
        (Value::Array(items), Some(value)) => {
            if let Some(item) = last.parse().ok().and_then(|number: usize| items.get_mut(number)) {
                *item = value;
            }
        }
        (Value::Object(fields), Some(value)) => drop(fields.insert(last, value)),
        (Value::Object(fields), None) => drop(fields.remove(&last)),
        (place @ Value::Null, Some(value)) => *place = json!({last: value}),
        _ => {}
    }
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The schema of a sample's kind and version, among the definitions of manifests.
#[must_use]
pub fn schema_of<'a>(definitions: &'a [Value], sample: &Value) -> Option<&'a Value> {
    let (group, version) = sample["apiVersion"].as_str()?.split_once('/')?;
    let is_of_kind =
        |one: &&Value| one["spec"]["group"] == group && one["spec"]["names"]["kind"] == sample["kind"];
    let definition = definitions.iter().find(is_of_kind)?;
    let versions = definition["spec"]["versions"].as_array()?;
    let found = versions.iter().find(|one| one["name"] == version)?;
    Some(&found["schema"]["openAPIV3Schema"])
}

/// Changes of the spec of a sample, those of shallow fields first: each field set otherwise, taken away, or set where it was not; and
/// values that only a schema without more rules lets through.
#[must_use]
pub fn changes(number: usize, sample: &Value, schema: &Value) -> Vec<Change> {
    let mut found = Found { sample: number, changes: BTreeSet::new() };
    let spec = &schema["properties"]["spec"];
    found.walk(spec, sample.get("spec"), "/spec", 0);
    let mut changes: Vec<Change> = found.changes.into_iter().map(|(_, change)| change).collect();
    let depth = |change: &Change| change.settings.iter().map(|one| one.field.matches('/').count()).max();
    changes.sort_by_key(|change| (change.is_hostile, depth(change)));
    changes
}

struct Found {
    sample: usize,
    changes: BTreeSet<(usize, Change)>,
}

impl Found {
    fn add(&mut self, field: &str, value: Option<&Value>, is_hostile: bool) {
        let value = value.map(Value::to_string);
        // Such a field says to stop where it is: what it comes to depends on where that was.
        let stops = field.rsplit('/').next().is_some_and(|name| STOPS.contains(&name));
        let change = Change::one(self.sample, field, value, is_hostile || stops);
        let number = self.changes.len();
        if self.changes.iter().all(|(_, known)| known.settings != change.settings) {
            self.changes.insert((number, change));
        }
    }

    fn walk(&mut self, schema: &Value, now: Option<&Value>, path: &str, depth: usize) {
        if depth > DEPTH {
            return;
        }
        match (schema["type"].as_str(), now) {
            (Some("object"), _) if schema["properties"].is_object() => self.fields(schema, now, path, depth),
            (Some("object"), Some(Value::Object(entries))) => self.entries(schema, entries, path, depth),
            (Some("array"), Some(Value::Array(items))) => self.items(schema, items, path, depth),
            (_, Some(value)) => {
                let name = path.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
                for other in others(name, schema, value) {
                    self.add(path, Some(&other), false);
                }
                for other in hostile(schema, value) {
                    self.add(path, Some(&other), true);
                }
            }
            (_, None) => {}
        }
    }

    fn fields(&mut self, schema: &Value, now: Option<&Value>, path: &str, depth: usize) {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}/{}", escaped(name));
            if let Some(value) = meaning::unschedulable(name, field) {
                self.add(&path, Some(&value), true);
            }
            match now.and_then(|now| now.get(name)) {
                Some(value) => {
                    self.walk(field, Some(value), &path, depth + 1);
                    if !required.iter().any(|one| one == name) && field.get("default").is_none() {
                        self.add(&path, None, false);
                    }
                }
                None if depth < 2 => {
                    if let Some(value) = meaning::example(name, field).or_else(|| example(field, 0)) {
                        self.add(&path, Some(&value), false);
                    }
                }
                None => {}
            }
        }
    }

    fn entries(&mut self, schema: &Value, entries: &Map<String, Value>, path: &str, depth: usize) {
        let of_entry = &schema["additionalProperties"];
        let more = entries.values().next().cloned().or_else(|| example(of_entry, 0));
        if let Some(value) = more {
            let mut entries = entries.clone();
            entries.insert(meaning::entry(path).to_owned(), value);
            self.add(path, Some(&Value::Object(entries)), false);
        }
        for (name, value) in entries.iter().take(3) {
            let path = format!("{path}/{}", escaped(name));
            self.walk(of_entry, Some(value), &path, depth + 1);
            self.add(&path, None, false);
        }
    }

    fn items(&mut self, schema: &Value, items: &[Value], path: &str, depth: usize) {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        if !items.is_empty() && items.len() as u64 > least {
            self.add(path, Some(&Value::from(&items[..items.len() - 1])), false);
            if least == 0 {
                self.add(path, Some(&json!([])), false);
            }
        }
        let more = items
            .last()
            .map(|item| different(path.rsplit('/').next().unwrap_or_default(), &schema["items"], item))
            .or_else(|| example(&schema["items"], 0));
        if let Some(more) = more.filter(|more| (items.len() as u64) < most && !items.contains(more)) {
            let mut items = items.to_vec();
            items.push(more);
            self.add(path, Some(&items.into()), false);
        }
        if let Some(first) = items.first().filter(|first| first.is_object()) {
            self.walk(&schema["items"], Some(first), &format!("{path}/0"), depth + 1);
        }
    }
}

/// An item like another, but for its first text.
fn different(called: &str, schema: &Value, item: &Value) -> Value {
    match item {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let first =
                ["name", "key", "id"].iter().find(|name| fields.get(**name).is_some_and(Value::is_string));
            let first = first
                .map(|name| (*name).to_owned())
                .or_else(|| fields.iter().find(|(_, value)| value.is_string()).map(|(name, _)| name.clone()));
            if let Some(name) = first {
                let schema = &schema["properties"][&name];
                fields.entry(name.clone()).and_modify(|value| *value = different(&name, schema, value));
            }
            Value::Object(fields)
        }
        value => others(called, schema, value).into_iter().next().unwrap_or_else(|| value.clone()),
    }
}

/// Other values of a field that somebody may want, by its name, its schema and what it is now.
fn others(name: &str, schema: &Value, now: &Value) -> Vec<Value> {
    if let Some(all) = schema["enum"].as_array() {
        return all.iter().filter(|one| *one != now).cloned().collect();
    }
    match now {
        Value::Bool(now) => vec![json!(!now)],
        Value::Number(now) => {
            let Some(now) = now.as_i64() else { return Vec::new() };
            let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
            let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
            let near = [now.checked_add(1), now.checked_sub(1), (now > 2).then_some(1)];
            let mut near: Vec<i64> =
                near.into_iter().flatten().filter(|one| *one >= least.max(1) && *one <= most).collect();
            near.dedup();
            near.into_iter().map(Value::from).collect()
        }
        Value::String(now) => meaning::others(name, schema, now)
            .unwrap_or_else(|| near(now).map(Value::from).into_iter().collect()),
        _ => Vec::new(),
    }
}

/// A text near to another, of the same letters and signs: what a pattern lets through.
fn near(text: &str) -> Option<String> {
    let (place, last) = text.char_indices().rev().find(|(_, letter)| letter.is_ascii_alphanumeric())?;
    let next = match last {
        'z' | 'Z' | '9' => char::from(last as u8 - 1),
        other => char::from(other as u8 + 1),
    };
    let next = if next.is_ascii_alphanumeric() { next } else { '1' };
    Some(format!("{}{next}{}", &text[..place], &text[place + last.len_utf8()..]))
}

/// Values that nobody wants, and that the schema lets through.
fn hostile(schema: &Value, now: &Value) -> Vec<Value> {
    if schema["enum"].is_array() {
        return Vec::new();
    }
    match now {
        Value::String(_) => {
            let is_free = schema["pattern"].is_null() && schema["format"].is_null();
            let may_be_empty = is_free && schema["minLength"].as_u64().unwrap_or(0) == 0;
            let long = schema["maxLength"].as_u64().unwrap_or(u64::MAX) >= 12;
            let empty = may_be_empty.then(|| json!(""));
            empty.into_iter().chain((is_free && long).then(|| json!("Not a name!\n"))).collect()
        }
        Value::Number(now) if now.is_i64() || now.is_u64() => {
            let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
            let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
            [0, -1].into_iter().filter(|one| *one >= least && *one <= most).map(Value::from).collect()
        }
        _ => Vec::new(),
    }
}

/// Some value that a schema allows; none where that is not simple.
fn example(schema: &Value, depth: usize) -> Option<Value> {
    if let Some(value) = schema.get("default").or_else(|| schema["enum"].get(0)) {
        // What it is by default is no change.
        return schema.get("default").is_none().then(|| value.clone());
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(json!(1));
    }
    match schema["type"].as_str()? {
        "boolean" => Some(json!(true)),
        "integer" | "number" => Some(json!(schema["minimum"].as_i64().unwrap_or(1).max(1))),
        "string" if schema["pattern"].is_null() && schema["format"].is_null() => {
            let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).ok()?;
            Some(json!("trial".repeat(1 + least / 5)))
        }
        "array" if depth < DEPTH => Some(json!([example(&schema["items"], depth + 1)?])),
        "object" if depth < DEPTH => {
            if !schema["properties"].is_object() {
                let value = example(&schema["additionalProperties"], depth + 1)?;
                return Some(json!({"trial": value}));
            }
            let mut fields = Map::new();
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                fields.insert(name.to_owned(), example(&schema["properties"][name], depth + 1)?);
            }
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sample: &Value, schema: &Value) -> Vec<String> {
        let all = changes(0, &json!({"spec": sample}), &json!({"properties": {"spec": schema}}));
        all.iter().map(|change| format!("{}{change}", if change.is_hostile { "! " } else { "" })).collect()
    }

    #[test]
    fn each_field_is_set_otherwise_taken_away_or_set_where_it_was_not() {
        let schema = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 3},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "on": {"type": "boolean"},
            "title": {"type": "string"},
            "by-default": {"type": "string", "default": "x"},
        }});
        assert_eq!(
            texts(&json!({"size": 3, "mode": "a", "on": false}), &schema),
            [
                "spec.mode=\"b\"",
                "no spec.mode",
                "spec.on=true",
                "no spec.on",
                "spec.size=2",
                "spec.size=1",
                "spec.title=\"trial\"",
            ]
        );
    }

    #[test]
    fn the_schema_of_a_sample_is_that_of_its_group_kind_and_version() {
        let definitions = [json!({"spec": {"group": "g", "names": {"kind": "Page"}, "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": 1}}, {"name": "v2", "schema": {"openAPIV3Schema": 2}}]}})];
        let schema = |version: &str, kind: &str| {
            schema_of(&definitions, &json!({"apiVersion": version, "kind": kind})).cloned()
        };
        assert_eq!(schema("g/v2", "Page"), Some(json!(2)));
        assert_eq!((schema("h/v2", "Page"), schema("g/v2", "Book"), schema("v1", "Pod")), (None, None, None));
    }

    #[test]
    fn lists_get_and_lose_items_that_their_patterns_allow() {
        let schema = json!({"type": "object", "properties": {"languages": {"type": "array",
            "items": {"type": "string", "pattern": "^[a-z]{2}$"}}}});
        assert_eq!(
            texts(&json!({"languages": ["de", "fr"]}), &schema),
            [
                "spec.languages=[\"de\"]",
                "spec.languages=[]",
                "spec.languages=[\"de\",\"fr\",\"fs\"]",
                "no spec.languages"
            ]
        );
    }

    #[test]
    fn what_nobody_wants_is_marked_and_comes_last() {
        let schema = json!({"type": "object", "required": ["text", "size"], "properties": {
            "text": {"type": "string"}, "size": {"type": "integer"}}});
        let all = texts(&json!({"text": "a", "size": 1}), &schema);
        assert_eq!(
            all,
            [
                "spec.size=2",
                "spec.text=\"b\"",
                "! spec.size=0",
                "! spec.size=-1",
                "! spec.text=\"\"",
                "! spec.text=\"Not a name!\\n\""
            ]
        );
    }

    #[test]
    fn a_change_is_made_where_its_pointer_leads_to() {
        let object = json!({"spec": {"list": [{"a": 1}], "map": {"x/y": 1}}});
        let change = |field: &str, value: Option<&str>| {
            Change::one(0, field, value.map(str::to_owned), false).of(0, &object)["spec"].clone()
        };
        assert_eq!(change("/spec/list/0/a", Some("2")), json!({"list": [{"a": 2}], "map": {"x/y": 1}}));
        assert_eq!(change("/spec/map/x~1y", None), json!({"list": [{"a": 1}], "map": {}}));
        assert_eq!(change("/spec/new/deep", Some("true"))["new"], json!({"deep": true}));
        assert_eq!(change("/spec/list/7/a", Some("2")), object["spec"]);
    }

    #[test]
    fn several_changes_are_made_at_once_each_of_its_sample() {
        let one = Change::one(0, "/spec/a", Some("2".to_owned()), false);
        let other = Change::one(1, "/spec/b", None, false);
        let both = Change::together([&one, &other]);
        assert_eq!(both.to_string(), "spec.a=2 and no spec.b");
        let sample = json!({"spec": {"a": 1, "b": 1}});
        assert_eq!(both.of(0, &sample)["spec"], json!({"a": 2, "b": 1}));
        assert_eq!(both.of(1, &sample)["spec"], json!({"a": 1}));
        assert_eq!(Change::together([&one]), one);
    }

    #[test]
    fn a_field_overlaps_with_what_is_in_it_and_with_nothing_beside_it() {
        let change = |sample, field: &str| Change::one(sample, field, None, false);
        assert!(change(0, "/spec/a").overlaps(&change(0, "/spec/a/b")));
        assert!(change(0, "/spec/a/b").overlaps(&change(0, "/spec/a")));
        assert!(!change(0, "/spec/a").overlaps(&change(0, "/spec/ab")));
        assert!(!change(0, "/spec/a").overlaps(&change(1, "/spec/a")));
    }
}
