//! How it is known whose an object is: by its owner reference, or by a label where none can be.

use kube::api::ObjectMeta;

use crate::{
    Error, Key,
    owner::{Owner, controller_of},
};

/// How objects of a kind are an owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// By the owner reference that has `controller: true`.
    Reference,
    /// By this label, whose value is the owner's uid; the annotation of the same name says where the owner is.
    Label(&'static str),
}

/// The mark of an owner on an object.
pub(crate) struct Mark {
    label: &'static str,
    uid: String,
    key: Key,
    /// The owner as the kind's own references name it, to look for it.
    pub(super) owner: ObjectMeta,
    /// What the owner is, for errors.
    name: String,
}

impl Ownership {
    /// The uid of the owner of an object with this metadata.
    pub(crate) fn owner_of(self, meta: &ObjectMeta) -> Option<&str> {
        match self {
            Self::Reference => controller_of(meta).map(|owner| owner.uid.as_str()),
            Self::Label(label) => label_of(meta, label),
        }
    }
}

impl Mark {
    pub(super) fn of(owner: &(dyn Owner + Sync), label: &'static str) -> Result<Self, Error> {
        let reference = owner.controller_reference()?;
        let namespace = owner.namespace().map(str::to_owned);
        let key = Key::new(namespace.clone(), &reference.name);
        let (uid, name) = (reference.uid.clone(), format!("{} {key}", reference.kind));
        let owner =
            ObjectMeta { namespace, owner_references: Some(vec![reference]), ..ObjectMeta::default() };
        Ok(Self { label, uid, key, owner, name })
    }

    pub(super) fn put_on(&self, meta: &mut ObjectMeta) {
        meta.labels.get_or_insert_default().insert(self.label.to_owned(), self.uid.clone());
        meta.annotations.get_or_insert_default().insert(self.label.to_owned(), self.key.to_string());
    }

    /// An error if the object of this metadata is another owner's.
    pub(super) fn expect_on(&self, kind: &str, meta: &ObjectMeta) -> Result<(), Error> {
        match label_of(meta, self.label) {
            Some(uid) if uid != self.uid => {
                let other =
                    meta.annotations.as_ref().and_then(|all| all.get(self.label)).map_or(uid, |key| key);
                let name = meta.name.as_deref().unwrap_or_default();
                Err(Error::new(format!(
                    "{kind} {name} is that of {other}, not of {} ({})",
                    self.name, self.label
                )))
            }
            _ => Ok(()),
        }
    }
}

fn label_of<'a>(meta: &'a ObjectMeta, label: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(label).map(String::as_str)
}

/// The key of the owner whose mark an object with this metadata has, if it has one.
pub(crate) fn marked_key(meta: &ObjectMeta, label: &str) -> Option<Key> {
    label_of(meta, label)?;
    Some(Key::from_text(meta.annotations.as_ref()?.get(label)?))
}
