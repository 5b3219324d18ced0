//! The cost of walking an object or a schema grows with its size alone: what is twice as deep, wide or numerous costs twice
//! as much. One table for all that walks, and what does not belong into it below.

mod definitions;
mod kinds;
mod samples;

use kubewright_kinds::rules::Generation;
use kubewright_kinds::{Conversions, Kinds, KnownVersions, definition};
use kubewright_meta::cost::counted;
use kubewright_schema::fields::{Difference, Managed, Shape, Write, fields, merge, remove};
use kubewright_schema::{Candidate, Extent, Schema, patch};
use serde_json::{Map, Value, json};

use samples::{FORMS, Sample};

/// The steps that something takes.
fn steps<T>(work: impl FnOnce() -> T) -> u64 {
    let before = counted();
    drop(work());
    counted() - before
}

/// Twice the size costs at most twice as much, and a little; and something, or else nothing was counted.
#[track_caller]
fn grows_with_the_size_alone(what: &str, least: usize, cost: impl Fn(usize) -> u64) {
    assert_eq!(complaint(what, least, cost), None);
}

/// What is wrong with how a cost grows from the `least` size on. What doubles with each level is found out before it takes
/// for ever.
fn complaint(what: &str, least: usize, cost: impl Fn(usize) -> u64) -> Option<String> {
    let mut half = cost(least);
    if half < least as u64 {
        return Some(format!("{what}: only {half} steps are counted"));
    }
    for size in [2 * least, 4 * least, 8 * least] {
        let whole = cost(size);
        if whole * 10 > half * 24 + 200 {
            return Some(format!("{what}: {half} steps for size {}, {whole} for size {size}", size / 2));
        }
        half = whole;
    }
    None
}

/// What walks an object of a custom kind.
type Walk = fn(&Sample);

fn candidate(sample: &Sample) -> Candidate<'_> {
    Candidate {
        object: &sample.new,
        old: Some(&sample.old),
        part: Extent::Whole,
        version: kubewright_spec::Version::DEFAULT,
    }
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn shape(sample: &Sample) -> Shape<'_> {
    Shape::of(&*sample.kind)
}

