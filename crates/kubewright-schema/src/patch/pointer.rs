//! Where in a document a JSON patch works (RFC 6901, with the habits that [`super::json`] tells of).

use super::document::Node;
use super::json::Failure;

/// The most steps that lead anywhere: no document is nested deeper while it is patched.
pub(super) const MAX_STEPS: usize = 1024;

/// Where in a document (RFC 6901).
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pointer {
    Root,
    Below {
        parents: Vec<String>,
        key: String,
    },
    /// Text without a slash, or with more of them than any document is deep, which leads nowhere.
    Nowhere,
}

impl Pointer {
    /// Reads a pointer; what stands before its first slash is ignored.
    pub(super) fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::Root;
        }
        if text.bytes().filter(|byte| *byte == b'/').count() > MAX_STEPS {
            return Self::Nowhere;
        }
        let mut steps: Vec<String> =
            text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
        steps.pop().map_or(Self::Nowhere, |key| Self::Below { parents: steps, key })
    }

    /// How many steps it makes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Below { parents, .. } => parents.len() + 1,
            Self::Root | Self::Nowhere => 0,
        }
    }

    /// Where in a document it points to: in the object or list that holds what it names.
    pub(super) fn place_in<'a>(&'a self, document: &'a mut Node) -> Result<Place<'a>, Failure> {
        let Self::Below { parents, key } = self else { return Err(Failure::Missing) };
        let mut container = document;
        for step in parents {
            container = match container.open() {
                Node::Object(members) => members.get_mut(step),
                Node::List(items) => {
                    let index = index(step, items.len()).map_err(|_| Failure::Missing)?;
                    items.get_mut(index)
                }
                Node::Closed(_) => None,
            }
            .ok_or(Failure::Missing)?;
        }
        Ok(Place { container: container.open(), key })
    }
}

/// A place in a container: a member that is there or not, or an item of a list.
pub(super) struct Place<'a> {
    container: &'a mut Node,
    key: &'a str,
}

impl<'a> Place<'a> {
    /// What is there; a missing member is none.
    pub(super) fn get(self) -> Result<Option<&'a Node>, Failure> {
        match self.container {
            Node::Object(members) => Ok(members.get(self.key)),
            Node::List(items) => {
                let index = index(self.key, items.len())?;
                Ok(items.get_mut(index).map(|item| &*item))
            }
            Node::Closed(_) => Err(Failure::Missing),
        }
    }

    /// Sets a member, or puts an item before the one at that index (`-`: after the last).
    pub(super) fn add(self, value: Node) -> Result<(), Failure> {
        match self.container {
            Node::Object(members) => {
                members.insert(self.key.to_owned(), value);
            }
            Node::List(items) => {
                let length = items.len();
                let index = if self.key == "-" { length } else { index(self.key, length + 1)? };
                items.insert(index, value);
            }
            Node::Closed(_) => return Err(Failure::Missing),
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<Node, Failure> {
        match self.container {
            Node::Object(members) => members.remove(self.key).ok_or(Failure::Missing),
            Node::List(items) => {
                let index = index(self.key, items.len())?;
                Ok(items.remove(index))
            }
            Node::Closed(_) => Err(Failure::Missing),
        }
    }

    /// Sets a member, whether it is there or not, or an item that is there.
    pub(super) fn replace(self, value: Node) -> Result<(), Failure> {
        match self.container {
            Node::Object(members) => {
                members.insert(self.key.to_owned(), value);
            }
            Node::List(items) => {
                let index = index(self.key, items.len())?;
                *items.get_mut(index).ok_or(Failure::Index)? = value;
            }
            Node::Closed(_) => return Err(Failure::Missing),
        }
        Ok(())
    }
}

/// The index that the text names in a list of that length; negative ones count from its end.
fn index(text: &str, length: usize) -> Result<usize, Failure> {
    let number: i64 = text.parse().map_err(|_| Failure::Index)?;
    let from_start = if number < 0 { number.saturating_add_unsigned(length as u64) } else { number };
    usize::try_from(from_start).ok().filter(|index| *index < length).ok_or(Failure::Index)
}
