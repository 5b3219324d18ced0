//! What of an object is the same in each run: without what the server and the clock give it.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddrV4},
};

use jiff::{Timestamp, civil::DateTime, fmt::strtime::BrokenDownTime};
use serde_json::{Map, Value};

/// Metadata that the server gives.
const METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionGracePeriodSeconds",
];
/// Annotations that say how an object came to be as it is: those of built-in controllers, and JOSDK's mark of its last write.
const ANNOTATIONS: [&str; 3] = [
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "javaoperatorsdk.io/previous",
];
/// How the names of annotations begin by which the controllers of volumes tell what they have done with a claim.
const OF_VOLUMES: [&str; 2] = ["pv.kubernetes.io/", "volume.kubernetes.io/"];
/// How programs write times, beside RFC 3339 (constants of Go's package `time`, without their zones).
const TIMES: [&str; 5] = [
    "%A, %d-%b-%y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S",
    "%a %b %e %H:%M:%S %Y",
    "%d %b %y %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
];
/// What the server allots to Services.
const ALLOTTED: [&str; 5] = ["clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort", "ipFamilies"];
/// How the name of the volume begins that the admission plugin ServiceAccount adds to pods.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// What stands for it: a name that the server takes, as somebody else's pod has it too.
const A_TOKEN_VOLUME: &str = "kube-api-access";
/// What stands for a time, for a uid of an object that is not known, and for an address.
const TIME: &str = "<time>";
pub(crate) const UID: &str = "<uid>";
const ADDRESS: &str = "<address>";
/// What stands for the end of a name that the server made up.
const GENERATED: &str = "<generated>";

/// An object without what differs from run to run; `uid_of` says what stands for a uid.
#[must_use]
pub fn without_volatile(object: &Value, has_status: bool, uid_of: &dyn Fn(&str) -> Option<String>) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        METADATA.iter().for_each(|field| drop(metadata.remove(*field)));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            ANNOTATIONS.iter().for_each(|name| drop(annotations.remove(*name)));
        }
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
            metadata.remove("annotations");
        }
    }
    match object["kind"].as_str() {
        Some("Service") => without_allotted(&mut object["spec"]),
        Some("PersistentVolumeClaim") => {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|name, _| !OF_VOLUMES.iter().any(|own| name.starts_with(own)));
            }
            drop(object["spec"].as_object_mut().map(|spec| spec.remove("volumeName")));
        }
        Some("Pod") => {
            object["spec"].as_object_mut().map(|spec| spec.remove("nodeName"));
            same_token_volumes(&mut object["spec"]);
        }
        _ => {}
    }
    if !has_status && object.get("status").is_some() {
        object.as_object_mut().map(|object| object.remove("status"));
    }
    same_words(&mut object, uid_of);
    if let Some(status) = object.get_mut("status") {
        same_addresses(status);
    }
    object
}

fn without_allotted(spec: &mut Value) {
    if spec["clusterIP"] == "None" {
        // Somebody wanted it so.
        return;
    }
    if let Some(spec) = spec.as_object_mut() {
        ALLOTTED.iter().for_each(|field| drop(spec.remove(*field)));
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        port.as_object_mut().map(|port| port.remove("nodePort"));
    }
}

/// The volume with the token of a pod's service account has a name that the server makes up.
fn same_token_volumes(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with(TOKEN_VOLUME) => A_TOKEN_VOLUME.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(same_token_volumes),
        Value::Object(fields) => fields.values_mut().for_each(same_token_volumes),
        _ => {}
    }
}

/// Times and uids in texts become the same words in each run.
fn same_words(value: &mut Value, uid_of: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) if is_time(text) => TIME.clone_into(text),
        Value::String(text) if is_uid(text) => *text = uid_of(text).unwrap_or_else(|| UID.to_owned()),
        Value::Array(items) => items.iter_mut().for_each(|item| same_words(item, uid_of)),
        Value::Object(fields) => fields.values_mut().for_each(|field| same_words(field, uid_of)),
        _ => {}
    }
}

