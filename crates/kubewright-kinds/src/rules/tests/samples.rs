//! A small good object of every kind, as a client would send it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Kind;

/// A request for a certificate of `/O=g/CN=x`, signed with its own key.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIVE1Ib0NBUUF3R0RFS01BZ0dBMVVFQ2d3Qlp6RUtNQWdHQTFVRUF3d0JlREJaTUJNR0J5cUdTTTQ5QWdFRwpDQ3FHU000OUF3RUhBMElBQkpza1pyTVpCeDBqS0E5YmM2ZlZ4VDhGNU1aT3RlMldkdE14WGpRbzcyV1Q1L3JjCjgvOTZPajBjOHhhTEtvTE1tS092MjFsVFNJMnliczFTUW90VGJEV2dBREFLQmdncWhrak9QUVFEQWdOSkFEQkcKQWlFQWdhbWZCV1JuTDVlMXRQQVhHd3NkTW4rWVdmTzdETmdHZm04VzVRMDFVSE1DSVFEUnNSNTlYV01vSkhwRAp6RVpZNUdkMGVaVjVWNFVtT1NZVzg3N3lYM1gwc1E9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

/// A certificate of an authority.
const BUNDLE: &str = "-----BEGIN CERTIFICATE-----\nMIIBcDCCARegAwIBAgIULmG5sKfaJVJdEuNfpz6nqDuUo3owCgYIKoZIzj0EAwIw\nDTELMAkGA1UEAwwCY2EwIBcNMjYxMTI1MjI0OTI1WhgPMjEyNjExMDEyMjQ5MjVa\nMA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEF7xBWrNK\nRyLTR6O0oKPed9thOKdbyLvG/lIfOK422BVGX7JdXldNQTWh9vrvlPNEihmolxOr\nLbnwvjL3XBtaGaNTMFEwHQYDVR0OBBYEFDpITR7VXR6CC3GgT7xbNtSoyubNMB8G\nA1UdIwQYMBaAFDpITR7VXR6CC3GgT7xbNtSoyubNMA8GA1UdEwEB/wQFMAMBAf8w\nCgYIKoZIzj0EAwIDRwAwRAIgOCwkW/rUSFPBnV2LLryyDy5wt4Ip4/MHefoUL1Nm\n1yoCICcAVVxMfJTct74JnSP0IZEtz09xVbQL8R85jyXqboo1\n-----END CERTIFICATE-----\n";

pub(super) const POD: Kind = ("", "v1", "pods");
pub(super) const DEPLOYMENT: Kind = ("apps", "v1", "deployments");
pub(super) const REPLICA_SET: Kind = ("apps", "v1", "replicasets");
pub(super) const STATEFUL_SET: Kind = ("apps", "v1", "statefulsets");
pub(super) const DAEMON_SET: Kind = ("apps", "v1", "daemonsets");
pub(super) const CONTROLLER: Kind = ("", "v1", "replicationcontrollers");
pub(super) const JOB: Kind = ("batch", "v1", "jobs");
pub(super) const CRON_JOB: Kind = ("batch", "v1", "cronjobs");
pub(super) const SERVICE: Kind = ("", "v1", "services");
pub(super) const CONFIG_MAP: Kind = ("", "v1", "configmaps");
pub(super) const SECRET: Kind = ("", "v1", "secrets");
pub(super) const NAMESPACE: Kind = ("", "v1", "namespaces");

pub(super) const FLOW_SCHEMA: Kind = ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas");
pub(super) const PRIORITY_LEVEL: Kind = ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations");

fn flow_schema() -> Value {
    json!({"spec": {
        "priorityLevelConfiguration": {"name": "low"},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": "u"}}],
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["n"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/"]}]
        }]
    }})
}

fn priority_level() -> Value {
    json!({"spec": {
        "type": "Limited",
        "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}
    }})
}

pub(super) fn pod_spec() -> Value {
    json!({"containers": [{"name": "c", "image": "nginx:1.25"}]})
}

pub(super) fn workload() -> Value {
    json!({
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec()}
    })
}