const WALKS: [(&str, Walk); 19] = [
    ("comparing content", |sample| {
        assert!(Generation::Content.raised(&sample.new, &sample.old));
        assert!(!Generation::Content.raised(&sample.old, &sample.old));
    }),
    ("pruning", |sample| {
        assert_eq!(sample.kind.schema().decode(&mut sample.new.clone()), Ok(Vec::new()));
    }),
    ("defaulting", |sample| sample.kind.schema().default(&mut sample.new.clone())),
    ("checking values", |sample| {
        assert!(sample.kind.schema().value_errors(candidate(sample)).is_empty());
    }),
    ("checking values that are wrong", |sample| {
        assert!(!sample.strict.value_errors(Candidate { old: None, ..candidate(sample) }).is_empty());
    }),
    ("checking values that were wrong before", |sample| {
        let unchanged = Candidate { object: &sample.old, ..candidate(sample) };
        assert!(sample.strict.value_errors(unchanged).is_empty());
    }),
    ("looking for what stands twice", |sample| {
        assert!(sample.kind.schema().structure_errors(candidate(sample)).is_empty());
    }),
    ("asking rules that hold", |sample| {
        assert!(sample.kind.schema().rule_errors(candidate(sample), &[]).0.is_empty());
    }),
    ("asking rules that did not hold before", |sample| {
        let unchanged = Candidate { object: &sample.old, ..candidate(sample) };
        let (errors, warnings) = sample.refusing.rule_errors(unchanged, &[]);
        assert!(errors.is_empty() && !warnings.is_empty(), "{errors:?}");
    }),
    ("listing fields", |sample| drop(fields(shape(sample), &sample.new))),
    ("finding differences", |sample| {
        let found = Difference::between(shape(sample), &sample.old, &sample.new).expect("comparable");
        assert!(!found.is_empty());
        let found = Difference::between(shape(sample), &sample.old, &sample.old).expect("comparable");
        assert!(found.is_empty());
    }),
    ("merging a configuration", |sample| {
        assert_ne!(merge(shape(sample), &sample.old, &sample.new).as_ref(), Ok(&sample.old));
    }),
    ("removing fields", |sample| {
        let all = fields(shape(sample), &sample.new);
        let last = Difference::between(shape(sample), &sample.old, &sample.new).expect("comparable").changed;
        assert_ne!(remove(shape(sample), &sample.new, &last), sample.new);
        assert_ne!(remove(shape(sample), &sample.new, &all), sample.new);
    }),
    ("the algebra of sets", |sample| {
        let (one, other) = (fields(shape(sample), &sample.old), fields(shape(sample), &sample.new));
        let common = one.intersection(&other);
        assert!(other.difference(&one.union(&other)).is_empty());
        assert!(common.difference(&one).is_empty() && common.recursive_difference(&one).is_empty());
    }),
    ("owning what an update changes", |sample| {
        let (mut live, mut next) = (sample.old.clone(), sample.new.clone());
        write(sample, &Kinds::default(), |write| {
            write.update(None, &mut live);
            write.update(Some(&live), &mut next);
        });
        assert!(next["metadata"]["managedFields"].is_array());
    }),
    ("applying twice", |sample| {
        let kinds = Kinds::default();
        let once = applied(sample, &kinds, None, &sample.old);
        let twice = applied(sample, &kinds, Some(&once), &sample.new);
        let managed = Managed::decode(Some(&twice["metadata"]["managedFields"])).expect("it is read again");
        assert_eq!(managed.entries.len(), 1);
    }),
    ("a merge patch", |sample| {
        let mut target = sample.old.clone();
        patch::merge::apply(&mut target, members(&sample.new));
        assert_eq!(target, sample.new);
        patch::merge::apply(&mut json!({}), members(&sample.new));
    }),
    ("a strategic merge patch", |sample| {
        let mut target = members(&sample.old).clone();
        let root = sample.kind.schema().root();
        patch::strategic::apply(&mut target, members(&sample.new), root).expect("mergeable");
    }),
    // A rule is compiled for all that is below it, here as in kube-apiserver: these have theirs at the ends.
    ("checking a definition and the one it replaces", |sample| {
        let new = sample.definition(&sample.schema);
        let errors = definition::validate(&new, Some(&new));
        assert!(errors.is_empty(), "{errors:?}");
        let old = sample.definition(&json!({"type": "object"}));
        assert!(definition::validate(&new, Some(&old)).is_empty());
        assert!(Generation::Content.raised(&new, &old) && !Generation::Content.raised(&new, &new));
        drop(
            Schema::custom(&sample.schema)
                .openapi(kubewright_spec::Version::DEFAULT, &mut std::collections::BTreeMap::new()),
        );
    }),
];

fn write(sample: &Sample, kinds: &Kinds, work: impl FnOnce(Write<'_>)) {
    let versions = &KnownVersions { kinds, kind: &sample.kind, conversions: &Conversions::default() };
    work(Write { versions, manager: "m", subresource: "", now: "2026-01-01T00:00:00Z" });
}

fn applied(sample: &Sample, kinds: &Kinds, live: Option<&Value>, config: &Value) -> Value {
    let mut object = Value::Null;
    write(sample, kinds, |write| object = write.apply(live, config, true).expect("it is applied"));
    object
}

#[test]
fn the_cost_of_a_walk_grows_with_the_size_alone() {
    let mut complaints = Vec::new();
    for form in FORMS {
        for (what, walk) in WALKS {
            complaints.extend(complaint(&format!("{what}, {form:?}"), 6, |size| {
                let sample = Sample::of(form, size);
                steps(|| walk(&sample))
            }));
        }
    }
    assert_eq!(complaints, Vec::<String>::new());
}

#[test]
fn scalars_are_taken_out_of_a_list_one_by_one() {
    grows_with_the_size_alone("deleting from a list", 6, |size| {
        let items: Vec<String> = (0..size).map(|at| format!("example.com/{at}")).collect();
        let mut object = members(&json!({"metadata": {"finalizers": items}})).clone();
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": items}});
        let pods = Kinds::built_in().get("", "v1", "pods").expect("a built-in kind").clone();
        let cost =
            steps(|| patch::strategic::apply(&mut object, members(&patch), pods.schema().root()).unwrap());
        assert_eq!(object["metadata"]["finalizers"], json!([]));
        cost
    });
}
