//! What makes pods: deployments and their kin.

use jiff::Timestamp;
use kubewright_meta::selector::LabelSelector;
use serde_json::Value;

use super::age::age;
use super::column::{NAME, integer, text as column};
use super::printer::Printer;
use super::value::{cells, flag, items, labels, number, text};

/// Prints deployments.
pub const DEPLOYMENTS: Printer = Printer::new(
    &[
        NAME,
        column("Ready"),
        column("Up-to-date"),
        column("Available"),
        column("Age"),
        column("Containers").wide(),
        column("Images").wide(),
        column("Selector").wide(),
    ],
    |deployment, now| {
        let (names, images) = containers(deployment, "/spec/template/spec/containers");
        let selector = LabelSelector::from_object(&deployment["spec"]["selector"]);
        cells![
            text(deployment, "/metadata/name"),
            ready(deployment),
            number(deployment, "/status/updatedReplicas"),
            number(deployment, "/status/availableReplicas"),
            age(deployment, now),
            names,
            images,
            selector.map_or_else(|_| "<invalid>".to_owned(), |selector| selector.to_string()),
        ]
    },
);

/// Prints replica sets.
pub const REPLICA_SETS: Printer =
    Printer::new(REPLICA_COLUMNS, |set, now| replicas(set, now, selector(set, "/spec/selector")));

/// Prints replication controllers.
pub const REPLICATION_CONTROLLERS: Printer = Printer::new(REPLICA_COLUMNS, |controller, now| {
    replicas(controller, now, labels(controller, "/spec/selector"))
});

/// Prints stateful sets.
pub const STATEFUL_SETS: Printer = Printer::new(
    &[NAME, column("Ready"), column("Age"), column("Containers").wide(), column("Images").wide()],
    |set, now| {
        let (names, images) = containers(set, "/spec/template/spec/containers");
        cells![text(set, "/metadata/name"), ready(set), age(set, now), names, images]
    },
);

/// Prints daemon sets.
pub const DAEMON_SETS: Printer = Printer::new(
    &[
        NAME,
        integer("Desired"),
        integer("Current"),
        integer("Ready"),
        integer("Up-to-date"),
        integer("Available"),
        column("Node Selector"),
        column("Age"),
        column("Containers").wide(),
        column("Images").wide(),
        column("Selector").wide(),
    ],
    |set, now| {
        let (names, images) = containers(set, "/spec/template/spec/containers");
        cells![
            text(set, "/metadata/name"),
            number(set, "/status/desiredNumberScheduled"),
            number(set, "/status/currentNumberScheduled"),
            number(set, "/status/numberReady"),
            number(set, "/status/updatedNumberScheduled"),
            number(set, "/status/numberAvailable"),
            labels(set, "/spec/template/spec/nodeSelector"),
            age(set, now),
            names,
            images,
            selector(set, "/spec/selector"),
        ]
    },
);

/// Prints controller revisions.
pub const CONTROLLER_REVISIONS: Printer =
    Printer::new(&[NAME, column("Controller"), column("Revision"), column("Age")], |revision, now| {
        cells![
            text(revision, "/metadata/name"),
            controller(revision),
            number(revision, "/revision"),
            age(revision, now),
        ]
    });

/// Prints pod templates.
pub const POD_TEMPLATES: Printer =
    Printer::new(&[NAME, column("Containers"), column("Images"), column("Pod Labels")], |template, _| {
        let (names, images) = containers(template, "/template/spec/containers");
        cells![text(template, "/metadata/name"), names, images, labels(template, "/template/metadata/labels")]
    });

const REPLICA_COLUMNS: &[super::Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    column("Age"),
    column("Containers").wide(),
    column("Images").wide(),
    column("Selector").wide(),
];

fn replicas(object: &Value, now: Timestamp, selector: String) -> Vec<Value> {
    let (names, images) = containers(object, "/spec/template/spec/containers");
    cells![
        text(object, "/metadata/name"),
        number(object, "/spec/replicas"),
        number(object, "/status/replicas"),
        number(object, "/status/readyReplicas"),
        age(object, now),
        names,
        images,
        selector,
    ]
}

fn ready(object: &Value) -> String {
    format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"))
}

/// Names and images of containers.
pub(super) fn containers(object: &Value, pointer: &str) -> (String, String) {
    let all = |field: &str| {
        let texts: Vec<&str> =
            items(object, pointer).iter().map(|container| text(container, field)).collect();
        texts.join(",")
    };
    (all("/name"), all("/image"))
}

/// A label selector as text.
pub(super) fn selector(object: &Value, pointer: &str) -> String {
    let selector = LabelSelector::from_object(object.pointer(pointer).unwrap_or(&Value::Null));
    match selector.map(|selector| selector.to_string()) {
        Ok(empty) if empty.is_empty() => "<none>".to_owned(),
        Ok(selector) => selector,
        Err(_) => "<error>".to_owned(),
    }
}

/// Kind and name of the controlling owner.
fn controller(object: &Value) -> String {
    let owners = items(object, "/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| flag(owner, "/controller")) else {
        return "<none>".to_owned();
    };
    let kind = match text(owner, "/apiVersion").rsplit_once('/') {
        Some((group, _)) => format!("{}.{group}", text(owner, "/kind")),
        None => text(owner, "/kind").to_owned(),
    };
    format!("{}/{}", kind.to_lowercase(), text(owner, "/name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_shows_its_replicas_and_containers() {
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:2"}]}},
            },
            "status": {"readyReplicas": 1, "updatedReplicas": 2},
        });
        assert_eq!(
            (DEPLOYMENTS.cells)(&deployment, Timestamp::UNIX_EPOCH),
            cells!["web", "1/3", 2, 0, "<unknown>", "a,b", "i:1,i:2", "app=web"]
        );
    }

    #[test]
    fn a_revision_names_its_controller() {
        let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": true});
        let revision = json!({"metadata": {"name": "db-1", "ownerReferences": [owner]}, "revision": 7});
        assert_eq!(
            (CONTROLLER_REVISIONS.cells)(&revision, Timestamp::UNIX_EPOCH),
            cells!["db-1", "statefulset.apps/db", 7, "<unknown>"]
        );
    }

    #[test]
    fn selectors_that_say_nothing_are_none() {
        let set = json!({"spec": {"selector": {}}});
        assert_eq!((REPLICA_SETS.cells)(&set, Timestamp::UNIX_EPOCH)[7], "<none>");
        assert_eq!((REPLICATION_CONTROLLERS.cells)(&set, Timestamp::UNIX_EPOCH)[7], "<none>");
        assert_eq!((DAEMON_SETS.cells)(&set, Timestamp::UNIX_EPOCH)[6], "<none>");
    }
}
