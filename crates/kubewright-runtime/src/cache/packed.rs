//! Objects as compressed text. As a value of its type an object has room for every field that could be there: a Pod as a kubelet
//! leaves it takes 16 KB, a ConfigMap with an owner and a value 1.5 KB. As text, compressed by what it has in common with others of its kind, it
//! takes a tenth of that, and a third.
//!
//! What the cache itself looks at (identity, version, owners) stands beside the text. A value is made when somebody asks for the object.
//! The latest that were changed or read stay values as well, as many of a kind as fit into [`VALUES`]: a kind of some hundred objects is
//! never read twice.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use kubewright_objects::{AnyObject, Head, Kept, Owners};
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use parking_lot::Mutex;

/// How much of a kind's objects is kept as values, by the length of their text and the size of their type, in bytes.
const VALUES: usize = 2 * 1024 * 1024;

/// How much of the first object's text the others are compared with, in bytes. To look at more of it takes longer each time.
const DICTIONARY: usize = 8 * 1024;

/// Makes a value of its JSON, which was read before.
type Read = Box<dyn Fn(&str) -> serde_json::Result<Arc<dyn AnyObject>> + Send + Sync>;

/// How the objects of one kind are kept as text.
pub(super) struct Packing {
    read: Read,
    /// The size of their type.
    size: usize,
    /// What texts of the kind have in common: that of the first object.
    dictionary: OnceLock<Box<[u8]>>,
    recent: Mutex<Recent>,
}

/// The objects of which there is a value, in the order in which they were changed or read.
#[derive(Default)]
struct Recent {
    objects: VecDeque<(Weak<Packed>, usize)>,
    /// How much all of them are.
    weight: usize,
}

/// An object as text.
struct Packed {
    /// Namespace, name, uid and resource version, one behind the other, and the uids of its owners with [`Owners::END`] behind each.
    head: Box<str>,
    /// Where each of the first four ends; none of a namespace or resource version that is not there.
    ends: [Option<u16>; 4],
    text: Box<[u8]>,
    /// The length of the text before it was compressed.
    length: usize,
    packing: Arc<Packing>,
    value: Mutex<Option<Arc<dyn AnyObject>>>,
    /// Whether somebody read it since that was looked at.
    was_read: AtomicBool,
}

impl Packing {
    /// Of objects whose type has this `size` in bytes, and of whose JSON `read` makes a value.
    pub(super) fn new(
        size: usize,
        read: impl Fn(&str) -> serde_json::Result<Arc<dyn AnyObject>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { read: Box::new(read), size, dictionary: OnceLock::new(), recent: Mutex::default() })
    }

    /// The object that is written in `text` and has this `value`, as text; as value if that cannot be.
    pub(super) fn pack(self: &Arc<Self>, value: Arc<dyn AnyObject>, text: &str) -> Arc<dyn Kept> {
        let Some((head, ends)) = pack_head(value.head()) else { return value };
        let bytes = text.as_bytes();
        let dictionary = self.dictionary.get_or_init(|| bytes[..bytes.len().min(DICTIONARY)].into());
        let packed = Arc::new(Packed {
            head,
            ends,
            text: compress_with_dict(bytes, dictionary).into_boxed_slice(),
            length: bytes.len(),
            packing: self.clone(),
            value: Mutex::new(Some(value)),
            was_read: AtomicBool::new(false),
        });
        self.remember(&packed);
        packed
    }

    /// There is a value of this object. Others that nobody has read since their last turn lose theirs, if there are too many.
    fn remember(&self, packed: &Arc<Packed>) {
        let mut recent = self.recent.lock();
        recent.push(packed, packed.length + self.size);
        // One that was read lately has a second turn.
        let mut chances = recent.objects.len();
        while recent.weight > VALUES
            && let Some((oldest, weight)) = recent.objects.pop_front()
        {
            recent.weight -= weight;
            let Some(oldest) = oldest.upgrade() else { continue };
            if chances > 0 && oldest.was_read.swap(false, Ordering::Relaxed) {
                chances -= 1;
                recent.push(&oldest, weight);
            } else {
                *oldest.value.lock() = None;
            }
        }
    }
}

impl Recent {
    fn push(&mut self, packed: &Arc<Packed>, weight: usize) {
        self.objects.push_back((Arc::downgrade(packed), weight));
        self.weight += weight;
    }
}

/// The parts of a head as [`Packed`] has them; none of one that is longer than the API server lets any be.
fn pack_head(head: Head<'_>) -> Option<(Box<str>, [Option<u16>; 4])> {
    let mut text = String::new();
    let parts = [head.namespace, Some(head.name), Some(head.uid), head.resource_version];
    let mut ends = [None; 4];
    for (part, end) in parts.into_iter().zip(&mut ends) {
        if let Some(part) = part {
            text.push_str(part);
            *end = Some(u16::try_from(text.len()).ok()?);
        }
    }
    for uid in head.owners.uids() {
        text.push_str(uid);
        text.push(Owners::END);
    }
    Some((text.into_boxed_str(), ends))
}

