//! Lists as protobuf: of the messages that are kept beside the JSON of objects.

use bytes::Bytes;
use kubewright_codec::protobuf;
use kubewright_codec::rope::{PIECE, Rope};
use kubewright_kinds::encode;

use crate::verbs::List;

/// The pieces of a list of whole objects. How long it is stands before its items, so that all messages are there before the first piece
/// is.
pub struct Messages {
    /// What is left of them.
    messages: std::vec::IntoIter<Bytes>,
    /// What stands behind them.
    tail: &'static [u8],
    is_small: bool,
    /// What is made of it, at first what stands before the items.
    rope: Rope,
}

impl Messages {
    /// Makes the messages that nobody has asked for before, which is work on the whole list.
    ///
    /// # Errors
    /// The list, where its kind has no message: a custom one, or one that Kubernetes has none for.
    pub fn of(list: List) -> Result<Self, List> {
        let kind = &list.kind;
        if kind.custom.is_some() || protobuf::ObjectType::of(&kind.group, &kind.version, &kind.kind).is_none()
        {
            return Err(list);
        }
        // What is stored is an object of its kind, which has a message.
        let messages: Vec<Bytes> =
            list.entries.iter().map(|entry| encode::message(kind, entry).unwrap_or_default()).collect();
        let length = messages.iter().map(|message| protobuf::item(message.len()).len() + message.len()).sum();
        let envelope =
            protobuf::list_envelope(&kind.api_version(), &kind.list_kind, &list.metadata(), length);
        let Some((head, tail)) = envelope else { return Err(list) };
        let mut rope = Rope::default();
        rope.copy(&head);
        Ok(Self { messages: messages.into_iter(), tail, is_small: length < 2 * PIECE, rope })
    }

    /// Whether all of it is one piece.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.is_small
    }

    /// All of it.
    #[must_use]
    pub fn whole(self) -> Bytes {
        let mut out = Rope::default();
        self.for_each(|piece| out.share(piece));
        out.whole()
    }
}

impl Iterator for Messages {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while !self.rope.is_full() {
            let Some(message) = self.messages.next() else {
                self.rope.copy(std::mem::take(&mut self.tail));
                break;
            };
            self.rope.copy(&protobuf::item(message.len()));
            self.rope.share(message);
        }
        self.rope.take()
    }
}