pub(super) fn job_spec() -> Value {
    let mut spec = pod_spec();
    spec["restartPolicy"] = json!("Never");
    json!({"template": {"spec": spec}})
}

pub(super) fn claim_spec() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
}

fn rule() -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]})
}

fn hooks() -> Value {
    json!([{
        "name": "a.example.com",
        "clientConfig": {"service": {"name": "s", "namespace": "n"}},
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"]
    }])
}

/// All of them.
pub(super) fn all() -> Vec<(Kind, Value)> {
    let mut samples = core();
    samples.extend(workloads());
    samples.extend(small_groups());
    samples.extend(cluster_groups());
    samples.extend(since_v1_37());
    samples
}

fn core() -> Vec<(Kind, Value)> {
    vec![
        (CONFIG_MAP, json!({"data": {"k": "v"}})),
        (SECRET, json!({"stringData": {"k": "v"}})),
        (NAMESPACE, json!({"metadata": {"name": "n"}})),
        (("", "v1", "nodes"), json!({"status": {"capacity": {"cpu": "4000m", "pods": 110}}})),
        (("", "v1", "serviceaccounts"), json!({})),
        (
            ("", "v1", "limitranges"),
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
        ),
        (("", "v1", "resourcequotas"), json!({"spec": {"hard": {"pods": "10", "requests.cpu": "1000m"}}})),
        (("", "v1", "persistentvolumeclaims"), json!({"spec": claim_spec()})),
        (
            ("", "v1", "persistentvolumes"),
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}}),
        ),
        (SERVICE, json!({"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}})),
        (
            ("", "v1", "endpoints"),
            json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
        ),
        (
            ("", "v1", "events"),
            json!({"involvedObject": {"kind": "Pod", "namespace": "default"}, "reason": "x"}),
        ),
        (POD, json!({"spec": pod_spec()})),
        (
            ("", "v1", "podtemplates"),
            json!({"template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec()}}),
        ),
    ]
}

fn workloads() -> Vec<(Kind, Value)> {
    vec![
        (
            CONTROLLER,
            json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec()}}}),
        ),
        (DEPLOYMENT, json!({"spec": workload()})),
        (REPLICA_SET, json!({"spec": workload()})),
        (DAEMON_SET, json!({"spec": workload()})),
        (STATEFUL_SET, json!({"spec": workload()})),
        (("apps", "v1", "controllerrevisions"), json!({"data": {"x": 1}, "revision": 1})),
        (JOB, json!({"spec": job_spec()})),
        (CRON_JOB, json!({"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job_spec()}}})),
        (
            ("autoscaling", "v2", "horizontalpodautoscalers"),
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}),
        ),
        (
            ("autoscaling", "v1", "horizontalpodautoscalers"),
            json!({"spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}),
        ),
        (
            ("policy", "v1", "poddisruptionbudgets"),
            json!({"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "a"}}}}),
        ),
    ]
}

fn small_groups() -> Vec<(Kind, Value)> {
    vec![
        (FLOW_SCHEMA, flow_schema()),
        (PRIORITY_LEVEL, priority_level()),
        (("coordination.k8s.io", "v1", "leases"), json!({"spec": {"leaseDurationSeconds": 15}})),
        (("scheduling.k8s.io", "v1", "priorityclasses"), json!({"value": 10})),
        (
            ("node.k8s.io", "v1", "runtimeclasses"),
            json!({"handler": "runc", "overhead": {"podFixed": {"cpu": "250m"}}}),
        ),
        (
            ("discovery.k8s.io", "v1", "endpointslices"),
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]}),
        ),
        (
            ("events.k8s.io", "v1", "events"),
            json!({
                "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
                "eventTime": "2024-01-02T03:04:05.000000Z",
                "reportingController": "example.com/ctl",
                "reportingInstance": "ctl-1",
                "action": "Starting",
                "reason": "Started",
                "type": "Normal"
            }),
        ),
        (
            ("networking.k8s.io", "v1", "ingresses"),
            json!({"spec": {"rules": [{"host": "example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}
            ]}}]}}),
        ),
        (
            ("networking.k8s.io", "v1", "ingressclasses"),
            json!({"spec": {"controller": "example.com/ingress"}}),
        ),
        (
            ("networking.k8s.io", "v1", "networkpolicies"),
            json!({"spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}]}}),
        ),
        (
            ("networking.k8s.io", "v1", "ipaddresses"),
            json!({"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}}),
        ),
        (("networking.k8s.io", "v1", "servicecidrs"), json!({"spec": {"cidrs": ["10.0.0.0/16"]}})),
        (
            ("certificates.k8s.io", "v1", "certificatesigningrequests"),
            json!({"spec": {"request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"]}}),
        ),
    ]
}

fn cluster_groups() -> Vec<(Kind, Value)> {
    let policy =
        json!({"matchConstraints": {"resourceRules": [rule()]}, "validations": [{"expression": "true"}]});
    let mut mutating = policy.clone();
    mutating["mutations"] = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}]);
    mutating["reinvocationPolicy"] = json!("Never");
    let role_rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let admission = "admissionregistration.k8s.io";
    let rbac = "rbac.authorization.k8s.io";
    let storage = "storage.k8s.io";
    vec![
        ((rbac, "v1", "roles"), json!({"rules": role_rules})),
        ((rbac, "v1", "clusterroles"), json!({"rules": role_rules})),
        (
            (rbac, "v1", "rolebindings"),
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}),
        ),
        (
            (rbac, "v1", "clusterrolebindings"),
            json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "g"}]}),
        ),
        ((storage, "v1", "storageclasses"), json!({"provisioner": "example.com/disk"})),
        (
            (storage, "v1", "volumeattributesclasses"),
            json!({"driverName": "disk.example.com", "parameters": {"a": "b"}}),
        ),
        ((storage, "v1", "csidrivers"), json!({"spec": {}})),
        (
            (storage, "v1", "csinodes"),
            json!({"spec": {"drivers": [{"name": "disk.example.com", "nodeID": "n"}]}}),
        ),
        (
            (storage, "v1", "volumeattachments"),
            json!({"spec": {"attacher": "disk.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}),
        ),
        ((storage, "v1", "csistoragecapacities"), json!({"storageClassName": "fast", "capacity": "1024Mi"})),
        ((admission, "v1", "validatingwebhookconfigurations"), json!({"webhooks": hooks()})),
        ((admission, "v1", "mutatingwebhookconfigurations"), json!({"webhooks": hooks()})),
        ((admission, "v1", "validatingadmissionpolicies"), json!({"spec": policy})),
        ((admission, "v1", "mutatingadmissionpolicies"), json!({"spec": mutating})),
        (
            (admission, "v1", "validatingadmissionpolicybindings"),
            json!({"spec": {"policyName": "p", "validationActions": ["Deny"]}}),
        ),
        ((admission, "v1", "mutatingadmissionpolicybindings"), json!({"spec": {"policyName": "p"}})),
    ]
}

/// Those that v1.36 does not have.
fn since_v1_37() -> Vec<(Kind, Value)> {
    vec![
        (("certificates.k8s.io", "v1", "clustertrustbundles"), json!({"spec": {"trustBundle": BUNDLE}})),
        (
            ("certificates.k8s.io", "v1", "podcertificaterequests"),
            json!({"spec": {
                "signerName": "example.com/signer",
                "podName": "p",
                "podUID": "1",
                "serviceAccountName": "s",
                "serviceAccountUID": "2",
                "nodeName": "n",
                "nodeUID": "3",
                "maxExpirationSeconds": 86400,
                "stubPKCS10Request": request_in_der()
            }}),
        ),
        (
            ("storagemigration.k8s.io", "v1", "storageversionmigrations"),
            json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}}}),
        ),
    ]
}

/// [`REQUEST`] without its frame of PEM.
fn request_in_der() -> String {
    let text = String::from_utf8(STANDARD.decode(REQUEST).expect("base64")).expect("text");
    text.lines().filter(|line| !line.starts_with("-----")).collect()
}

/// The sample of a kind.
pub(super) fn of(kind: Kind) -> Value {
    all().into_iter().find(|(other, _)| *other == kind).map_or(Value::Null, |(_, sample)| sample)
}
