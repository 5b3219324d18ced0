//! Nodes.

use crate::cause::Cause;
use crate::causes::Around;
use crate::report::Finding;
use crate::text::one_line;

pub(super) fn find(around: &Around<'_>) -> Vec<Finding> {
    let node = around.object;
    let Some(ready) = node.condition("Ready").filter(|one| one.status != "True") else { return Vec::new() };
    let pressures = node.conditions().filter(|one| one.kind != "Ready" && one.status == "True");
    let pressures: Vec<String> = pressures.map(|one| one.line()).collect();
    let message = format!("it is not ready: {}", one_line(ready.message));
    let next = "is the machine up, and its kubelet running and able to reach the API server?";
    vec![Finding::new(Cause::NodeNotReady, message, next).evidence(ready.line()).all(pressures)]
}
