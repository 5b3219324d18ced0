//! What a value was before an update (`k8s.io/apiserver/pkg/cel/common/equality.go`).

use std::cell::OnceCell;
use std::collections::BTreeMap;

use kubewright_meta::cost;
use serde_json::Value;

use super::super::node::{Additional, ListType, Node};

/// The old value that stands where a new one does, as far as the schema lets one tell: fields by their name, elements of
/// lists of type map by their keys, other elements not at all.
#[derive(Clone, Copy)]
pub struct Former<'a> {
    node: &'a Node,
    value: &'a Value,
}

impl<'a> Former<'a> {
    /// The old object of that schema.
    pub fn of(node: &'a Node, value: &'a Value) -> Self {
        Self { node, value }
    }

    /// The old value of a field that the schema knows.
    pub fn field(&self, name: &str) -> Option<Self> {
        let value = self.value.as_object()?.get(name)?;
        let ((Some(node), _) | (None, Additional::Of(node))) =
            (self.node.properties.get(name), &self.node.additional)
        else {
            return None;
        };
        Some(Self { node, value })
    }

    /// The old elements of a list.
    pub fn elements(&self) -> FormerElements<'a> {
        FormerElements {
            items: self.node.items.as_deref(),
            list: Keyed::of(self.node, self.value.as_array().map(Vec::as_slice)),
        }
    }

    /// Whether a new value is what it was. What the schema does not know cannot be told to be the same.
    pub fn is(&self, new: &Value) -> bool {
        cost::step();
        match (self.value, new) {
            (Value::Array(old), Value::Array(list)) => {
                if old.len() != list.len() {
                    return false;
                }
                if self.node.list_type() != Some(ListType::Map) {
                    return old == list;
                }
                let elements = self.elements();
                list.iter().all(|one| elements.find(one).is_some_and(|former| former.is(one)))
            }
            (Value::Object(old), Value::Object(fields)) => {
                old.len() == fields.len()
                    && fields.iter().all(|(name, one)| self.field(name).is_some_and(|former| former.is(one)))
            }
            (old, new) => old == new,
        }
    }
}

/// The old elements of a list, with what is said of them.
pub struct FormerElements<'a> {
    items: Option<&'a Node>,
    list: Keyed<'a>,
}

impl<'a> FormerElements<'a> {
    /// The old element that has the keys of a new one.
    pub fn find(&self, element: &Value) -> Option<Former<'a>> {
        Some(Former { node: self.items?, value: self.list.find(element)? })
    }
}

/// The elements of a list of type map by their keys; nothing of other lists.
pub(crate) struct Keyed<'a> {
    keys: &'a [Box<str>],
    list: Option<&'a [Value]>,
    found: OnceCell<BTreeMap<String, &'a Value>>,
}

impl<'a> Keyed<'a> {
    /// The elements of `list`, which is of that schema.
    pub(crate) fn of(node: &'a Node, list: Option<&'a [Value]>) -> Self {
        let keys = node.list_map_keys();
        let list = list.filter(|_| node.list_type() == Some(ListType::Map) && !keys.is_empty());
        Self { keys, list, found: OnceCell::new() }
    }

    /// The first element with the keys of this one.
    pub(crate) fn find(&self, element: &Value) -> Option<&'a Value> {
        let list = self.list?;
        let found = self.found.get_or_init(|| {
            let mut found = BTreeMap::new();
            for one in list {
                if let Some(key) = self.key(one) {
                    found.entry(key).or_insert(one);
                }
            }
            found
        });
        found.get(&self.key(element)?).copied()
    }

    /// The keys as text; none where one is missing or no scalar.
    fn key(&self, element: &Value) -> Option<String> {
        let fields = element.as_object()?;
        let mut whole = String::new();
        for key in self.keys {
            match fields.get(&**key)? {
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
                scalar => whole.push_str(&scalar.to_string()),
            }
            whole.push(',');
        }
        Some(whole)
    }
}
