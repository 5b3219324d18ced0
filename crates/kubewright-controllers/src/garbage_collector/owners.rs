//! How the owners of an object stand: by the caches where they say so, by the API server before anything is deleted.

use std::collections::{BTreeMap, VecDeque};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ObjectMeta;
use kubewright_runtime::{Context, Error};
use parking_lot::Mutex;

use super::gc_action::OwnerState;
use super::item::{FOREGROUND, Item, waits_with};
use super::kinds::Kinds;

/// So many absent owners are remembered (`absentOwnerCacheSize` is 500 upstream).
const REMEMBERED: usize = 500;

/// Why owners cannot be judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unclear {
    /// Nobody serves the owner's kind: it may come, or be of a server that is gone.
    UnknownKind,
    /// A cluster-scoped object names an owner that lives in a namespace; which one cannot be said.
    NamespacedOwner(Item),
}

/// Whether every owner is there, and none waits for its dependents, as the caches have it. Then there is nothing to do.
pub(super) fn are_all_solid(kinds: &Kinds, meta: &ObjectMeta) -> bool {
    Item::owners(meta)
        .all(|owner| kinds.object(&owner).is_some_and(|object| !waits_with(&object.metadata, FOREGROUND)))
}

/// The standing of each owner, in order, and the owners that live in another namespace.
pub(super) async fn standings(
    ctx: &Context,
    kinds: &Kinds,
    absent: &Absent,
    meta: &ObjectMeta,
) -> Result<Result<(Vec<OwnerState>, Vec<Item>), Unclear>, Error> {
    let (mut standings, mut misplaced) = (Vec::new(), Vec::new());
    for mut owner in Item::owners(meta) {
        let Some(served) = kinds.resource(&owner) else {
            if !went_with_its_definition(ctx, kinds, &owner) {
                return Ok(Err(Unclear::UnknownKind));
            }
            standings.push(OwnerState::Absent);
            continue;
        };
        if served.namespaced && owner.namespace.is_none() {
            return Ok(Err(Unclear::NamespacedOwner(owner)));
        }
        owner.namespace = owner.namespace.filter(|_| served.namespaced);
        let known = absent.get(&owner);
        let lives_elsewhere = match known {
            Some(lives_elsewhere) => lives_elsewhere,
            None => {
                let api = served.api(ctx.client(), owner.namespace.as_deref());
                let found = api.get_metadata_opt(&owner.name).await?;
                if let Some(found) =
                    found.filter(|found| found.metadata.uid.as_deref() == Some(owner.uid.as_str()))
                {
                    let waits = waits_with(&found.metadata, FOREGROUND);
                    standings.push(if waits { OwnerState::Waiting } else { OwnerState::Solid });
                    continue;
                }
                let lives_elsewhere = kinds.lives_elsewhere(&owner);
                absent.remember(owner.clone(), lives_elsewhere);
                lives_elsewhere
            }
        };
        standings.push(OwnerState::Absent);
        if lives_elsewhere {
            misplaced.push(owner);
        }
    }
    Ok(Ok((standings, misplaced)))
}

/// Whether an owner's definition was deleted, with all objects of it. Upstream knows of these from the end of each, whatever
/// becomes of their kind in the meantime. A kind that is merely not served at the moment has them still.
fn went_with_its_definition(ctx: &Context, kinds: &Kinds, owner: &Item) -> bool {
    let defines = |definition: &CustomResourceDefinition| {
        definition.spec.group == owner.group && definition.spec.names.kind == owner.kind
    };
    kinds.went(owner)
        && !ctx.list::<CustomResourceDefinition>(None).iter().any(|definition| defines(definition))
}

/// Owners that the API server said are not there, and whether an object of their uid lives in another namespace. A uid
/// is never given twice, so what was absent once stays so.
#[derive(Default)]
pub(super) struct Absent(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    known: BTreeMap<Item, bool>,
    oldest_first: VecDeque<Item>,
}

impl Absent {
    fn get(&self, owner: &Item) -> Option<bool> {
        self.0.lock().known.get(owner).copied()
    }

    fn remember(&self, owner: Item, lives_elsewhere: bool) {
        let mut memory = self.0.lock();
        if memory.known.insert(owner.clone(), lives_elsewhere).is_none() {
            memory.oldest_first.push_back(owner);
        }
        if memory.oldest_first.len() > REMEMBERED
            && let Some(oldest) = memory.oldest_first.pop_front()
        {
            memory.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_absent_owners_is_bounded() {
        let absent = Absent::default();
        let owner = |n: usize| Item {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: None,
            name: "o".into(),
            uid: n.to_string(),
        };
        for n in 0..=REMEMBERED {
            absent.remember(owner(n), false);
        }
        assert_eq!(absent.get(&owner(0)), None);
        assert_eq!(absent.get(&owner(REMEMBERED)), Some(false));
        assert_eq!(absent.0.lock().known.len(), REMEMBERED);
    }
}
