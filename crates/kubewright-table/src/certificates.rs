//! Trust bundles, and requests for certificates of pods.

use super::column::{NAME, text as column};
use super::printer::Printer;
use super::value::{cells, items, labels, text, text_or};

/// Prints trust bundles of the cluster.
pub const TRUST_BUNDLES: Printer = Printer::new(&[NAME, column("SignerName")], |bundle, _| {
    cells![text(bundle, "/metadata/name"), text_or(bundle, "/spec/signerName", "<none>")]
});

/// Prints requests for certificates of pods.
pub const POD_REQUESTS: Printer = Printer::new(
    &[
        NAME,
        column("PodName"),
        column("ServiceAccountName"),
        column("NodeName"),
        column("SignerName"),
        column("State"),
        column("UnverifiedUserAnnotations"),
    ],
    |request, _| {
        let mut states =
            items(request, "/status/conditions").iter().map(|condition| text(condition, "/type"));
        let state = states.rfind(|state| ["Issued", "Denied", "Failed"].contains(state));
        cells![
            text(request, "/metadata/name"),
            text(request, "/spec/podName"),
            text(request, "/spec/serviceAccountName"),
            text(request, "/spec/nodeName"),
            text(request, "/spec/signerName"),
            state.unwrap_or("Pending"),
            labels(request, "/spec/unverifiedUserAnnotations"),
        ]
    },
);

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_shows_its_state() {
        let request = json!({
            "metadata": {"name": "r"},
            "spec": {"podName": "p", "serviceAccountName": "s", "nodeName": "n", "signerName": "a.b/c"},
            "status": {"conditions": [{"type": "Denied", "status": "True"}]},
        });
        let row = |request| (POD_REQUESTS.cells)(request, Timestamp::UNIX_EPOCH);
        assert_eq!(row(&request), cells!["r", "p", "s", "n", "a.b/c", "Denied", "<none>"]);
        assert_eq!(row(&json!({}))[5], "Pending");
    }
}
