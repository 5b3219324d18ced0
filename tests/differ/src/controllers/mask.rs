//! Generated names, hashes, uids, times and addresses as words that are the same on both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// What a story's names and uids stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    words: BTreeMap<String, Known>,
    uids: BTreeMap<String, (String, String)>,
    prefixes: BTreeSet<String>,
    counts: BTreeMap<String, usize>,
}

/// What a name stands for: a word, or a name made after another one, which may come to be known later.
#[derive(Clone, Debug)]
enum Known {
    Word(String),
    Generated(String),
}

#[expect(clippy::expect_used, reason = "constants, compiled by the tests")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"[a-z0-9][a-z0-9.-]*[a-z0-9-]"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.\d+\.\d+\.\d+\b"));
static TAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(.*-)[bcdfghjklmnpqrstvwxz2456789]{5}$"));
static HASHED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^([a-z][a-z0-9]*-)[bcdfghjklmnpqrstvwxz2456789]{6,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?$")
});
static TOKEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"kube-api-access-[a-z0-9]{5}"));
static NODE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(kubewright-)?node-\d+$"));

/// Who makes pods whose names end with letters of chance.
const OWNERS: &[&str] = &["ReplicaSet", "ReplicationController", "DaemonSet", "Job"];

impl Names {
    /// Learns of an object.
    pub(crate) fn learn(&mut self, kind: &str, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, uid) = (text(&object["metadata"]["name"]), text(&object["metadata"]["uid"]));
        if self.uids.contains_key(&uid) || kind == "Event" {
            return;
        }
        let generate = text(&object["metadata"]["generateName"]);
        if kind == "ReplicaSet" || kind == "ControllerRevision" {
            self.hashed(kind, &name);
        } else if !generate.is_empty() && TAIL.is_match(&name) && name.starts_with(&generate) {
            let known = Known::Generated(generate.trim_end_matches('-').to_owned());
            self.words.insert(name.clone(), known);
            self.prefixes.insert(generate);
        }
        if OWNERS.contains(&kind) {
            // Events tell of pods that were refused.
            self.prefixes.insert(format!("{name}-"));
        }
        self.uids.insert(uid, (kind.to_owned(), name));
    }

    /// A name that ends with a hash: the number of its kind under that owner.
    fn hashed(&mut self, kind: &str, name: &str) {
        let Some((base, hash)) = name.rsplit_once('-') else { return };
        if hash.len() < 5 || self.words.contains_key(name) {
            return;
        }
        let letter = if kind == "ReplicaSet" { "rs" } else { "revision" };
        let count = self.counts.entry(format!("{kind}/{base}")).or_default();
        *count += 1;
        self.words.insert(name.to_owned(), Known::Word(format!("{base}-<{letter}{count}>")));
    }

    fn known(&self, word: &str) -> Option<String> {
        Some(match self.words.get(word)? {
            Known::Word(known) => known.clone(),
            Known::Generated(whole) => {
                format!("{}-<p>", self.known(whole).unwrap_or_else(|| whole.clone()))
            }
        })
    }

    /// A text with everything masked.
    pub(crate) fn text(&self, run: &str, text: &str) -> String {
        if text.len() > 5000 {
            return "<long>".into();
        }
        let text = text.replace(run, "@run@");
        let text = UID.replace_all(&text, |found: &Captures<'_>| match self.uids.get(&found[0]) {
            Some((kind, name)) => {
                format!("<uid {kind}/{}>", self.known(name).unwrap_or_else(|| name.replace(run, "@run@")))
            }
            None => "<uid>".to_owned(),
        });
        let text = TIME.replace_all(&text, "<time>");
        let text = ADDRESS.replace_all(&text, "<ip>");
        let text = TOKEN.replace_all(&text, "kube-api-access-<x>");
        WORD.replace_all(&text, |found: &Captures<'_>| self.word(&found[0])).into_owned()
    }

    fn word(&self, word: &str) -> String {
        if let Some(known) = self.known(word) {
            return known;
        }
        if let Some(known) = word.strip_suffix('-').and_then(|word| self.known(word)) {
            return format!("{known}-");
        }
        if NODE.is_match(word) {
            return "<node>".into();
        }
        if let Some(found) = TAIL.captures(word) {
            let whole = found[1].trim_end_matches('-');
            let known = self.known(whole);
            if known.is_some() || self.prefixes.contains(&found[1]) {
                return format!("{}-<p>", known.unwrap_or_else(|| whole.to_owned()));
            }
        }
        HASHED
            .replace(word, |found: &Captures<'_>| {
                format!("{}<h>{}", &found[1], if found.get(2).is_some() { "-<p>" } else { "" })
            })
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generated_names_are_masked_by_who_they_belong_to() {
        let mut names = Names::default();
        names.learn("ReplicaSet", &json!({"metadata": {"name": "web-7d9f8c6b5c", "uid": "u1"}}));
        names.learn(
            "Pod",
            &json!({"metadata": {"name": "web-7d9f8c6b5c-x2x4z", "generateName": "web-7d9f8c6b5c-", "uid": "u2"}}),
        );
        assert_eq!(names.text("c1r1a", "Created pod: web-7d9f8c6b5c-x2x4z"), "Created pod: web-<rs1>-<p>");
        assert_eq!(names.text("c1r1a", "pods \"web-7d9f8c6b5c-bcdfg\" is"), "pods \"web-<rs1>-<p>\" is");
        assert_eq!(names.text("c1r1a", "on c1r1a-a, node-1"), "on @run@-a, <node>");
    }
}
