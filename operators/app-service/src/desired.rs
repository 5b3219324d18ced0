//! The pods that an AppService is meant to have.

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::ObjectMeta};
use kubewright::owner;
use serde_json::json;

use crate::AppService;

/// Tells from which spec a pod was made: a pod's own cannot be changed, so another spec means another pod.
pub(crate) const SPEC: &str = "app.example.com/spec";

/// The label of its pods.
pub(crate) const APP: &str = "app";

/// The name of the pod with this number; the first has none, as the write-up's only one.
pub(crate) fn name(app: &AppService, number: usize) -> String {
    match number {
        0 => format!("{}-pod", app.name_any()),
        more => format!("{}-pod-{more}", app.name_any()),
    }
}

/// The names of all pods that it is meant to have.
pub(crate) fn names(app: &AppService) -> Vec<String> {
    (0..usize::try_from(app.spec.size).unwrap_or(0)).map(|number| name(app, number)).collect()
}

/// What of a spec makes its pods.
pub(crate) fn template(app: &AppService) -> String {
    json!([app.spec.image, app.spec.command, app.spec.restart_policy]).to_string()
}

/// The pod of this name.
pub(crate) fn pod(app: &AppService, name: &str) -> serde_json::Result<Pod> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: app.namespace(),
        labels: Some([(APP.to_owned(), app.name_any())].into()),
        annotations: Some([(SPEC.to_owned(), template(app))].into()),
        owner_references: Some(vec![owner::controller_reference(app)]),
        ..ObjectMeta::default()
    };
    kubewright::object::from_value(json!({
        "metadata": metadata,
        "spec": {
            "restartPolicy": app.spec.restart_policy,
            "containers": [{"name": "busybox", "image": app.spec.image, "command": app.spec.command}],
        },
    }))
}