/// Which pod has which address differs from run to run; those of the cluster are in 10.0.0.0/8.
fn same_addresses(value: &mut Value) {
    let is_allotted = |address: Ipv4Addr| address.octets()[0] == 10;
    match value {
        Value::String(text) => {
            if text.parse().is_ok_and(is_allotted) {
                ADDRESS.clone_into(text);
            } else if let Ok(socket) = text.parse::<SocketAddrV4>()
                && is_allotted(*socket.ip())
            {
                *text = format!("{ADDRESS}:{}", socket.port());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(same_addresses),
        Value::Object(fields) => fields.values_mut().for_each(same_addresses),
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    // With a zone or, as Python writes it, without one.
    let is_long = text.len() >= "2026-01-01T00:00:00".len() && text.as_bytes()[10] == b'T';
    is_long && (text.parse::<Timestamp>().is_ok() || text.parse::<DateTime>().is_ok()) || is_other_time(text)
}

/// Whether a text is a time as Go writes it in other ways.
fn is_other_time(text: &str) -> bool {
    if !(12..64).contains(&text.len()) || !text.contains(':') {
        return false;
    }
    // `time.Time` prints how long the program has run; and zones come as names, as numbers, or as both.
    let words = text.split(" m=").next().unwrap_or_default().split(' ');
    let is_zone = |word: &str| matches!(word, "UTC" | "GMT") || word.starts_with('+') && word.len() == 5;
    let plain = words.filter(|word| !is_zone(word)).collect::<Vec<_>>().join(" ");
    TIMES.iter().any(|form| BrokenDownTime::parse(form, &plain).is_ok())
}

fn is_uid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

/// Names that the server made up (`generateName`) become numbers, in the order of what the objects say. Objects are given with
/// their collections.
pub fn rename_generated(objects: &mut [(String, Value)]) {
    let text =
        |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let mut by_prefix: BTreeMap<(String, String, String), Vec<usize>> = BTreeMap::new();
    for (place, (collection, object)) in objects.iter().enumerate() {
        let prefix = text(object, "generateName");
        // Pods of StatefulSets have a prefix, too, and their ordinals behind it.
        if !prefix.is_empty() && text(object, "name").strip_prefix(&prefix).is_some_and(is_made_up) {
            let kept = (collection.clone(), text(object, "namespace"), prefix);
            by_prefix.entry(kept).or_default().push(place);
        }
    }
    for ((_, _, prefix), mut places) in by_prefix {
        places.sort_by_cached_key(|place| {
            let mut object = objects[*place].1.clone();
            object["metadata"]["name"] = Value::Null;
            object.to_string()
        });
        for (number, place) in places.into_iter().enumerate() {
            objects[place].1["metadata"]["name"] = format!("{prefix}{}", number + 1).into();
        }
    }
}

/// The name of an object that the server made up, with what stands before it.
pub(crate) fn generated_name(object: &Value) -> Option<(&str, &str)> {
    let (name, prefix) = (object["metadata"]["name"].as_str()?, object["metadata"]["generateName"].as_str()?);
    (!prefix.is_empty() && name.strip_prefix(prefix).is_some_and(is_made_up)).then_some((name, prefix))
}

/// Names that the server made up are the same wherever a text has them, but as that of the object itself.
pub(crate) fn same_generated_names(object: &mut Value, names: &BTreeMap<&str, &str>) {
    let own = object["metadata"]["name"].take();
    replace_names(object, names);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.insert("name".to_owned(), own);
    }
}

fn replace_names(value: &mut Value, names: &BTreeMap<&str, &str>) {
    match value {
        Value::String(text) => {
            for (name, prefix) in names {
                if text.contains(name) {
                    *text = text.replace(name, &format!("{prefix}{GENERATED}"));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_names(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_names(field, names)),
        _ => {}
    }
}

/// Whether the server makes up such ends of names (`k8s.io/apimachinery/pkg/util/rand`).
fn is_made_up(end: &str) -> bool {
    end.len() == 5 && end.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_and_the_clock_give_is_left_out() {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "uid": "1", "resourceVersion": "7", "managedFields": [], "annotations": {}},
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30000}]},
            "status": {"at": "2026-01-01T00:00:00Z", "of": "0f8fad5b-d9cb-469f-a165-70867728950e"}});
        let known = |_: &str| Some("<uid of web>".to_owned());
        assert_eq!(
            without_volatile(&service, true, &known),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]},
                "status": {"at": "<time>", "of": "<uid of web>"}})
        );
        assert_eq!(without_volatile(&service, false, &known).get("status"), None);
    }

    #[test]
    fn a_time_is_one_with_a_zone_and_without() {
        let times = ["2026-11-29T14:48:44Z", "2026-11-29T14:48:44.604803", "2026-11-29T14:48:44+01:00"];
        assert!(times.iter().all(|time| is_time(time)));
        let others = [
            "Sunday, 29-Nov-26 17:54:43 UTC",
            "Sun, 29 Nov 2026 17:54:43 GMT",
            "Sun, 29 Nov 2026 17:54:43 +0000",
            "Sun Nov 29 17:54:43 UTC 2026",
            "2026-11-29 17:54:43.604803 +0000 UTC m=+0.013",
            "2026-11-29 17:54:43",
        ];
        assert_eq!(others.into_iter().filter(|time| !is_time(time)).collect::<Vec<_>>(), [""; 0]);
        assert!(!is_time("example.org/image:1.2.3-alpha") && !is_time("10 of 12: 17"));
        assert!(!is_time("2026-11-29") && !is_time("name-of-somethingT-that-is-long"));
    }

    #[test]
    fn a_headless_service_stays_headless() {
        let service = json!({"kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}});
        assert_eq!(without_volatile(&service, false, &|_| None), service);
    }

    #[test]
    fn generated_names_are_numbers_in_the_order_of_what_the_objects_say() {
        let pod = |name: &str, image: &str| {
            let metadata = json!({"name": name, "generateName": "p-"});
            ("/pods".to_owned(), json!({"metadata": metadata, "spec": {"image": image}}))
        };
        let named = |mut pods: Vec<(String, Value)>| {
            rename_generated(&mut pods);
            pods.sort_by_key(|(_, pod)| pod["metadata"]["name"].to_string());
            pods
        };
        let (one, other) = (
            named(vec![pod("p-x7bcd", "b"), pod("p-k2bcd", "a")]),
            named(vec![pod("p-4bcdf", "a"), pod("p-zbcdf", "b")]),
        );
        assert_eq!(one, other);
        assert_eq!((&one[0].1["metadata"]["name"], &one[0].1["spec"]["image"]), (&json!("p-1"), &json!("a")));
    }

    #[test]
    fn a_name_that_the_server_made_up_is_the_same_where_others_write_it_down() {
        let noted = |end: &str| {
            let name = format!("web-5d8f9-{end}");
            let pod = json!({"metadata": {"name": name, "generateName": "web-5d8f9-"}});
            let names: BTreeMap<&str, &str> = generated_name(&pod).into_iter().collect();
            let mut page = json!({"metadata": {"name": name}, "status": {"nodes": [name, "web-0"], "message": format!("{name} is ready")}});
            same_generated_names(&mut page, &names);
            page
        };
        let (one, other) = (noted("x7bcd"), noted("k2bcd"));
        assert_eq!(one["status"], other["status"]);
        assert_eq!(one["status"]["nodes"], json!(["web-5d8f9-<generated>", "web-0"]));
        assert_ne!(one["metadata"]["name"], other["metadata"]["name"], "its own is another's to make stable");
        assert_eq!(generated_name(&json!({"metadata": {"name": "web-0", "generateName": "web-"}})), None);
    }

    #[test]
    fn the_volume_of_a_pods_token_is_the_same_in_each_run() {
        let pod = |name: &str| {
            let mount = json!({"name": name, "mountPath": "/var/run/secrets"});
            let spec = json!({"nodeName": name, "volumes": [{"name": name}, {"name": "data"}],
                "containers": [{"name": "a", "volumeMounts": [mount]}]});
            without_volatile(&json!({"kind": "Pod", "metadata": {}, "spec": spec}), false, &|_| None)
        };
        assert_eq!(pod("kube-api-access-m8b2f"), pod("kube-api-access-gzgqx"));
        let volumes = pod("kube-api-access-m8b2f")["spec"]["volumes"].clone();
        assert_eq!(volumes, json!([{"name": "kube-api-access"}, {"name": "data"}]), "names of volumes");
    }

    #[test]
    fn addresses_of_pods_in_a_status_are_the_same_in_each_run() {
        let pod = |address: &str| {
            let object = json!({"kind": "Node", "spec": {"bind": address},
                "status": {"podIP": address, "peers": [format!("{address}:6379")], "version": "1.2.3.4"}});
            without_volatile(&object, true, &|_| None)
        };
        let (one, other) = (pod("10.128.0.1"), pod("10.128.0.8"));
        assert_eq!(one["status"], other["status"]);
        assert_eq!(one["status"]["peers"][0], "<address>:6379");
        assert_eq!(one["status"]["version"], "1.2.3.4");
        assert_ne!(one["spec"], other["spec"]);
    }
}
