//! Which images somebody means.

use super::{
    Store,
    index::{Entries, Entry},
};
use crate::{Digest, Error, Reference};

/// How much of an id is enough to stand for it.
const MIN_PREFIX: usize = 4;

impl Entry {
    /// Whether it is what a reference means. Where the reference has a digest, its tag says nothing
    /// (`ParseDockerRef` in `github.com/distribution/reference`).
    pub(super) fn is(&self, reference: &Reference) -> bool {
        let Some(name) = &self.name else { return false };
        match reference.digest() {
            None => name == reference,
            Some(digest) => name.has_name_of(reference) && self.has_digest(digest),
        }
    }

    fn has_digest(&self, digest: &str) -> bool {
        digest.parse::<Digest>().is_ok_and(|digest| digest == self.target || digest == self.manifest.digest)
    }
}

impl Store {
    /// The entries of one image that a text means ([`Store::find`]); none where there is no such image. What cannot be read
    /// has no id.
    pub(super) fn select(&self, entries: &Entries, text: &str) -> Result<Vec<Entry>, Error> {
        let with = |is_meant: &dyn Fn(&Entry) -> bool| -> Vec<Entry> {
            entries.0.iter().filter(|entry| is_meant(entry)).cloned().collect()
        };
        if let Some(digest) = text.parse().ok().or_else(|| Digest::from_hex(text)) {
            let of_manifest = |entry: &Entry| entry.target == digest || entry.manifest.digest == digest;
            return Ok(with(&|entry| of_manifest(entry) || self.has_id(entry, |id| id == digest)));
        }
        let reference = Reference::parse(text);
        let named =
            reference.as_ref().map(|reference| with(&|entry| entry.is(reference))).unwrap_or_default();
        if !named.is_empty() {
            return Ok(named);
        }
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() < MIN_PREFIX || !is_hex {
            return reference
                .map(|_| Vec::new())
                .map_err(|error| Error::Name { text: text.to_owned(), error });
        }
        let begun = with(&|entry| self.has_id(entry, |id| id.hex().starts_with(text)));
        let ids: std::collections::BTreeSet<Digest> =
            begun.iter().filter_map(|entry| self.id(entry.manifest.digest).ok()).collect();
        if ids.len() > 1 {
            return Err(Error::Ambiguous { text: text.to_owned(), count: ids.len() });
        }
        Ok(begun)
    }

    fn has_id(&self, entry: &Entry, is_meant: impl FnOnce(Digest) -> bool) -> bool {
        self.id(entry.manifest.digest).is_ok_and(is_meant)
    }
}
