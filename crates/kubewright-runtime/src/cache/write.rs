//! A write through a [`crate::Context`]: what was known when it began, for the cache to judge its answer.

use std::sync::Arc;

use super::{
    applied::Owned,
    own_writes::{ActiveReconcile, Author},
    state::Ticket,
    store::{Part, Store},
};
use crate::{Key, object::Kept};

/// A write that is under way; it is over when this is dropped.
pub(crate) struct Write {
    store: Arc<Store>,
    /// For each part: where the object will be is known when it is written.
    tickets: Vec<(Arc<Part>, Ticket)>,
    /// As whose, and as one of which object, it began.
    own: Option<(Key, Arc<Author>)>,
    active: Option<Arc<ActiveReconcile>>,
}

impl Write {
    /// A write of an object of the store; of the one named `key`, if that is known before, and in a reconcile. What comes of it
    /// is told to what this returns.
    pub(super) fn begin(store: &Arc<Store>, key: Option<Key>, active: Option<Arc<ActiveReconcile>>) -> Self {
        let author = active.as_ref().and_then(|active| active.author().cloned());
        let own = key.map(|key| key.local().into_owned()).zip(author);
        let begin = |part: &Arc<Part>| {
            let ticket = part.state.write().write_began(own_in(part, own.as_ref()));
            (part.clone(), ticket)
        };
        let tickets = store.parts().iter().map(begin).collect();
        Self { store: store.clone(), tickets, own, active }
    }

    /// Whether its author need not get what it changes, if the answer is as it was asked for.
    pub(crate) fn is_own(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.author().is_some())
    }

    /// The write was answered with an object, which is as it was asked for or has something else, and of which appliers own this.
    pub(crate) fn returned(&self, object: &Arc<dyn Kept>, owned: Vec<Owned>, is_as_asked: bool) {
        let namespace = object.head().namespace;
        let author = self.active.as_ref().filter(|_| is_as_asked).and_then(|active| active.author());
        if let Some((part, ticket)) = self.part(namespace) {
            self.store.change(part, |state| {
                let delivery = state.written(*ticket, object.clone(), author);
                state.note_owned(object.head(), owned);
                delivery
            });
            self.store.unconfirmed.notify_one();
        }
    }

    fn part(&self, namespace: Option<&str>) -> Option<&(Arc<Part>, Ticket)> {
        self.tickets.iter().find(|(part, _)| part.has(namespace))
    }

    /// The write ended the life of the object `key`, which has this `uid` if the answer said so.
    pub(crate) fn ended(&self, key: &Key, uid: Option<&str>) {
        if let Some((part, _)) = self.part(key.namespace.as_deref()) {
            self.store.change(part, |state| state.written_end(&key.local(), uid));
        }
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        for (part, ticket) in &self.tickets {
            let own = own_in(part, self.own.as_ref());
            self.store.change(part, |state| state.write_ended(*ticket, own));
        }
    }
}

/// The object and the author of a write, if the object is in this part.
fn own_in<'a>(part: &Part, own: Option<&'a (Key, Arc<Author>)>) -> Option<(&'a Key, &'a Arc<Author>)> {
    own.filter(|(key, _)| part.has(key.namespace.as_deref())).map(|(key, author)| (key, author))
}
