//! From a picture to a report: the tree of an object and what it made, with the causes at each.

use std::collections::BTreeSet;

use crate::causes::{self, Around};
use crate::object::{Id, Object};
use crate::picture::Picture;
use crate::report::{Node, Report};

/// How deep the tree is.
const DEPTH: usize = 6;
/// So many objects with the same causes are listed, the others are counted.
const FEW: usize = 2;

/// Explains the object of a picture. A pure function: the same picture gives the same report.
#[must_use]
pub fn explain(picture: &Picture) -> Report {
    let mut seen = BTreeSet::new();
    let object = match picture.target() {
        Some(target) => node(picture, target, true, DEPTH, &mut seen),
        None => empty(picture.target.clone()),
    };
    let owners = picture.target().map(|target| owners(picture, target)).unwrap_or_default();
    Report { healthy: !object.has_findings(), owners, object, unread: picture.unread.clone() }
}

fn empty(id: Id) -> Node {
    Node { id, state: String::new(), alike: 0, findings: Vec::new(), children: Vec::new() }
}

/// The tree below an object; children without findings are left out.
fn node(picture: &Picture, object: &Object, is_target: bool, depth: usize, seen: &mut BTreeSet<Id>) -> Node {
    seen.insert(object.id());
    let around = Around { picture, object, is_target };
    let mut children = Vec::new();
    if depth > 0 {
        for child in causes::children(&around) {
            if !seen.contains(&child.id()) {
                children.push(node(picture, child, false, depth - 1, seen));
            }
        }
    }
    let found: Vec<Node> = children.into_iter().filter(Node::has_findings).collect();
    Node {
        state: causes::state(&around),
        findings: causes::find(&around),
        children: folded(found),
        ..empty(object.id())
    }
}

/// The first few of those with the same causes, which count the rest.
fn folded(nodes: Vec<Node>) -> Vec<Node> {
    let mut kept: Vec<(Vec<crate::Cause>, usize, Node)> = Vec::new();
    for node in nodes {
        let causes = node.causes();
        let same = |(of, _, other): &&mut (Vec<crate::Cause>, usize, Node)| {
            *of == causes && other.id.kind == node.id.kind
        };
        let count = kept.iter_mut().filter(|one| same(one)).count();
        if count < FEW {
            kept.push((causes, 0, node));
        } else if let Some((_, alike, _)) = kept.iter_mut().rev().find(|one| same(one)) {
            *alike += 1;
        }
    }
    kept.into_iter().map(|(_, alike, node)| Node { alike, ..node }).collect()
}

/// The owners of an object: what controls it, what controls that, and so on.
fn owners(picture: &Picture, object: &Object) -> Vec<Id> {
    let mut found: Vec<Id> = Vec::new();
    let mut of = object;
    while let Some(owner) =
        of.owners().next().and_then(|reference| picture.objects.iter().find(|one| one.uid() == reference.uid))
    {
        if found.contains(&owner.id()) || found.len() == DEPTH {
            break;
        }
        found.push(owner.id());
        of = owner;
    }
    found
}
