//! Values that are made of others: what only says how often something was done is another number after another story, and so are the
//! names made of it; hashes are others where what they are made of is told for itself, or is not compared; and a history that is kept.

use serde_json::Value;

use crate::{
    state::{Difference, State, Volatile, before_hash, differences},
    story::ObjectId,
};

/// How the names of fields end that count what was done.
const COUNTERS: [&str; 6] = ["revision", "generation", "attempt", "attempts", "retries", "restarts"];

/// The differences that are left when objects whose names only have a higher number are compared with those that they follow
/// (`web-2` of `web-1`), and what counts may be higher.
pub(super) fn without(
    mut all: Vec<Difference>,
    expected: &State,
    reached: &State,
    volatile: &Volatile,
) -> Vec<Difference> {
    let mut followed: Vec<(ObjectId, ObjectId)> = Vec::new();
    let missing: Vec<ObjectId> = all
        .iter()
        .filter(|one| one.field.is_empty() && one.reached.is_none())
        .map(|one| one.id.clone())
        .collect();
    for old in missing {
        let follows =
            |one: &&Difference| one.field.is_empty() && one.expected.is_none() && is_followed(&old, &one.id);
        let Some(new) = all.iter().find(follows).map(|one| one.id.clone()) else { continue };
        all.retain(|one| !(one.field.is_empty() && (one.id == old || one.id == new)));
        followed.push((old, new));
    }
    for (old, new) in &followed {
        if let (Some(one), Some(other)) = (expected.get(old), reached.get(new)) {
            let state = |object: &Value| State::from([(old.clone(), object.clone())]);
            all.extend(differences(&state(one), &state(other), volatile));
        }
    }
    all.retain(|one| !counts(one) && !is_renamed(one, &followed) && !is_history(one, reached));
    if all.iter().all(is_hash) { Vec::new() } else { all }
}

/// Whether a name is another one with a higher number at its end.
fn is_followed(old: &ObjectId, new: &ObjectId) -> bool {
    let (Some((stem, number)), Some((other, next))) = (numbered(&old.key), numbered(&new.key)) else {
        return false;
    };
    old.collection == new.collection && stem == other && next > number
}

/// A name that ends with a number, and what stands before it: `web-` and 2, `release.v` and 1.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_set_off = stem.ends_with('-') || stem.ends_with(".v");
    name[stem.len()..].parse().ok().filter(|_| is_set_off).map(|number| (stem, number))
}

/// Whether a place counts, and is further on than was expected.
fn counts(one: &Difference) -> bool {
    let is_asked_for = one.field.starts_with("/spec") || one.field.starts_with("/data");
    let name = one.field.rsplit('/').next().unwrap_or_default().to_lowercase();
    let number = |value: &Option<String>| value.as_deref()?.trim_matches('"').parse::<u64>().ok();
    let is_further = match (number(&one.expected), number(&one.reached)) {
        (Some(expected), Some(reached)) => reached > expected,
        _ => false,
    };
    !is_asked_for && is_further && COUNTERS.iter().any(|counter| name.ends_with(counter))
}

/// Whether an object that is too many is what a ReplicaSet that is not used any more is kept for: to go back.
fn is_history(one: &Difference, reached: &State) -> bool {
    let is_too_many = one.field.is_empty() && one.expected.is_none();
    is_too_many
        && one.id.collection == "apps/replicasets"
        && reached.get(&one.id).is_some_and(|object| object["spec"]["replicas"] == 0)
}

/// Whether an object that is too many has the name of one that is expected but for a hash at its end: it was made of another spec.
pub(super) fn is_earlier_version(one: &Difference, expected: &State) -> bool {
    let stem = |id: &ObjectId| before_hash(id).map(str::to_owned).zip(Some(id.collection.clone()));
    let is_too_many = one.field.is_empty() && one.expected.is_none();
    is_too_many && stem(&one.id).is_some_and(|own| expected.keys().any(|id| stem(id).as_ref() == Some(&own)))
}

/// Whether a place that nobody asks for notes what was handled, on both sides: a hash, or parts of which some are one, and numbers that are
/// higher.
pub(super) fn is_hash(one: &Difference) -> bool {
    let (Some(expected), Some(reached)) = (&one.expected, &one.reached) else { return false };
    if one.field.starts_with("/spec") || one.field.starts_with("/data") {
        return false;
    }
    let parts = |text: &'_ String| -> Vec<String> {
        let parts = text.trim_matches('"').split(|letter: char| !letter.is_alphanumeric());
        parts.map(str::to_owned).collect()
    };
    let is_digest = |text: &str| text.len() >= 8 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    let number = |text: &str| text.parse::<u64>().ok();
    let (expected, reached) = (parts(expected), parts(reached));
    let is_noted = |(one, other): (&String, &String)| {
        let is_further = number(one).zip(number(other)).is_some_and(|(one, other)| other >= one);
        one == other || is_further || is_digest(one) && is_digest(other)
    };
    // What stands before a digest, as `sha256` does, need not be there on both sides.
    let last = |parts: &[String]| parts.last().is_some_and(|last| is_digest(last));
    last(&expected)
        && last(&reached)
        && (expected.len() != reached.len() || expected.iter().zip(&reached).all(is_noted))
}

