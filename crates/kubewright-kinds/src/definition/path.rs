//! Paths of fields in messages.

use std::fmt;

/// A path, such as `spec.versions[0].schema`; it grows link by link as the walk goes down.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    link: Link<'a>,
}

#[derive(Clone, Copy)]
enum Link<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The path that begins with this field.
    pub(super) fn root(field: &'a str) -> Self {
        Self { parent: None, link: Link::Field(field) }
    }

    /// A field below: `.name`.
    pub(super) fn child(&'a self, field: &'a str) -> Self {
        Self { parent: Some(self), link: Link::Field(field) }
    }

    /// A key below: `[name]`.
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), link: Link::Key(key) }
    }

    /// An element below: `[0]`.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), link: Link::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.link {
            Link::Field(field) if self.parent.is_none() => f.write_str(field),
            Link::Field(field) => write!(f, ".{field}"),
            Link::Key(key) => write!(f, "[{key}]"),
            Link::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}