impl Kept for Packed {
    fn head(&self) -> Head<'_> {
        let mut begin = 0;
        let [namespace, name, uid, resource_version] = self.ends.map(|end| {
            let end = usize::from(end?);
            let part = &self.head[begin..end];
            begin = end;
            Some(part)
        });
        Head {
            namespace,
            name: name.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
            resource_version,
            owners: Owners::Uids(&self.head[begin..]),
        }
    }

    fn value(self: Arc<Self>) -> Arc<dyn AnyObject> {
        // Held while it is read: others who want it at the same time wait, and it is read once.
        let mut known = self.value.lock();
        if let Some(value) = &*known {
            self.was_read.store(true, Ordering::Relaxed);
            return value.clone();
        }
        let value = (self.packing.read)(&self.text()).expect("what was read before is read again");
        *known = Some(value.clone());
        drop(known);
        self.packing.remember(&self);
        value
    }

    fn footprint(&self) -> usize {
        size_of::<Self>() + self.head.len() + self.text.len()
    }
}

impl Packed {
    fn text(&self) -> String {
        let dictionary = self.packing.dictionary.get().map_or(&[][..], |dictionary| dictionary);
        let text = decompress_with_dict(&self.text, self.length, dictionary);
        String::from_utf8(text.expect("it was compressed with this dictionary")).expect("it was text")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use k8s_openapi::api::core::v1::Pod;
    use kubewright_objects::{decode, from_json, typed};
    use serde_json::json;

    use super::*;

    /// More than there is room for as values.
    const MANY: usize = 3000;

    fn pod(number: usize) -> String {
        let owner =
            |uid: &str| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid});
        json!({
            "metadata": {"name": format!("web-{number}"), "namespace": "default", "uid": number.to_string(), "resourceVersion": "7",
                "labels": {"app": "web"}, "ownerReferences": [owner("one"), owner("other")]},
            "spec": {"containers": [{"name": "web", "image": "example.com/web:1", "env": [{"name": "N", "value": number.to_string()}]}]},
            "status": {"phase": "Running"},
        })
        .to_string()
    }

    /// Packs pods, and counts how often one is read again.
    fn packing() -> (Arc<Packing>, Arc<AtomicUsize>) {
        let reads = Arc::new(AtomicUsize::new(0));
        let count = reads.clone();
        let packing = Packing::new(size_of::<Pod>(), move |text| {
            count.fetch_add(1, Ordering::Relaxed);
            decode::<Pod>(text, &|_| {})
        });
        (packing, reads)
    }

    fn pack(packing: &Arc<Packing>, text: &str) -> Arc<dyn Kept> {
        packing.pack(decode::<Pod>(text, &|_| {}).expect("a pod"), text)
    }

    fn pack_many(packing: &Arc<Packing>) -> Vec<Arc<dyn Kept>> {
        (0..MANY).map(|number| pack(packing, &pod(number))).collect()
    }

    fn values(packing: &Packing) -> usize {
        let recent = packing.recent.lock();
        assert!(recent.weight <= VALUES);
        assert_eq!(recent.weight, recent.objects.iter().map(|(_, weight)| weight).sum::<usize>());
        recent.objects.len()
    }

    #[test]
    fn what_is_read_is_what_was_written_there() {
        let (packing, reads) = packing();
        for (number, packed) in pack_many(&packing).into_iter().enumerate() {
            let read = typed::<Pod>(packed.clone().value()).expect("a pod");
            assert_eq!(*read, from_json(&pod(number)).expect("a pod"));
            let (head, whole) = (packed.head(), Head::of(&read.metadata));
            assert_eq!((head.namespace, head.name, head.uid), (whole.namespace, whole.name, whole.uid));
            assert_eq!(head.resource_version, whole.resource_version);
            assert_eq!(head.owners.uids().collect::<Vec<_>>(), ["one", "other"]);
        }
        assert!(reads.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn a_head_may_lack_what_others_have() {
        let (packing, _) = packing();
        let node = pack(&packing, r#"{"metadata": {"name": "a"}}"#);
        let head = node.head();
        assert_eq!((head.namespace, head.name, head.uid, head.resource_version), (None, "a", "", None));
        assert_eq!(head.owners.uids().count(), 0);
    }

    #[test]
    fn few_objects_are_values_and_are_not_read_again() {
        let (packing, reads) = packing();
        let few: Vec<_> = (0..100).map(|number| pack(&packing, &pod(number))).collect();
        few.iter().for_each(|kept| drop(kept.clone().value()));
        assert_eq!(reads.load(Ordering::Relaxed), 0);
        assert_eq!(values(&packing), few.len());
    }

    #[test]
    fn of_many_objects_a_part_stays_values() {
        let (packing, reads) = packing();
        let many = pack_many(&packing);
        for _ in 0..2 {
            many.iter().for_each(|kept| drop(kept.clone().value()));
            assert!((100..MANY / 2).contains(&values(&packing)));
        }
        assert!(reads.load(Ordering::Relaxed) > MANY);
        drop(many);
        let last = pack_many(&packing);
        assert!(values(&packing) < last.len(), "those that are gone have made room");
    }

    #[test]
    fn what_is_read_often_stays_a_value() {
        let (packing, reads) = packing();
        let (often, others) = (pack(&packing, &pod(0)), pack_many(&packing));
        drop(often.clone().value());
        let before = reads.load(Ordering::Relaxed);
        for other in &others {
            drop((often.clone().value(), other.clone().value()));
        }
        let again = reads.load(Ordering::Relaxed) - before;
        assert!(again <= others.len() + 1, "{again} reads of {} others", others.len());
    }

    #[test]
    fn a_text_takes_a_part_of_the_room_of_its_value() {
        let (packing, _) = packing();
        let (_, second) = (pack(&packing, &pod(0)), pack(&packing, &pod(1)));
        let (packed, value) = (second.footprint(), second.value().footprint());
        assert!(packed * 5 < value, "{packed} of {value} bytes");
    }
}