/// Whether a text is the same with the names that others had in their place.
fn is_renamed(one: &Difference, followed: &[(ObjectId, ObjectId)]) -> bool {
    let (Some(expected), Some(reached)) = (&one.expected, &one.reached) else { return false };
    let is_number = |text: &str, id: &ObjectId| {
        let said = text.trim_matches('"').parse::<u64>().ok();
        said.is_some() && said == numbered(id.name()).map(|(_, number)| number)
    };
    followed.iter().any(|(old, new)| {
        // The whole name, or its number alone.
        reached.replace(new.name(), old.name()) == *expected
            || is_number(expected, old) && is_number(reached, new)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(expected: &[(&str, Value)], reached: &[(&str, Value)]) -> Vec<String> {
        let state = |objects: &[(&str, Value)]| -> State {
            let of = |(name, object): &(&str, Value)| {
                let mut object = object.clone();
                object["metadata"]["name"] = (*name).into();
                (ObjectId::new("g/requests", format!("a/{name}")), object)
            };
            objects.iter().map(of).collect()
        };
        let (expected, reached) = (state(expected), state(reached));
        let volatile = Volatile::default();
        let all = differences(&expected, &reached, &volatile);
        without(all, &expected, &reached, &volatile).iter().map(Difference::text).collect()
    }

    #[test]
    fn an_object_with_the_next_number_is_compared_with_the_one_that_it_follows() {
        let of = |owner: &str, days: u8| json!({"spec": {"days": days, "of": owner}});
        assert_eq!(left(&[("web-1", of("web-1", 9))], &[("web-2", of("web-2", 9))]), [""; 0]);
        let told = left(&[("web-1", of("web-1", 9))], &[("web-2", of("web-2", 3))]);
        assert_eq!(told, ["requests.g a/web-1: /spec/days is 3, not 9"]);
        let labelled = |version: &str| json!({"metadata": {"labels": {"version": version}}});
        assert_eq!(left(&[("web.v1", labelled("1"))], &[("web.v2", labelled("2"))]), [""; 0]);
        assert_eq!(left(&[("web.v1", labelled("1"))], &[("web.v2", labelled("3"))]).len(), 1);
        let told = left(&[("web-2", of("x", 9))], &[("web-1", of("x", 9))]);
        assert_eq!(told.len(), 2, "an earlier one: {told:?}");
        assert_eq!(left(&[("web1", of("x", 9))], &[("web2", of("x", 9))]).len(), 2, "a name, and no number");
        let both = [("web-1", of("x", 9)), ("web-2", of("x", 9))];
        assert_eq!(left(&[("web-1", of("x", 9))], &both).len(), 1, "none has gone");
    }

    #[test]
    fn a_revision_may_be_higher_and_nothing_else() {
        let status = |revision: u8| json!({"status": {"revision": revision}});
        assert_eq!(left(&[("a", status(1))], &[("a", status(3))]), [""; 0]);
        assert_eq!(left(&[("a", status(3))], &[("a", status(1))]).len(), 1);
        let noted = |value: &str| json!({"metadata": {"annotations": {"x.io/certificate-revision": value}}});
        assert_eq!(left(&[("a", noted("1"))], &[("a", noted("2"))]), [""; 0]);
        let wanted = |revision: u8| json!({"spec": {"revision": revision}});
        assert_eq!(left(&[("a", wanted(1))], &[("a", wanted(2))]).len(), 1, "what is asked for");
        let of_history = |revision: u8| json!({"data": {}, "revision": revision});
        assert_eq!(left(&[("a", of_history(1))], &[("a", of_history(2))]), [""; 0]);
        let size = |size: u8| json!({"status": {"size": size}});
        assert_eq!(left(&[("a", size(1))], &[("a", size(2))]).len(), 1);
    }

    #[test]
    fn what_was_made_of_another_spec_has_another_hash_at_the_end_of_its_name() {
        let id = |name: &str| ObjectId::new("/configmaps", format!("a/{name}"));
        let expected = State::from([(id("collector-4a7f1c02"), json!({}))]);
        let too_many = |name: &str| Difference {
            id: id(name),
            field: String::new(),
            expected: None,
            reached: Some("{}".to_owned()),
        };
        assert!(is_earlier_version(&too_many("collector-99bb01aa"), &expected));
        assert!(!is_earlier_version(&too_many("other-99bb01aa"), &expected));
        assert!(!is_earlier_version(&too_many("collector-headless"), &expected));
    }

    #[test]
    fn a_hash_that_differs_alone_says_nothing() {
        let hashed = |hash: &str, size: u8| json!({"metadata": {"annotations": {"input-hash": hash}}, "spec": {"size": size}});
        assert_eq!(left(&[("a", hashed("15270219", 1))], &[("a", hashed("sha256:0aff3300", 1))]), [""; 0]);
        assert_eq!(left(&[("a", hashed("15270219", 1))], &[("a", hashed("99270219", 2))]).len(), 2);
        assert_eq!(left(&[("a", hashed("15270219", 1))], &[("a", hashed("none", 1))]).len(), 1);
        let synced = |version: &str| json!({"status": {"synced": version}});
        assert_eq!(left(&[("a", synced("1-f47fe3c0aa"))], &[("a", synced("3-a2d0883abb"))]), [""; 0]);
        assert_eq!(left(&[("a", synced("1-f47fe3c0aa"))], &[("a", synced("x-a2d0883abb"))]).len(), 1);
    }
}
