//! The objects as a tree, as `page/model.js` makes it in a browser: a pure function.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::row::Row;
use crate::state::State;

/// How deep owners are followed.
const DEEPEST: usize = 64;

/// A line of the tree: an object, or a group of them.
#[derive(Debug)]
pub struct Node {
    /// What no other node of the tree has: the uid of an object.
    pub id: String,
    /// The name of the object or group.
    pub name: String,
    /// The object; none for a group.
    pub row: Option<Arc<Row>>,
    /// The state of the object itself.
    pub state: State,
    /// The worst state of it and what is below.
    pub below: State,
    /// How many objects it is, with what is below.
    pub count: usize,
    /// What is below.
    pub children: Vec<Node>,
}

impl Node {
    fn group(id: &str, name: &str) -> Self {
        let (id, name) = (id.to_owned(), name.to_owned());
        Self { id, name, row: None, state: State::Plain, below: State::Plain, count: 0, children: Vec::new() }
    }
}

/// The objects as a tree: namespaces, in them the objects without an owner, below each what it owns, and last the objects without a
/// namespace, by kind. An object is in it when `keep` says so of it, or of one below it.
pub fn tree<'a>(rows: impl IntoIterator<Item = &'a Arc<Row>>, keep: impl Fn(&Row) -> bool) -> Vec<Node> {
    let rows: Vec<&Arc<Row>> = rows.into_iter().collect();
    let places: BTreeMap<&str, usize> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| !row.uid.is_empty())
        .map(|(place, row)| (&*row.uid, place))
        .collect();
    let mut below = vec![Vec::new(); rows.len()];
    let mut namespaces: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        let owner = row.owners.iter().find_map(|uid| places.get(&**uid).filter(|owner| **owner != place));
        match (owner, row.namespace()) {
            (Some(owner), _) => below[*owner].push(place),
            (None, "") => kinds.entry(&row.kind).or_default().push(place),
            (None, namespace) => namespaces.entry(namespace).or_default().push(place),
        }
    }
    let forest = Forest { rows, below, keep };
    let mut tops: Vec<Node> = namespaces
        .into_iter()
        .filter_map(|(name, places)| forest.filled(Node::group(&format!("ns:{name}"), name), &places, 1))
        .collect();
    tops.sort_by_key(|top| top.name.starts_with("kube-"));
    let of_kind = |(kind, places): (&str, Vec<usize>)| {
        forest.filled(Node::group(&format!("kind:{kind}"), kind), &places, 2)
    };
    let kinds = kinds.into_iter().filter_map(of_kind).collect();
    tops.extend(with_children(Node::group("cluster", "Cluster-wide"), kinds, false));
    tops
}

struct Forest<'a, K> {
    rows: Vec<&'a Arc<Row>>,
    /// What each row owns.
    below: Vec<Vec<usize>>,
    keep: K,
}

impl<K: Fn(&Row) -> bool> Forest<'_, K> {
    /// A group with the objects at these places; none, where none of them is wanted.
    fn filled(&self, group: Node, places: &[usize], depth: usize) -> Option<Node> {
        with_children(group, self.nodes(places, depth), false)
    }

    fn nodes(&self, places: &[usize], depth: usize) -> Vec<Node> {
        let mut places = places.to_vec();
        places.sort_by_key(|place| (&self.rows[*place].kind, &self.rows[*place].key));
        places.into_iter().filter_map(|place| self.node(place, depth)).collect()
    }

    fn node(&self, place: usize, depth: usize) -> Option<Node> {
        let row = self.rows[place];
        let children = if depth > DEEPEST { Vec::new() } else { self.nodes(&self.below[place], depth + 1) };
        let node = Node {
            id: if row.uid.is_empty() { row.place() } else { row.uid.clone() },
            name: row.name().to_owned(),
            row: Some(Arc::clone(row)),
            state: row.state,
            below: row.state,
            count: 1,
            children: Vec::new(),
        };
        with_children(node, children, (self.keep)(row))
    }
}

/// A node with what is below it; none where neither it nor anything below is wanted.
fn with_children(mut node: Node, children: Vec<Node>, is_wanted: bool) -> Option<Node> {
    if children.is_empty() && !is_wanted {
        return None;
    }
    node.below = children.iter().map(|child| child.below).fold(node.below, State::max);
    node.count += children.iter().map(|child| child.count).sum::<usize>();
    node.children = children;
    Some(node)
}

#[cfg(test)]
mod tests {
    use kubewright_control_plane::recording::{Did, Revision, Write, Writer};
    use serde_json::{Value, json};

    use super::*;

    /// Of a kind, its key, its uid, the uid of its owner, and its phase.
    fn row(kind: &str, key: &str, owner: &str, phase: &str) -> Arc<Row> {
        let mut object: Value =
            json!({"kind": kind, "metadata": {"uid": format!("{kind} {key}")}, "status": {"phase": phase}});
        if !owner.is_empty() {
            object["metadata"]["ownerReferences"] = json!([{"uid": owner}]);
        }
        Arc::new(Row::from(&Write {
            revision: Revision(1),
            time: jiff::Timestamp::UNIX_EPOCH,
            by: Writer::default(),
            did: Did::Create,
            collection: format!("/{kind}").into(),
            key: key.into(),
            bytes: object.to_string().into(),
        }))
    }

    /// The tree in lines: how deep, the name, the worst state, and of how many.
    fn lines(nodes: &[Node], depth: usize, into: &mut Vec<String>) {
        for node in nodes {
            into.push(format!("{}{} {:?} {}", "  ".repeat(depth), node.name, node.below, node.count));
            lines(&node.children, depth + 1, into);
        }
    }

    fn shown(rows: &[Arc<Row>], keep: impl Fn(&Row) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        lines(&tree(rows, keep), 0, &mut found);
        found
    }

    fn cluster() -> Vec<Arc<Row>> {
        vec![
            row("Lease", "kube-system/l", "", ""),
            row("Node", "n1", "", ""),
            row("Set", "shop/b", "App shop/web", "Active"),
            row("Part", "shop/b-1", "Set shop/b", "Failed"),
            row("Part", "shop/a-1", "Set shop/b", "Active"),
            row("App", "shop/web", "nobody", "Active"),
        ]
    }

    #[test]
    fn what_is_owned_stands_below_its_owner_and_gives_it_its_worst_state() {
        assert_eq!(
            shown(&cluster(), |_| true),
            [
                "shop Failing 4",
                "  web Failing 4",
                "    b Failing 3",
                "      a-1 Ready 1",
                "      b-1 Failing 1",
                "kube-system Plain 1",
                "  l Plain 1",
                "Cluster-wide Plain 1",
                "  Node Plain 1",
                "    n1 Plain 1",
            ]
        );
    }

    #[test]
    fn of_what_is_searched_the_owners_are_shown() {
        assert_eq!(
            shown(&cluster(), |row| row.key == "shop/a-1"),
            ["shop Ready 3", "  web Ready 3", "    b Ready 2", "      a-1 Ready 1"]
        );
        assert_eq!(shown(&cluster(), |_| false), [""; 0]);
    }

    #[test]
    fn objects_that_own_each_other_do_not_make_it_endless() {
        let rows = [row("A", "x/a", "B x/b", ""), row("B", "x/b", "A x/a", ""), row("C", "x/c", "C x/c", "")];
        assert_eq!(shown(&rows, |_| true), ["x Plain 1", "  c Plain 1"]);
    }
}
