//! What kube-apiserver serves and Kubewright does not: the list of gaps.

use std::collections::BTreeSet;

use super::Kinds;

const REFERENCE: &str = include_str!("served.txt");

/// What is not served, each with its group and version.
const GAPS: [&str; 8] = [
    "apiregistration.k8s.io/v1 apiservices",
    "apiregistration.k8s.io/v1 apiservices/status",
    "resource.k8s.io/v1 deviceclasses",
    "resource.k8s.io/v1 resourceclaims",
    "resource.k8s.io/v1 resourceclaims/status",
    "resource.k8s.io/v1 resourceclaimtemplates",
    "resource.k8s.io/v1 resourceslices",
    "v1 componentstatuses",
];

fn reference() -> BTreeSet<String> {
    let lines = REFERENCE.lines().filter(|line| !line.starts_with('#'));
    lines
        .flat_map(|line| {
            let mut words = line.split(' ');
            let version = words.next().unwrap_or_default();
            words.map(move |name| format!("{version} {name}"))
        })
        .collect()
}

fn ours() -> BTreeSet<String> {
    let kinds = Kinds::built_in();
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
    let (reference, ours) = (reference(), ours());
    assert_eq!(reference.difference(&ours).collect::<Vec<_>>(), GAPS);
    assert_eq!(ours.difference(&reference).collect::<Vec<_>>(), Vec::<&String>::new());
}
