//! What kube-apiserver serves and Kubewright does not: the list of gaps.

use std::collections::BTreeSet;

use kubewright_spec::{Version, is_served};

use super::BuiltIn;
use crate::{Kinds, Role, Verbs};

/// What is not served, each with its group and version.
const GAPS: [&str; 1] = [
    "v1 componentstatuses",
];

fn reference(version: Version) -> BTreeSet<String> {
    let sections = version.tables().resources.split("\n[").skip(1);
    let sections = sections.filter_map(|section| section.split_once("]\n"));
    let names = |(version, lines): (&str, &str)| -> Vec<String> {
        let names = lines.lines().filter_map(|line| line.split(' ').next());
        names.map(|name| format!("{version} {name}")).collect()
    };
    sections.flat_map(names).collect()
}

fn ours(version: Version) -> BTreeSet<String> {
    let kinds = Kinds::of_version(version);
    kinds
        .iter()
        .flat_map(|kind| {
            let name = format!("{} {}", kind.api_version(), kind.plural);
            let below = kind.subresources.iter().map(|part| format!("{name}/{}", part.name()));
            below.chain([name.clone()]).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn everything_but_the_known_gaps_is_served() {
    let (reference, ours) = (reference(Version::default()), ours(Version::default()));
    assert_eq!(reference.difference(&ours).collect::<Vec<_>>(), GAPS);
    assert_eq!(ours.difference(&reference).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn each_kind_has_one_descriptor_and_each_descriptor_is_listed() {
    let served: BTreeSet<_> = Version::ALL
        .into_iter()
        .flat_map(ours)
        .filter(|name| name.split(' ').nth(1).is_some_and(|name| !name.contains('/')))
        .collect();
    let described: Vec<String> =
        BuiltIn::all().map(|kind| format!("{} {}", kind.api_version(), kind.plural)).collect();
    assert_eq!(described.iter().collect::<BTreeSet<_>>(), served.iter().collect());
    assert_eq!(described.len(), served.len(), "a kind is listed twice");
    assert_eq!(files_of_descriptors(), described.len());
}

/// A name that the table of types does not have would stand for any value.
#[test]
fn each_kind_has_a_schema_with_its_metadata() {
    for kind in BuiltIn::all() {
        for version in
            Version::ALL.into_iter().filter(|version| is_served(*version, &kind.api_version(), kind.plural))
        {
            let schema = kind.schema(version);
            assert!(schema.root().properties.contains_key("metadata"), "{}", kind.kind);
        }
    }
}

#[test]
fn what_is_only_created_says_how_it_is_answered() {
    for kind in BuiltIn::all() {
        let is_answered = matches!(
            kind.behaviour.role,
            Role::Binding | Role::TokenReview | Role::SelfSubjectReview | Role::AccessReview(_)
        );
        assert_eq!(is_answered, kind.verbs == Verbs::CreateOnly, "{}", kind.kind);
    }
}

/// The files in the folders of groups: those beside a `mod.rs` that lists kinds.
fn files_of_descriptors() -> usize {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/built_in");
    let sources = |folder: &std::path::Path| -> Vec<_> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let lists = |folder: &std::path::PathBuf| {
        std::fs::read_to_string(folder.join("mod.rs")).is_ok_and(|text| text.contains("static KINDS"))
    };
    let groups = sources(here.as_ref()).into_iter().filter(lists);
    groups.map(|group| sources(&group).len() - 1).sum()
}
