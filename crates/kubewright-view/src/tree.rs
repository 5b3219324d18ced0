//! The objects as a tree, as `page/model.js` makes it in a browser: a pure function. `cases/tree.json` has what both have to make.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::row::Row;
use crate::state::State;

/// So many objects at most stand one below the other.
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
///
/// An owner that is not there is none. Objects that own each other in a circle stand where they would without an owner, and so does
/// one below each 64 of a chain of owners.
pub fn tree<'a>(rows: impl IntoIterator<Item = &'a Arc<Row>>, keep: impl Fn(&Row) -> bool) -> Vec<Node> {
    let rows: Vec<&Arc<Row>> = rows.into_iter().collect();
    let mut below = vec![Vec::new(); rows.len()];
    let mut namespaces: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, owner) in owners(&rows).into_iter().enumerate() {
        let row = rows[place];
        match (owner, row.namespace()) {
            (Some(owner), _) => below[owner].push(place),
            (None, "") => kinds.entry(&row.kind).or_default().push(place),
            (None, namespace) => namespaces.entry(namespace).or_default().push(place),
        }
    }
    let forest = Forest { rows, below, keep };
    let mut tops: Vec<Node> = namespaces
        .into_iter()
        .filter_map(|(name, places)| forest.filled(Node::group(&format!("ns:{name}"), name), &places))
        .collect();
    tops.sort_by_key(|top| top.name.starts_with("kube-"));
    let of_kind = |(kind, places): (&str, Vec<usize>)| {
        forest.filled(Node::group(&format!("kind:{kind}"), kind), &places)
    };
    let kinds = kinds.into_iter().filter_map(of_kind).collect();
    tops.extend(with_children(Node::group("cluster", "Cluster-wide"), kinds, false));
    tops
}

/// The place of the row below which each row stands: its first owner that is there. Circles are cut, and chains at their [`DEEPEST`].
fn owners(rows: &[&Arc<Row>]) -> Vec<Option<usize>> {
    let has_uid = |(_, row): &(usize, &&Arc<Row>)| !row.uid.is_empty();
    let places: BTreeMap<&str, usize> =
        rows.iter().enumerate().filter(has_uid).map(|(place, row)| (&*row.uid, place)).collect();
    let of_row = |(place, row): (usize, &&Arc<Row>)| {
        row.owners.iter().filter_map(|uid| places.get(&**uid)).copied().find(|owner| *owner != place)
    };
    let mut owners: Vec<Option<usize>> = rows.iter().enumerate().map(of_row).collect();
    let mut seen = vec![Seen::Not; rows.len()];
    let mut path = Vec::new();
    for place in 0..rows.len() {
        let mut next = Some(place);
        while let Some(at) = next.filter(|at| seen[*at] == Seen::Not) {
            seen[at] = Seen::OnPath;
            path.push(at);
            next = owners[at];
        }
        // Where the path leads back to itself, it ends in the circle.
        if let Some(first) = next.filter(|at| seen[*at] == Seen::OnPath) {
            while let Some(at) = path.pop() {
                (owners[at], seen[at]) = (None, Seen::Below(0));
                if at == first {
                    break;
                }
            }
        }
        while let Some(at) = path.pop() {
            let depth = match owners[at].map(|owner| seen[owner]) {
                Some(Seen::Below(owners)) if owners + 1 < DEEPEST => owners + 1,
                _ => 0,
            };
            if depth == 0 {
                owners[at] = None;
            }
            seen[at] = Seen::Below(depth);
        }
    }
    owners
}

/// What is known of a row while owners are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Not,
    /// It is being asked below what it stands.
    OnPath,
    /// It stands below so many.
    Below(usize),
}

struct Forest<'a, K> {
    rows: Vec<&'a Arc<Row>>,
    /// What stands below each row.
    below: Vec<Vec<usize>>,
    keep: K,
}

impl<K: Fn(&Row) -> bool> Forest<'_, K> {
    /// A group with the objects at these places; none, where none of them is wanted.
    fn filled(&self, group: Node, places: &[usize]) -> Option<Node> {
        with_children(group, self.nodes(places), false)
    }

    fn nodes(&self, places: &[usize]) -> Vec<Node> {
        let mut places = places.to_vec();
        places.sort_by_key(|place| {
            let row = self.rows[*place];
            (&row.kind, &row.key, &row.collection)
        });
        places.into_iter().filter_map(|place| self.node(place)).collect()
    }

    fn node(&self, place: usize) -> Option<Node> {
        let row = self.rows[place];
        let node = Node {
            id: if row.uid.is_empty() { row.place() } else { row.uid.clone() },
            name: row.name().to_owned(),
            row: Some(Arc::clone(row)),
            state: row.state,
            below: row.state,
            count: 1,
            children: Vec::new(),
        };
        with_children(node, self.nodes(&self.below[place]), (self.keep)(row))
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
    use kubewright_control_plane::recording::Did;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Rows, and the lines of the tree that they make.
    #[derive(Deserialize)]
    struct Case {
        promise: String,
        rows: Vec<Given>,
        /// The keys of what is wanted; all where there are none.
        wanted: Option<Vec<String>>,
        /// How deep, the name, the state, the worst with what is below, and of how many.
        lines: Vec<String>,
    }

    /// What of a row the tree is made of.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        kind: String,
        key: String,
        #[serde(default)]
        uid: String,
        #[serde(default)]
        owners: Vec<String>,
        #[serde(default)]
        state: String,
    }

    impl From<Given> for Arc<Row> {
        fn from(given: Given) -> Self {
            let states = [State::Plain, State::Ready, State::Progressing, State::Failing];
            let state = states.into_iter().find(|state| json!(state) == given.state);
            Arc::new(Row {
                revision: 1,
                time: 0,
                did: Did::Create,
                collection: format!("/{}", given.kind),
                key: given.key,
                kind: given.kind,
                uid: given.uid,
                owners: given.owners,
                state: state.unwrap_or(State::Plain),
                message: String::new(),
                user: String::new(),
                program: String::new(),
            })
        }
    }

    fn lines(nodes: &[Node], depth: usize, into: &mut Vec<String>) {
        for Node { name, state, below, count, children, .. } in nodes {
            let word = |state: &State| format!("{state:?}").to_lowercase();
            into.push(format!("{}{name} {}/{} {count}", "  ".repeat(depth), word(state), word(below)));
            lines(children, depth + 1, into);
        }
    }

    #[test]
    fn the_tree_is_the_one_of_the_page() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("../cases/tree.json")).expect("the cases");
        assert!(cases.len() > 10);
        for Case { promise, rows, wanted, lines: expected } in cases {
            let rows: Vec<Arc<Row>> = rows.into_iter().map(Arc::from).collect();
            let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|keys| keys.contains(&row.key));
            let mut found = Vec::new();
            lines(&tree(&rows, is_wanted), 0, &mut found);
            assert_eq!(found, expected, "{promise}");
        }
    }
}
