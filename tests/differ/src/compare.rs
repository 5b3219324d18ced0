//! Comparing what two servers answered. What they choose by themselves (uids, revisions, times, addresses) becomes a token: the same value the same one.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use regex::Regex;

use crate::hold::Got;
use crate::ordered::Ordered;
use crate::proto;

/// A difference between two answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Where in the answer: `status`, `warnings`, `body.spec.replicas`.
    pub(crate) path: String,
    pub(crate) reference: String,
    pub(crate) ours: String,
}

/// The tokens of one server's values.
#[derive(Default)]
pub(crate) struct Tokens {
    uids: BTreeMap<String, usize>,
    revisions: BTreeMap<String, usize>,
    /// Whether which of a template's volumes it is does not count: kube-apiserver makes those of a StatefulSet's claims of a map.
    any_volume: bool,
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.\d+\.\d+\.\d+\b"));
static REVISION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(resourceVersion[\\"': ]*)\d+|(Too large resource version: |current: |in (?:object meta|precondition): |(?:precondition|record) \()\d+"#,
    )
});
static VOLUME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bvolumes\[\d+\]"));
/// What a watch asked for, and what there was.
static TOO_OLD: LazyLock<Regex> = LazyLock::new(|| pattern(r"too old resource version: \d+( \(\d+\))?"));
static GENERATED: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bgen-[a-z0-9]{5}\b"));
static UNDECLARED: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.[^ ]*: field not declared"));
static PORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b3[0-2]\d{3}\b"));
/// Objects that a message quotes, as Go prints them: the README lists them as different.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r#"Invalid value: "?(\{.*\}|\[.*\])"?: "#));
/// The same without quotes.
static QUOTED_PLAIN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"Invalid value: (\{.*?\}|\[.*?\]|<object>): "));
/// Differences between structs, as Go prints them.
static STRUCTS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?s)(for bound claims|previously negative\)|immutable after creation)\n.*"));
static SUFFIX: LazyLock<Regex> = LazyLock::new(|| pattern(r"kube-api-access-[a-z0-9]{5}"));
/// Tokens of accounts.
static JWT: LazyLock<Regex> = LazyLock::new(|| pattern(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"));
/// Types of objects in expressions, which have a number by chance.
static SELF_TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bselfType\d+"));
static GO_ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"0x[0-9a-f]{6,}"));

#[expect(clippy::expect_used, reason = "the patterns are constants, and a test compiles them")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

impl Tokens {
    fn text(&mut self, text: &str) -> String {
        let uids = &mut self.uids;
        let text = UID.replace_all(text, |found: &regex::Captures<'_>| {
            if found[0].starts_with("11111111") {
                return found[0].to_owned();
            }
            let next = uids.len();
            format!("<uid{}>", uids.entry(found[0].to_owned()).or_insert(next))
        });
        let text = TIME.replace_all(&text, |found: &regex::Captures<'_>| {
            if found[0].starts_with("2026-01-01") || found[0].starts_with("2020-01-01") {
                found[0].to_owned()
            } else {
                "<time>".into()
            }
        });
        let text = ADDRESS.replace_all(&text, "<ip>");
        let text = REVISION.replace_all(&text, "${1}${2}<rv>");
        let text = TOO_OLD.replace_all(&text, "too old resource version: <rv>");
        let text = PORT.replace_all(&text, "<port>");
        let text = GENERATED.replace_all(&text, "gen-<x>");
        let text = JWT.replace_all(&text, "<token>");
        let text = text.replace("kubernetes-admin", "admin");
        let text = QUOTED.replace_all(&text, "Invalid value: <object>: ");
        let text = STRUCTS.replace_all(&text, "<difference>");
        let text = SUFFIX.replace_all(&text, "kube-api-access-<x>");
        let text = SELF_TYPE.replace_all(&text, "<self>");
        let text = GO_ADDRESS.replace_all(&text, "<pointer>");
        if self.any_volume { VOLUME.replace_all(&text, "volumes[#]").into_owned() } else { text.into_owned() }
    }

    fn value(&mut self, key: &str, value: Ordered, list: bool) -> Ordered {
        match value {
            Ordered::Text(text) => match key {
                "uid" if text.len() < 30 => Ordered::Text(text),
                "resourceVersion" if list => Ordered::Text("<rv>".into()),
                "resourceVersion" => {
                    let next = self.revisions.len();
                    Ordered::Text(format!("<rv{}>", self.revisions.entry(text).or_insert(next)))
                }
                "continue" if !text.is_empty() => Ordered::Text("<continue>".into()),
                _ => Ordered::Text(self.text(&text)),
            },
            Ordered::Number(_) if ["nodePort", "healthCheckNodePort"].contains(&key) => {
                Ordered::Text("<port>".into())
            }
            Ordered::Number(_) if key == "remainingItemCount" => Ordered::Text("<count>".into()),
            Ordered::List(items) => {
                Ordered::List(items.into_iter().map(|item| self.value(key, item, false)).collect())
            }
            Ordered::Object(members) => {
                let is_list = members.iter().any(|(key, _)| key == "items" || key == "rows")
                    || members
                        .iter()
                        .any(|(key, value)| key == "kind" && value.text().is_some_and(is_list_kind));
                let list = (list && key == "metadata") || is_list;
                Ordered::Object(
                    members
                        .into_iter()
                        .map(|(key, value)| (self.text(&key), self.value(&key, value, list)))
                        .collect(),
                )
            }
            other => other,
        }
    }
}

