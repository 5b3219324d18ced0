//! What objects name: ConfigMaps, Secrets, claims, accounts, and who serves webhooks.

use serde_json::Value;

use super::listing;
use super::read::{Listing, Reader};
use crate::object::{Id, Object};

impl Reader<'_> {
    /// Reads what the objects in the picture name, to see whether it is there.
    pub(super) async fn references(&mut self) {
        let mut ids = Vec::new();
        for object in &self.picture.objects {
            let template = match (object.group(), object.kind()) {
                ("", "Pod") => object.at("/spec"),
                ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                    object.at("/spec/template/spec")
                }
                _ => continue,
            };
            ids.extend(named(template, object.namespace()));
        }
        self.objects(ids).await;
        let mut namespaces: Vec<String> = self.picture.objects.iter().flat_map(served_in).collect();
        namespaces.sort();
        namespaces.dedup();
        let mut wanted: Vec<Listing> = Vec::new();
        for namespace in namespaces {
            for (group, kind) in [("", "Service"), ("discovery.k8s.io", "EndpointSlice")] {
                if !self.picture.is_whole(group, kind, &namespace)
                    && let Some(kind) = self.kinds.get(group, kind)
                {
                    wanted.push(listing(kind, &namespace, false));
                }
            }
        }
        self.lists(wanted).await;
    }
}

/// ConfigMaps and Secrets that a pod cannot do without.
pub(crate) fn named(spec: &Value, namespace: &str) -> Vec<Id> {
    let mut found = Vec::new();
    let mut take = |kind: &str, reference: &Value, key: &str| {
        if let (Some(name), false) = (reference[key].as_str(), reference["optional"] == true) {
            found.push(Id::new("", kind, namespace, name));
        }
    };
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        take("ConfigMap", &volume["configMap"], "name");
        take("Secret", &volume["secret"], "secretName");
        for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
            take("ConfigMap", &source["configMap"], "name");
            take("Secret", &source["secret"], "name");
        }
    }
    let containers = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|key| spec[key].as_array().into_iter().flatten());
    for container in containers {
        for source in container["envFrom"].as_array().into_iter().flatten() {
            take("ConfigMap", &source["configMapRef"], "name");
            take("Secret", &source["secretRef"], "name");
        }
        for variable in container["env"].as_array().into_iter().flatten() {
            take("ConfigMap", &variable["valueFrom"]["configMapKeyRef"], "name");
            take("Secret", &variable["valueFrom"]["secretKeyRef"], "name");
        }
    }
    found
}

/// The namespaces of the services that an object has called.
fn served_in(object: &Object) -> Vec<String> {
    let mut found = Vec::new();
    for webhook in object.list("/webhooks") {
        found.extend(webhook["clientConfig"]["service"]["namespace"].as_str().map(str::to_owned));
    }
    for pointer in ["/spec/conversion/webhook/clientConfig/service/namespace", "/spec/service/namespace"] {
        if matches!(object.kind(), "CustomResourceDefinition" | "APIService") {
            found.push(object.text(pointer).to_owned());
        }
    }
    found.retain(|namespace| !namespace.is_empty());
    found
}
