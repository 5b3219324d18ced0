//! Which SecurityGroups an event elsewhere is of interest to.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kubewright::{Key, Predicate, predicate::Event};
use parking_lot::Mutex;

use crate::{SecurityGroup, SecurityGroupSpec, nodes::NodeSelector};

/// What the SecurityGroups that were reconciled so far look at.
#[derive(Debug, Default)]
pub(crate) struct Interest(Mutex<BTreeMap<Key, Looks>>);

#[derive(Debug)]
struct Looks {
    nodes: Option<NodeSelector>,
    /// The names of SecurityGroups whose groups are in its rules.
    groups: BTreeSet<String>,
}

impl Interest {
    /// Notes what the SecurityGroup `key` looks at.
    pub(crate) fn note(&self, key: &Key, spec: &SecurityGroupSpec) {
        let groups = spec.rules.iter().filter_map(|rule| Some(rule.remote_group_ref.as_ref()?.name.clone()));
        let looks = Looks { nodes: NodeSelector::of(spec).ok(), groups: groups.collect() };
        self.0.lock().insert(key.clone(), looks);
    }

    /// Forgets a SecurityGroup that is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Who selects this node.
    pub(crate) fn in_node(&self, node: &Node) -> Vec<Key> {
        let all = self.0.lock();
        let selects = |looks: &Looks| looks.nodes.as_ref().is_some_and(|nodes| nodes.matches(node.labels()));
        all.iter().filter(|(_, looks)| selects(looks)).map(|(key, _)| key.clone()).collect()
    }

    /// Who has this one's group in its rules.
    pub(crate) fn in_group(&self, group: &SecurityGroup) -> Vec<Key> {
        let (namespace, name) = (group.namespace(), group.name_any());
        let all = self.0.lock();
        let refers = |key: &Key, looks: &Looks| key.namespace == namespace && looks.groups.contains(&name);
        all.iter().filter(|(key, looks)| refers(key, looks)).map(|(key, _)| key.clone()).collect()
    }
}

/// What of a node counts. (Its kubelet writes its status all the time.)
pub(crate) fn node_changed() -> Predicate {
    Predicate::of(|event: &Event<'_, Node>| {
        let Event::Update { old, new } = event else { return true };
        let server = |node: &Node| {
            let provider = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
            let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
            (provider, info.map(|info| info.system_uuid.clone()))
        };
        old.metadata.labels != new.metadata.labels || server(old) != server(new)
    })
}

/// Its ID is what others want to know of a SecurityGroup.
pub(crate) fn id_changed() -> Predicate {
    Predicate::of(|event: &Event<'_, SecurityGroup>| {
        let id = |group: &SecurityGroup| group.status.as_ref().and_then(|status| status.id.clone());
        match event {
            Event::Update { old, new } => id(old) != id(new),
            _ => true,
        }
    })
}
