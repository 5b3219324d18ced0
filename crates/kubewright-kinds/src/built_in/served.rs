//! What kube-apiserver serves by default, Kubewright serves.

use std::collections::BTreeSet;

use kubewright_spec::Version;

use super::BuiltIn;
use crate::{Kinds, Role, Verbs};

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
fn everything_that_a_version_serves_by_default_is_served_and_nothing_else() {
    for version in Version::ALL {
        let (reference, ours) = (reference(version), ours(version));
        assert_eq!(reference.difference(&ours).collect::<Vec<_>>(), Vec::<&String>::new(), "{version}");
        assert_eq!(ours.difference(&reference).collect::<Vec<_>>(), Vec::<&String>::new(), "{version}");
    }
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
    for kind in Version::ALL
        .into_iter()
        .flat_map(|version| Kinds::of_version(version).iter().cloned().collect::<Vec<_>>())
    {
        assert!(kind.schema().root().properties.contains_key("metadata"), "{kind:?}");
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
        let is_read = kind.behaviour.role == Role::ComponentStatus;
        assert_eq!(is_read, kind.verbs == Verbs::ReadOnly, "{}", kind.kind);
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
