//! The TTL controller: how long a node may keep secrets and config maps without asking, by the size of the cluster
//! (`pkg/controller/ttl/ttl_controller.go`).

use k8s_openapi::api::core::v1::Node;
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler};
use serde_json::json;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";
/// Up to so many nodes, so many seconds (`ttlBoundaries`).
const BOUNDARIES: [(usize, u32); 4] = [(100, 0), (500, 15), (1_000, 30), (2_000, 60)];
const LONGEST: u32 = 300;

/// The controller.
pub(crate) fn controller() -> Controller {
    Controller::new("ttl-controller", Annotator).for_kind::<Node>().predicate(Predicate::of(
        |event: &Event<'_, Node>| match event {
            Event::Create(_) | Event::Generic(_) => true,
            Event::Update { new, .. } => !is_annotated(new),
            Event::Delete(_) => false,
        },
    ))
}

struct Annotator;

impl Reconciler for Annotator {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(node) = ctx.get::<Node>(key) else { return Ok(Outcome::Done) };
        if is_annotated(&node) {
            return Ok(Outcome::Done);
        }
        let seconds = seconds(ctx.list::<Node>(None).len()).to_string();
        let patch = json!({"metadata": {"annotations": {ANNOTATION: seconds}}});
        match ctx.patch::<Node>(key, patch).await {
            Err(error) if error.is_not_found() => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

/// A node keeps what it was told when it came; kube-controller-manager tells it again when it changes.
fn is_annotated(node: &Node) -> bool {
    node.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(ANNOTATION))
}

fn seconds(nodes: usize) -> u32 {
    let boundary = BOUNDARIES.iter().find(|(most, _)| nodes <= *most);
    boundary.map_or(LONGEST, |(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_nodes_the_longer() {
        assert_eq!([1, 100, 101, 800, 2_000, 5_000].map(seconds), [0, 0, 15, 30, 60, 300]);
    }
}
