//! A document while a JSON patch works on it: opened along the paths that the patch names, and nowhere else.
//!
//! An opened list is kept in chunks, so that putting an item before a million others moves some hundreds of them. Ten thousand
//! operations on the largest list that a body can have are as much work as reading it a few times.

use std::collections::BTreeMap;
use std::mem;

use serde_json::Value;

/// A value that can be changed inside.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// As it was read.
    Closed(Value),
    /// An object of which something was asked for.
    Object(BTreeMap<String, Node>),
    /// A list of which something was asked for.
    List(List),
}

impl Default for Node {
    fn default() -> Self {
        Self::Closed(Value::Null)
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self::Closed(value)
    }
}

impl Node {
    /// The same, ready to be changed inside where it has an inside.
    pub(super) fn open(&mut self) -> &mut Self {
        if let Self::Closed(value) = self {
            match value {
                Value::Object(members) => {
                    let members = mem::take(members).into_iter();
                    *self = Self::Object(members.map(|(name, member)| (name, member.into())).collect());
                }
                Value::Array(items) => {
                    *self = Self::List(mem::take(items).into_iter().map(Self::from).collect());
                }
                _ => {}
            }
        }
        self
    }

    /// The value that it has become.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Closed(value) => value,
            Self::Object(members) => {
                let members = members.into_iter();
                Value::Object(members.map(|(name, member)| (name, member.into_value())).collect())
            }
            Self::List(list) => Value::Array(list.into_iter().map(Self::into_value).collect()),
        }
    }

    /// Whether it has become that value.
    pub(super) fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Closed(own), value) => own == value,
            (Self::Object(own), Value::Object(members)) => {
                let mut both = own.iter().zip(members);
                own.len() == members.len()
                    && both.all(|((own_name, own), (name, member))| own_name == name && own.is(member))
            }
            (Self::List(own), Value::Array(items)) => {
                own.len == items.len() && own.iter().zip(items).all(|(own, item)| own.is(item))
            }
            _ => false,
        }
    }

    /// How deep it is nested: 0 for a scalar. Adds how many values that took to see.
    pub(super) fn depth(&self, seen: &mut usize) -> usize {
        *seen += 1;
        match self {
            Self::Closed(value) => depth(value, seen),
            Self::Object(members) => 1 + members.values().map(|one| one.depth(seen)).max().unwrap_or(0),
            Self::List(list) => 1 + list.iter().map(|one| one.depth(seen)).max().unwrap_or(0),
        }
    }
}

/// How deep a value is nested, as [`Node::depth`].
pub(super) fn depth(value: &Value, seen: &mut usize) -> usize {
    *seen += 1;
    match value {
        Value::Object(members) => 1 + members.values().map(|one| depth(one, seen)).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(|one| depth(one, seen)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Items that are a chunk after a change at most; a new chunk is half as long.
const CHUNK: usize = 1024;

/// A list in chunks, none of which is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    chunks: Vec<Vec<Node>>,
    len: usize,
    /// What was done to it so far: chunks that were passed on the way to an item, and items that were moved.
    #[cfg(test)]
    pub(super) work: usize,
}

impl FromIterator<Node> for List {
    fn from_iter<I: IntoIterator<Item = Node>>(items: I) -> Self {
        let mut list = Self::default();
        for item in items {
            match list.chunks.last_mut() {
                Some(last) if last.len() < CHUNK / 2 => last.push(item),
                _ => list.chunks.push(vec![item]),
            }
            list.len += 1;
        }
        list
    }
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn iter(&self) -> impl Iterator<Item = &Node> {
        self.chunks.iter().flatten()
    }

    fn into_iter(self) -> impl Iterator<Item = Node> {
        self.chunks.into_iter().flatten()
    }

    /// The chunk in which an item stands or would be put, and where in it.
    fn find(&mut self, index: usize) -> (usize, usize) {
        let (mut chunk, mut within) = (0, index);
        while let Some(length) = self.chunks.get(chunk).map(Vec::len)
            && within >= length
            && chunk + 1 < self.chunks.len()
        {
            within -= length;
            chunk += 1;
        }
        #[cfg(test)]
        {
            self.work += chunk + self.chunks.get(chunk).map_or(0, |chunk| chunk.len() - within);
        }
        (chunk, within)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Node> {
        let (chunk, within) = self.find(index);
        self.chunks.get_mut(chunk)?.get_mut(within)
    }

    /// Puts an item before the one at that index, which is the length of the list at most.
    pub(super) fn insert(&mut self, index: usize, item: Node) {
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let (at, within) = self.find(index);
        let chunk = &mut self.chunks[at];
        chunk.insert(within, item);
        self.len += 1;
        if chunk.len() > CHUNK {
            let rest = chunk.split_off(CHUNK / 2);
            self.chunks.insert(at + 1, rest);
        }
    }

    /// Takes out the item at that index, which must be one.
    pub(super) fn remove(&mut self, index: usize) -> Node {
        let (at, within) = self.find(index);
        let chunk = &mut self.chunks[at];
        let item = chunk.remove(within);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(at);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn putting_an_item_before_a_million_moves_some_hundreds() {
        let mut list: List = (0..1_000_000).map(|at| Node::from(json!(at))).collect();
        for _ in 0..3_000 {
            list.insert(0, Node::from(json!("new")));
        }
        list.remove(0);
        assert_eq!(list.len(), 1_002_999);
        assert!(list.work < 3_001 * 2 * CHUNK, "{}", list.work);
        list.work = 0;
        for at in 0..1_000 {
            list.insert(at * 1_000, Node::from(json!("new")));
        }
        assert!(list.work < 1_000 * 4 * CHUNK, "{}", list.work);
    }

    proptest! {
        #[test]
        fn a_list_in_chunks_is_a_list(
            length in 0..3_000usize,
            changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut plain: Vec<Value> = (0..length).map(Value::from).collect();
            let mut list: List = plain.iter().cloned().map(Node::from).collect();
            for (number, (adds, at)) in changes.into_iter().enumerate() {
                if adds {
                    let at = at.index(plain.len() + 1);
                    plain.insert(at, json!([number]));
                    list.insert(at, json!([number]).into());
                } else if !plain.is_empty() {
                    let at = at.index(plain.len());
                    prop_assert!(list.get_mut(at).is_some_and(|item| item.is(&plain[at])));
                    prop_assert!(list.remove(at).is(&plain.remove(at)));
                }
                prop_assert_eq!(list.len(), plain.len());
            }
            let whole = Value::Array(plain);
            let node = Node::List(list);
            prop_assert!(node.is(&whole));
            prop_assert_eq!(node.into_value(), whole);
        }
    }
}
