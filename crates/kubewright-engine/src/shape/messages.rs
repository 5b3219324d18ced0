//! Lists as protobuf: of the messages that are kept beside the JSON of objects.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_codec::protobuf;
use kubewright_codec::rope::Rope;
use kubewright_kinds::{Kind, Summary, encode};
use kubewright_store::Entry;
use serde_json::Value;

use crate::verbs::List;

/// The pieces of a list of whole objects. How long it is stands before its items, so that all messages are there before the first piece
/// is: those that nobody has asked for before are made then.
pub struct Messages {
    kind: Arc<Kind>,
    metadata: Value,
    entries: Vec<Arc<Entry<Summary>>>,
    /// What is left of the messages, once they are there, and what stands behind them.
    made: Option<(std::vec::IntoIter<Bytes>, Vec<u8>)>,
    rope: Rope,
}

impl Messages {
    /// `None` where the kind has no message: a custom one, or one that Kubernetes has none for.
    #[must_use]
    pub fn of(list: &List) -> Option<Self> {
        let kind = Arc::clone(&list.kind);
        let has_message = kind.custom.is_none()
            && protobuf::ObjectType::of(&kind.group, &kind.version, &kind.kind).is_some();
        has_message.then(|| Self {
            kind,
            metadata: list.metadata(),
            entries: list.entries.clone(),
            made: None,
            rope: Rope::default(),
        })
    }

    /// All of it.
    #[must_use]
    pub fn whole(self) -> Bytes {
        let mut out = Rope::default();
        self.for_each(|piece| out.share(piece));
        out.whole()
    }

    /// Makes the messages, and what stands before them.
    fn begin(&mut self) -> (std::vec::IntoIter<Bytes>, Vec<u8>) {
        // An object without a message is not stored: it would have no JSON either.
        let messages: Vec<Bytes> = std::mem::take(&mut self.entries)
            .iter()
            .map(|entry| encode::message(&self.kind, entry).unwrap_or_default())
            .collect();
        let length = messages.iter().map(|message| protobuf::item(message.len()).len() + message.len()).sum();
        let (api_version, kind) = (self.kind.api_version(), &self.kind.list_kind);
        let (head, tail) =
            protobuf::list_envelope(&api_version, kind, &self.metadata, length).unwrap_or_default();
        self.rope.copy(&head);
        (messages.into_iter(), tail)
    }
}

impl Iterator for Messages {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let (mut messages, mut tail) = match self.made.take() {
            Some(made) => made,
            None => self.begin(),
        };
        while !self.rope.is_full() {
            let Some(message) = messages.next() else {
                self.rope.copy(&std::mem::take(&mut tail));
                break;
            };
            self.rope.copy(&protobuf::item(message.len()));
            self.rope.share(message);
        }
        self.made = Some((messages, tail));
        self.rope.take()
    }
}