/// Whether the order of an object's fields is compared.
pub(crate) static ORDER: AtomicBool = AtomicBool::new(false);

/// What differs between two answers to one request.
pub(crate) fn compare(
    reference: &Got,
    ours: &Got,
    theirs: &mut Tokens,
    own: &mut Tokens,
    stream: bool,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for tokens in [&mut *theirs, &mut *own] {
        tokens.any_volume = reference.sent.path.contains("/statefulsets");
    }
    if reference.status != ours.status {
        found.push(difference(
            "status",
            &format!("{} {}", reference.status, brief(&reference.body)),
            &format!("{} {}", ours.status, brief(&ours.body)),
        ));
        return found;
    }
    if reference.media != ours.media {
        found.push(difference("content-type", &reference.media, &ours.media));
    }
    let warnings = |got: &Got, tokens: &mut Tokens| -> Vec<String> {
        got.warnings.iter().map(|text| tokens.text(text)).collect()
    };
    let (mut left, mut right) = (warnings(reference, theirs), warnings(ours, own));
    // What a patch has made is looked through in the order of Go's structs there, and a schema in that of its maps.
    for told in [&mut left, &mut right] {
        if told
            .iter()
            .all(|warning| warning.contains("unknown field") || warning.contains("unrecognized format"))
        {
            told.sort();
        }
    }
    if left != right {
        found.push(difference("warnings", &left.join(" | "), &right.join(" | ")));
    }
    if stream && reference.sent.path.contains("timeoutSeconds=-1") {
        // It is over before it begins: whether kube-apiserver tells of something first is chance.
    } else if stream {
        let (left, right) = (events(&reference.body, theirs), events(&ours.body, own));
        if left.len() != right.len() {
            found.push(difference("events", &names(&left), &names(&right)));
        }
        for (at, (left, right)) in left.iter().zip(&right).enumerate() {
            differ(&format!("event{at}"), left, right, &mut found);
        }
    } else if reference.media.contains("json") {
        match (parse(&reference.body), parse(&ours.body)) {
            (Some(left), Some(right)) => {
                differ("body", &theirs.value("", left, false), &own.value("", right, false), &mut found);
            }
            (None, None) => {}
            _ => found.push(difference("body", &brief(&reference.body), &brief(&ours.body))),
        }
        let end = |got: &Got| format!("{:?}", got.body.last().map(|byte| char::from(*byte)));
        if end(reference) != end(ours) {
            found.push(difference("end", &end(reference), &end(ours)));
        }
    } else if reference.media.contains("protobuf") {
        let read = |got: &Got| parse(proto::read(&got.body)?.to_string().as_bytes());
        match (read(reference), read(ours)) {
            (Some(left), Some(right)) => {
                differ("protobuf", &theirs.value("", left, false), &own.value("", right, false), &mut found);
            }
            (None, None) => {}
            (left, right) => {
                let told =
                    |side: Option<Ordered>| side.map_or_else(|| "(unread)".into(), |body| body.short());
                found.push(difference("protobuf", &told(left), &told(right)));
            }
        }
    } else if reference.media.contains("yaml")
        && let (Some(left), Some(right)) = (of_yaml(&reference.body), of_yaml(&ours.body))
    {
        differ("yaml", &theirs.value("", left, false), &own.value("", right, false), &mut found);
    } else {
        // YAML has more than one way to write a text.
        let text = |got: &Got, tokens: &mut Tokens| {
            tokens.text(&String::from_utf8_lossy(&got.body).replace(['"', '\'', '\\'], ""))
        };
        let (left, right) = (text(reference, theirs), text(ours, own));
        // And long ones are folded.
        let words = |text: &str| {
            QUOTED_PLAIN
                .replace_all(
                    &text.split_whitespace().collect::<Vec<_>>().join(" "),
                    "Invalid value: <object>: ",
                )
                .split_whitespace()
                .filter(|word| {
                    !word.chars().all(|one| one.is_ascii_digit()) && ![">-", ">", "|-", "|"].contains(word)
                })
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let (mut left, mut right) = (words(&left), words(&right));
        // Errors about several members of a map come in any order.
        if reference.status >= 400 {
            left.sort();
            right.sort();
        }
        if left != right {
            let at = left
                .iter()
                .zip(&right)
                .position(|(left, right)| left != right)
                .unwrap_or(left.len().min(right.len()));
            let around = |words: &[String]| {
                words[at.saturating_sub(4).min(words.len())..(at + 6).min(words.len())].join(" ")
            };
            found.push(difference("text", &around(&left), &around(&right)));
        }
    }
    found
}

fn parse(body: &[u8]) -> Option<Ordered> {
    serde_json::from_slice(body).ok()
}

/// A YAML body as JSON.
fn of_yaml(body: &[u8]) -> Option<Ordered> {
    let parsed = kubewright_codec::yaml::decode(body).ok()?;
    parse(parsed.value.to_string().as_bytes())
}

fn events(body: &[u8], tokens: &mut Tokens) -> Vec<Ordered> {
    let is_bookmark = |event: &Ordered| event.get("type").and_then(Ordered::text) == Some("BOOKMARK");
    let read = body.split(|byte| *byte == b'\n').filter_map(parse);
    let mut events: Vec<Ordered> = read
        .map(|event| {
            let event = if is_bookmark(&event) { of_any_revision(event) } else { event };
            tokens.value("", event, false)
        })
        .collect();
    // Bookmarks come by the clock, but for the one that ends the initial events.
    let mut seen = 0;
    events.retain(|event| {
        seen += usize::from(is_bookmark(event));
        !is_bookmark(event) || seen == 1
    });
    events
}

/// Whether a kind is one of lists, which protobuf leaves without items where there are none.
fn is_list_kind(kind: &str) -> bool {
    kind == "Table" || kind.ends_with("List")
}

/// A bookmark tells the revision of the whole store, which others write to.
fn of_any_revision(value: Ordered) -> Ordered {
    match value {
        Ordered::List(items) => Ordered::List(items.into_iter().map(of_any_revision).collect()),
        Ordered::Object(members) => {
            let members = members.into_iter().filter(|(key, _)| key != "resourceVersion");
            Ordered::Object(members.map(|(key, value)| (key, of_any_revision(value))).collect())
        }
        other => other,
    }
}

fn names(events: &[Ordered]) -> String {
    let name = |event: &Ordered| {
        let kind = event.get("type").and_then(Ordered::text).unwrap_or("?").to_owned();
        let name = event
            .get("object")
            .and_then(|object| object.get("metadata"))
            .and_then(|metadata| metadata.get("name"))
            .and_then(Ordered::text)
            .unwrap_or("")
            .to_owned();
        format!("{kind} {name}")
    };
    events.iter().map(name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn differ(path: &str, reference: &Ordered, ours: &Ordered, found: &mut Vec<Difference>) {
    match (reference, ours) {
        (Ordered::Object(left), Ordered::Object(right)) => {
            if is_failure(reference) && is_failure(ours) && same_failure(reference, ours) {
                return;
            }
            for (key, value) in left {
                if key == "uid" && path.ends_with("spec") && value.text() == Some("admin") {
                    // Who asks for a certificate: the reference's list of tokens gives its administrator a uid.
                    continue;
                }
                match ours.get(key) {
                    Some(other) => {
                        if path.ends_with("metadata") && key == "managedFields" && same_managers(value, other)
                        {
                            continue;
                        }
                        let path = format!("{path}.{key}");
                        match (of_a_definition(value), of_a_definition(other)) {
                            (Some(left), Some(right)) => differ(&path, &left, &right, found),
                            _ => differ(&path, value, other, found),
                        }
                    }
                    None => found.push(difference(&format!("{path}.{key}"), &value.short(), "(absent)")),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| reference.get(key).is_none()) {
                found.push(difference(&format!("{path}.{key}"), "(absent)", &value.short()));
            }
            if !ORDER.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            let order = |members: &[(String, Ordered)]| {
                members.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
            };
            let (left, right) = (order(left), order(right));
            if left.len() == right.len() && left != right && left.iter().all(|key| right.contains(key)) {
                found.push(difference(&format!("{path}(order)"), &left.join(","), &right.join(",")));
            }
        }
        (Ordered::List(left), Ordered::List(right)) => {
            if left.len() != right.len() {
                found.push(difference(path, &reference.short(), &ours.short()));
                return;
            }
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                differ(&format!("{path}.{at}"), left, right, found);
            }
        }
        _ if reference == ours => {}
        _ if path.contains(".cells.") && is_age(reference) && is_age(ours) => {}
        _ => found.push(difference(path, &reference.short(), &ours.short())),
    }
}

/// The conditions of a definition by their types: several controllers of kube-apiserver write them at the same time. Other values are none.
fn of_a_definition(value: &Ordered) -> Option<Ordered> {
    const TYPES: [&str; 3] = ["Established", "KubernetesAPIApprovalPolicyConformant", "NamesAccepted"];
    let Ordered::List(conditions) = value else { return None };
    let of = |condition: &Ordered| {
        let name = condition.get("type").and_then(Ordered::text)?;
        TYPES.iter().position(|known| *known == name)
    };
    let mut found = conditions
        .iter()
        .map(|condition| Some((of(condition)?, condition.clone())))
        .collect::<Option<Vec<_>>>()?;
    found.sort_by_key(|(at, _)| *at);
    Some(Ordered::List(found.into_iter().map(|(_, condition)| condition).collect()))
}

/// Entries written in the same second come in an order that the second decides.
fn same_managers(reference: &Ordered, ours: &Ordered) -> bool {
    let sorted = |list: &Ordered| match list {
        Ordered::List(items) => {
            let mut texts: Vec<String> = items.iter().map(|item| item.value().to_string()).collect();
            texts.sort();
            texts
        }
        _ => Vec::new(),
    };
    sorted(reference) == sorted(ours)
}

fn is_age(cell: &Ordered) -> bool {
    cell.text().is_some_and(|text| text.ends_with('s') && text.len() < 5)
}

fn is_failure(body: &Ordered) -> bool {
    body.get("kind").and_then(Ordered::text) == Some("Status")
}

/// Go's maps have no order: neither have errors about several of their members.
fn same_failure(reference: &Ordered, ours: &Ordered) -> bool {
    let causes = |body: &Ordered| {
        let list = body.get("details").and_then(|details| details.get("causes")).cloned();
        let mut texts = match list {
            Some(Ordered::List(causes)) => causes.iter().map(|cause| cause.value().to_string()).collect(),
            _ => Vec::new(),
        };
        texts.sort();
        texts
    };
    let letters = |body: &Ordered| {
        let mut letters: Vec<char> =
            body.get("message").and_then(Ordered::text).unwrap_or_default().chars().collect();
        letters.sort_unstable();
        letters
    };
    let message = |body: &Ordered| {
        UNDECLARED
            .replace_all(
                body.get("message").and_then(Ordered::text).unwrap_or_default(),
                "<field>: field not declared",
            )
            .into_owned()
    };
    // Fields come in the order of Go's map, and the first that is not declared ends the search.
    let undeclared = |body: &Ordered| {
        let text = message(body);
        text.starts_with("failed to create typed patch object")
            && text.contains("<field>: field not declared")
    };
    if undeclared(reference) && undeclared(ours) && reference.get("code") == ours.get("code") {
        return true;
    }
    if message(reference).contains("<field>: field not declared")
        && message(reference) == message(ours)
        && reference.get("code") == ours.get("code")
    {
        return true;
    }
    let several = causes(reference).len() > 1
        || reference.get("message").and_then(Ordered::text).is_some_and(|text| text.contains(": errors:\n"));
    several
        && causes(reference) == causes(ours)
        && letters(reference) == letters(ours)
        && ["reason", "code", "status"].iter().all(|key| reference.get(key) == ours.get(key))
}

fn brief(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|body| body["message"].as_str().map(str::to_owned));
    message.unwrap_or_else(|| text.into_owned()).chars().take(300).collect()
}

fn difference(path: &str, reference: &str, ours: &str) -> Difference {
    Difference { path: path.to_owned(), reference: reference.to_owned(), ours: ours.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(body: &str) -> Ordered {
        serde_json::from_str(body).expect("JSON")
    }

    fn found(reference: &str, ours: &str) -> Vec<Difference> {
        let mut found = Vec::new();
        differ("body", &got(reference), &got(ours), &mut found);
        found
    }

    #[test]
    fn errors_about_members_of_a_map_come_in_any_order_and_so_do_their_fields() {
        let one = r#"{"kind":"Status","message":"[a: x, b: y]","details":{"causes":[{"reason":"R","field":"a"},{"reason":"R","field":"b"}]}}"#;
        let other = r#"{"message":"[b: y, a: x]","kind":"Status","details":{"causes":[{"field":"b","reason":"R"},{"field":"a","reason":"R"}]}}"#;
        assert_eq!(found(one, other), []);
        assert!(!found(one, &other.replace("\"b\"", "\"c\"")).is_empty());
    }

    #[test]
    fn a_list_without_items_is_one() {
        let mut tokens = Tokens::default();
        let mut version = |kind: &str, revision: u8| {
            let body = format!(r#"{{"kind":"{kind}","metadata":{{"resourceVersion":"{revision}"}}}}"#);
            tokens.value("", got(&body), false).get("metadata").cloned()
        };
        assert_eq!(version("PodList", 1), version("PodList", 2));
        assert_ne!(version("Pod", 1), version("Pod", 2));
    }

    #[test]
    fn the_volumes_of_a_sets_claims_come_in_any_order() {
        let mut tokens = Tokens { any_volume: true, ..Tokens::default() };
        let mut told =
            |index: u8| tokens.text(&format!("spec.template.spec.volumes[{index}].name: Required value"));
        assert_eq!(told(0), told(1));
    }

    #[test]
    fn the_conditions_of_a_definition_come_in_any_order() {
        let body = |first: &str, second: &str| {
            format!(r#"{{"status":{{"conditions":[{{"type":"{first}"}},{{"type":"{second}"}}]}}}}"#)
        };
        assert!(
            found(&body("Established", "NamesAccepted"), &body("NamesAccepted", "Established")).is_empty()
        );
        assert_eq!(
            found(&body("Established", "NamesAccepted"), &body("NamesAccepted", "NamesAccepted")).len(),
            1
        );
        assert_eq!(found(&body("Ready", "Synced"), &body("Synced", "Ready")).len(), 2);
    }

    #[test]
    fn a_bookmark_is_of_any_revision() {
        let bookmark = |revision: u8| {
            format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{revision}"}}}}}}"#)
        };
        let events = |revision| events(bookmark(revision).as_bytes(), &mut Tokens::default());
        assert_eq!(events(1), events(2));
    }
}
