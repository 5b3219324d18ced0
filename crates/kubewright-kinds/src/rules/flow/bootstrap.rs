//! The flow schemas and priority levels of every cluster (`k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go`).

use serde_json::{Value, json};

const GROUP_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// Who has written them, as field ownership tells it.
pub const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// All of them, each with its plural: levels first, as schemas speak of them.
#[must_use]
pub fn objects() -> Vec<(&'static str, Value)> {
    let levels = LEVELS.into_iter().map(|level| {
        let name = level.0;
        ("prioritylevelconfigurations", object("PriorityLevelConfiguration", name, &level_spec(level)))
    });
    let schemas =
        schemas().into_iter().map(|(name, spec)| ("flowschemas", object("FlowSchema", name, &spec)));
    levels.chain(schemas).collect()
}

/// The spec that the priority level of that name must have, when it is one of the two that nobody may change.
pub(super) fn mandatory_level(name: &str) -> Option<Value> {
    let level = LEVELS.into_iter().find(|level| level.0 == name && is_mandatory(name))?;
    Some(level_spec(level))
}

/// The spec that the flow schema of that name must have, when it is one of the two that nobody may change.
pub(super) fn mandatory_schema(name: &str) -> Option<Value> {
    if !is_mandatory(name) {
        return None;
    }
    schemas().into_iter().find(|(known, _)| *known == name).map(|(_, spec)| spec)
}

/// Whether the server has an object of that name even where nobody has written it.
pub fn is_mandatory(name: &str) -> bool {
    matches!(name, "exempt" | "catch-all")
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": GROUP_VERSION,
        "kind": kind,
        "metadata": {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}},
        "spec": spec
    })
}

/// A level: its name, shares, how much of it may be lent in percent, number of queues and size of a hand.
type Level = (&'static str, u32, u32, Option<(u32, u32)>);

const LEVELS: [Level; 8] = [
    ("exempt", 0, 0, None),
    ("catch-all", 5, 0, None),
    ("system", 30, 33, Some((64, 6))),
    ("node-high", 40, 25, Some((64, 6))),
    ("leader-election", 10, 0, Some((16, 4))),
    ("workload-high", 40, 50, Some((128, 6))),
    ("workload-low", 100, 90, Some((128, 6))),
    ("global-default", 20, 50, Some((128, 6))),
];

fn level_spec((name, shares, lendable, queues): Level) -> Value {
    if name == "exempt" {
        let exempt = json!({"nominalConcurrencyShares": shares, "lendablePercent": lendable});
        return json!({"type": "Exempt", "exempt": exempt});
    }
    let response = match queues {
        None => json!({"type": "Reject"}),
        Some((queues, hand)) => {
            let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 50});
            json!({"type": "Queue", "queuing": queuing})
        }
    };
    json!({
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": response
        }
    })
}

fn schemas() -> [(&'static str, Value); 11] {
    let everybody = || vec![group("system:unauthenticated"), group("system:authenticated")];
    let in_system = || account("kube-system");
    let manager = || user("system:kube-controller-manager");
    let scheduler = || user("system:kube-scheduler");
    let leases = |verbs: &[&str]| json!({"verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]});
    let nodes = json!({
        "verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"],
        "namespaces": ["*"], "clusterScope": true
    });
    let probes = json!([{
        "subjects": everybody(),
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]
    }]);
    let elections = json!([{
        "subjects": [manager(), scheduler(), in_system()],
        "resourceRules": [leases(&["get", "create", "update"])]
    }]);
    let beats = json!([{"subjects": [group("system:nodes")], "resourceRules": [nodes, leases(&["*"])]}]);
    let all = |subjects: Vec<Value>| everything(&subjects);
    [
        ("exempt", schema("exempt", 1, "", &all(vec![group("system:masters")]))),
        ("probes", schema("exempt", 2, "", &probes)),
        ("system-leader-election", schema("leader-election", 100, "ByUser", &elections)),
        ("system-node-high", schema("node-high", 400, "ByUser", &beats)),
        ("system-nodes", schema("system", 500, "ByUser", &all(vec![group("system:nodes")]))),
        ("kube-controller-manager", schema("workload-high", 800, "ByNamespace", &all(vec![manager()]))),
        ("kube-scheduler", schema("workload-high", 800, "ByNamespace", &all(vec![scheduler()]))),
        (
            "kube-system-service-accounts",
            schema("workload-high", 900, "ByNamespace", &all(vec![in_system()])),
        ),
        (
            "service-accounts",
            schema("workload-low", 9000, "ByUser", &all(vec![group("system:serviceaccounts")])),
        ),
        ("global-default", schema("global-default", 9900, "ByUser", &all(everybody()))),
        ("catch-all", schema("catch-all", 10_000, "ByUser", &all(everybody()))),
    ]
}

/// A schema that tells the flows apart by this method, when it is not empty.
fn schema(level: &str, precedence: u32, method: &str, rules: &Value) -> Value {
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": rules
    });
    if !method.is_empty() {
        spec["distinguisherMethod"] = json!({"type": method});
    }
    spec
}

/// Rules for all that these subjects ask for.
fn everything(subjects: &[Value]) -> Value {
    json!([{
        "subjects": subjects,
        "resourceRules": [{
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "clusterScope": true, "namespaces": ["*"]
        }],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    }])
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "group": {"name": name}})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "user": {"name": name}})
}

fn account(namespace: &str) -> Value {
    json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": "*"}})
}
