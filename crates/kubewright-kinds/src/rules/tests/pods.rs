use serde_json::{Value, json};

use super::samples::{POD, of, pod_spec};
use super::{change_refused, each_change_is_refused, each_is_refused, made, messages, refused, with};
use crate::rules::pods;

const C: &str = "spec.containers[0]";

#[test]
fn a_new_pod_gets_what_every_pod_has() {
    let pod = made(POD, &of(POD));
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "c", "image": "nginx:1.25", "resources": {}, "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
            }],
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "securityContext": {}, "enableServiceLinks": true,
            "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30
        })
    );
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

#[test]
fn images_without_a_tag_are_always_pulled() {
    let policy = |image: &str| {
        let pod = made(POD, &with(&of(POD), "/spec/containers/0/image", json!(image)));
        pod["spec"]["containers"][0]["imagePullPolicy"].as_str().unwrap_or_default().to_owned()
    };
    for image in ["busybox", "busybox:latest", "reg.example.com:5000/a/b"] {
        assert_eq!(policy(image), "Always", "{image}");
    }
    for image in ["busybox:1", "busybox@sha256:00", "reg.example.com:5000/a/b:v1", ""] {
        assert_eq!(policy(image), "IfNotPresent", "{image}");
    }
}

#[test]
fn the_class_of_a_pod_follows_from_its_resources() {
    let class = |resources: Value| {
        let pod = made(POD, &with(&of(POD), "/spec/containers/0/resources", resources));
        pod["status"]["qosClass"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(class(json!({})), "BestEffort");
    assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
    assert_eq!(class(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), "Guaranteed");
    assert_eq!(class(json!({"limits": {"cpu": "1"}})), "Burstable");
    assert_eq!(class(json!({"limits": {"example.com/gpu": "1"}})), "BestEffort");
    let mut sent = of(POD);
    sent["status"] = json!({"phase": "Running", "qosClass": "Guaranteed"});
    assert_eq!(
        made(POD, &sent)["status"],
        json!({"phase": "Pending", "qosClass": "Guaranteed"}),
        "unless sent"
    );
}

#[test]
fn quantities_are_written_in_their_canonical_form() {
    let resources = json!({"limits": {"cpu": "1000m", "memory": "0.5Gi"}, "requests": {"cpu": 0.5}});
    let pod = made(POD, &with(&of(POD), "/spec/containers/0/resources", resources));
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "500m", "memory": "512Mi"}})
    );
}

#[test]
fn a_negative_grace_period_becomes_one_second() {
    let pod = made(POD, &with(&of(POD), "/spec/terminationGracePeriodSeconds", json!(-1)));
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 1);
}

#[test]
fn containers_are_checked() {
    let name = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let at = "/spec/containers/0";
    each_is_refused(
        POD,
        &of(POD),
        &[
            ("/spec/containers", json!([]), &["spec.containers: Required value"]),
            (&format!("{at}/name"), json!("C_1"), &[&format!("{C}.name: Invalid value: \"C_1\": {name}")]),
            (&format!("{at}/name"), Value::Null, &[&format!("{C}.name: Required value")]),
            (&format!("{at}/image"), Value::Null, &[&format!("{C}.image: Required value")]),
            (
                &format!("{at}/image"),
                json!(" nginx"),
                &[&format!(
                    "{C}.image: Invalid value: \" nginx\": must not have leading or trailing whitespace"
                )],
            ),
            (
                "/spec/containers/1",
                json!({"name": "c", "image": "x"}),
                &["spec.containers[1].name: Duplicate value: \"c\""],
            ),
            (
                &format!("{at}/imagePullPolicy"),
                json!("Sometimes"),
                &[&format!(
                    "{C}.imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\""
                )],
            ),
            (
                &format!("{at}/ports"),
                json!([{"containerPort": 70000, "protocol": "HTTP"}]),
                &[
                    &format!(
                        "{C}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
                    ),
                    &format!(
                        "{C}.ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\""
                    ),
                ],
            ),
            (
                &format!("{at}/resources"),
                json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}}),
                &[&format!(
                    "{C}.resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi"
                )],
            ),
            (
                &format!("{at}/resources"),
                json!({"limits": {"example.com/gpu": "1500m"}}),
                &[
                    &format!(
                        "{C}.resources.limits[example.com/gpu]: Invalid value: \"1500m\": must be an integer"
                    ),
                    &format!(
                        "{C}.resources.requests[example.com/gpu]: Invalid value: \"1500m\": must be an integer"
                    ),
                ],
            ),
            (
                &format!("{at}/securityContext"),
                json!({"procMount": "Unmasked"}),
                &[&format!(
                    "{C}.securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"
                )],
            ),
        ],
    );
}

#[test]
fn variables_probes_and_hooks_are_checked() {
    let at = |field: &str| format!("/spec/containers/0/{field}");
    each_is_refused(
        POD,
        &of(POD),
        &[
            (
                &at("env"),
                json!([{"name": "A=B"}]),
                &[&format!(
                    "{C}.env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='"
                )],
            ),
            (
                &at("env"),
                json!([{"name": "A", "valueFrom": {}}]),
                &[&format!(
                    "{C}.env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
                )],
            ),
            (
                &at("env"),
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]),
                &[&format!(
                    "{C}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\""
                )],
            ),
            (
                &at("env"),
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}]),
                &[],
            ),
            (
                &at("env"),
                json!([{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]),
                &[&format!(
                    "{C}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"
                )],
            ),
            (
                &at("envFrom"),
                json!([{}]),
                &[&format!(
                    "{C}.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"
                )],
            ),
            (
                &at("readinessProbe"),
                json!({}),
                &[&format!("{C}.readinessProbe: Required value: must specify a handler type")],
            ),
            (
                &at("livenessProbe"),
                json!({"httpGet": {"port": 0}, "exec": {"command": ["x"]}, "successThreshold": 2}),
                &[
                    &format!(
                        "{C}.livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type"
                    ),
                    &format!("{C}.livenessProbe.successThreshold: Invalid value: 2: must be 1"),
                ],
            ),
            (
                &at("lifecycle"),
                json!({"preStop": {"sleep": {"seconds": 60}}}),
                &[&format!(
                    "{C}.lifecycle.preStop.sleep: Invalid value: 60: must be non-negative and less than terminationGracePeriodSeconds (30)"
                )],
            ),
        ],
    );
}

#[test]
fn a_volume_has_one_source_and_mounts_name_a_volume() {
    let pod = with(&of(POD), "/spec/volumes", json!([{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}]));
    let pod = with(&pod, "/spec/containers/0/volumeMounts", json!([{"name": "v", "mountPath": "/x"}]));
    assert_eq!(made(POD, &pod)["spec"]["volumes"][0]["emptyDir"]["sizeLimit"], "1Gi");
    each_is_refused(
        POD,
        &pod,
        &[
            (
                "/spec/volumes/0/hostPath",
                json!({"path": "/x"}),
                &[
                    "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
                    "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
                ],
            ),
            ("/spec/volumes/1", json!({"name": "v"}), &["spec.volumes[1].name: Duplicate value: \"v\""]),
            (
                "/spec/containers/0/volumeMounts/1",
                json!({"name": "v", "mountPath": "/x"}),
                &["spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique"],
            ),
            (
                "/spec/containers/0/volumeMounts/0/subPath",
                json!("../x"),
                &["spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'"],
            ),
            (
                "/spec/volumes/1",
                json!({"name": "w", "configMap": {"defaultMode": 512}}),
                &[
                    "spec.volumes[1].configMap.name: Required value",
                    "spec.volumes[1].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
                ],
            ),
            (
                "/spec/volumes/1",
                json!({"name": "w", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 60}}]}}),
                &[
                    "spec.volumes[1].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
                    "spec.volumes[1].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
                ],
            ),
        ],
    );
}

#[test]
fn the_pod_as_a_whole_is_checked() {
    each_is_refused(
        POD,
        &of(POD),
        &[
            (
                "/spec/restartPolicy",
                json!("Perhaps"),
                &[
                    "spec.restartPolicy: Unsupported value: \"Perhaps\": supported values: \"Always\", \"OnFailure\", \"Never\"",
                ],
            ),
            (
                "/spec/dnsPolicy",
                json!("None"),
                &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
            ),
            (
                "/spec/activeDeadlineSeconds",
                json!(0),
                &[
                    "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
                ],
            ),
            (
                "/spec/tolerations",
                json!([{"operator": "Exists", "value": "x"}]),
                &[
                    "spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
                ],
            ),
            (
                "/spec/topologySpreadConstraints",
                json!([{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "Cry"}]),
                &[
                    "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                    "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Cry\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
                ],
            ),
            (
                "/spec/affinity",
                json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
                &[
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
                ],
            ),
            (
                "/spec/ephemeralContainers",
                json!([{"name": "d", "image": "x"}]),
                &["spec.ephemeralContainers: Forbidden: cannot be set on create"],
            ),
            (
                "/spec/initContainers",
                json!([{"name": "c", "image": "x", "livenessProbe": {"exec": {"command": ["x"]}}}]),
                &[
                    "spec.initContainers[0].name: Duplicate value: \"c\"",
                    "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
                ],
            ),
        ],
    );
}

#[test]
fn only_images_deadlines_and_tolerations_of_a_pod_change() {
    let fixed = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";
    let pod = with(&of(POD), "/spec/tolerations", json!([{"key": "a", "operator": "Exists"}]));
    each_change_is_refused(
        POD,
        &pod,
        &[
            ("/spec/containers/0/image", json!("nginx:2"), &[]),
            ("/spec/activeDeadlineSeconds", json!(60), &[]),
            ("/spec/tolerations/1", json!({"key": "b", "operator": "Exists"}), &[]),
            ("/spec/containers/0/command", json!(["x"]), &[fixed]),
            ("/spec/nodeName", json!("n"), &[fixed]),
            (
                "/spec/tolerations",
                json!([]),
                &[
                    "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
                ],
            ),
            (
                "/spec/containers/1",
                json!({"name": "d", "image": "x"}),
                &["spec.containers: Forbidden: pod updates may not add or remove containers"],
            ),
            (
                "/spec/schedulingGates",
                json!([{"name": "a"}]),
                &[
                    "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'",
                ],
            ),
        ],
    );
}

#[test]
fn a_gated_pod_says_so_and_may_be_sent_elsewhere() {
    let gated = with(&of(POD), "/spec/schedulingGates", json!([{"name": "e.com/a"}]));
    assert_eq!(made(POD, &gated)["status"]["conditions"][0]["reason"], "SchedulingGated");
    assert!(change_refused(POD, &gated, |pod| pod["spec"]["nodeSelector"] = json!({"a": "b"})).is_empty());
}

#[test]
fn ephemeral_containers_are_added_and_stay() {
    let mut old = made(POD, &of(POD));
    old["spec"]["ephemeralContainers"] = json!([{
        "name": "dbg", "image": "busybox", "imagePullPolicy": "Always", "terminationMessagePolicy": "File", "resources": {}
    }]);
    assert_eq!(messages(&pods::validate_ephemeral_containers(&old, &old)), Vec::<String>::new());
    let without = with(&old, "/spec/ephemeralContainers", json!([]));
    assert_eq!(
        messages(&pods::validate_ephemeral_containers(&without, &old)),
        ["spec.ephemeralContainers: Forbidden: existing ephemeral containers \"dbg\" may not be removed\n"]
    );
    let bad =
        with(&old, "/spec/ephemeralContainers/0/ports", json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert!(messages(&pods::validate_ephemeral_containers(&bad, &old)).contains(
        &"spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container".to_owned()
    ));
}

#[test]
fn containers_without_a_name_are_alike_and_init_containers_are_like_containers() {
    let of = |spec: Value| refused(POD, &json!({"spec": spec}));
    let nameless = json!({"image": "a"});
    let twice = of(json!({"containers": [nameless, nameless]}));
    assert!(twice.contains(&"spec.containers[1].name: Duplicate value: \"\"".to_owned()), "{twice:?}");
    let init =
        of(json!({"containers": [{"name": "a", "image": "a"}], "initContainers": [nameless, nameless]}));
    assert!(!init.iter().any(|message| message.contains("Duplicate")), "{init:?}");
    let both = of(json!({"containers": [nameless], "initContainers": [nameless]}));
    assert!(both.contains(&"spec.initContainers[0].name: Duplicate value: \"\"".to_owned()), "{both:?}");
}

#[test]
fn an_ephemeral_container_has_nothing_that_restarts_or_probes() {
    let mut old = made(POD, &of(POD));
    old["spec"]["ephemeralContainers"] = json!([]);
    let added = json!([{"name": "dbg", "image": "busybox", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
        "resources": {}, "resizePolicy": [], "restartPolicy": "Never", "livenessProbe": {"tcpSocket": {"port": 80}}}]);
    let told =
        messages(&pods::validate_ephemeral_containers(&with(&old, "/spec/ephemeralContainers", added), &old));
    let forbidden: Vec<_> = told
        .iter()
        .filter_map(|message| {
            message.strip_suffix(": Forbidden: cannot be set for an Ephemeral Container")?.rsplit('.').next()
        })
        .collect();
    assert_eq!(forbidden, ["resizePolicy", "restartPolicy", "livenessProbe"], "{told:?}");
}

#[test]
fn a_binding_names_a_node() {
    assert!(pods::validate_binding(&json!({"target": {"kind": "Node", "name": "n"}})).is_empty());
    assert_eq!(
        messages(&pods::validate_binding(&json!({"target": {"kind": "Pod"}}))),
        [
            "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"",
            "target.name: Required value"
        ]
    );
}

#[test]
fn the_addresses_of_a_pod_are_addresses() {
    let old = made(POD, &json!({"spec": pod_spec()}));
    let new = with(&old, "/status/podIPs", json!([{"ip": "banana"}]));
    let said = messages(&super::rules(POD).errors_on_status(&new, &old, true));
    assert_eq!(
        said,
        [
            "status.podIPs[0]: Invalid value: \"banana\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        ]
    );
}

#[test]
fn what_a_status_says_of_users_and_of_what_is_allocated_is_checked() {
    let old = made(POD, &json!({"spec": pod_spec()}));
    let said = |object: &Value, list: &str, status: Value| {
        let new = with(object, &format!("/status/{list}"), json!([status]));
        messages(&super::rules(POD).errors_on_status(&new, &old, true))
    };
    let user = json!({"name": "c", "user": {"linux": {"uid": -1, "gid": 7, "supplementalGroups": [1, -2]}}});
    let number = "must be between 0 and 2147483647, inclusive";
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        assert_eq!(
            said(&old, list, user.clone()),
            [
                format!("status.{list}[0].user.linux.uid: Invalid value: -1: {number}"),
                format!("status.{list}[0].user.linux.supplementalGroups[1]: Invalid value: -2: {number}"),
            ]
        );
    }
    let windows = with(&old, "/spec/os", json!({"name": "windows"}));
    assert_eq!(
        said(&windows, "containerStatuses", user),
        ["status.containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod"]
    );
    let health = |name: &str, resources: Value| json!({"name": "c", "allocatedResourcesStatus": [{"name": name, "resources": resources}]});
    let asking = with(&old, "/spec/containers/0/resources", json!({"requests": {"cpu": "1"}}));
    let good = health("cpu", json!([{"resourceID": "a", "health": "Healthy", "message": "m"}]));
    assert_eq!(said(&asking, "containerStatuses", good), Vec::<String>::new());
    let bad = [
        json!({"resourceID": "a", "health": ""}),
        json!({"resourceID": "a", "health": "Unknown", "message": ""}),
    ];
    let at = "status.containerStatuses[0].allocatedResourcesStatus[0]";
    assert_eq!(
        said(&asking, "containerStatuses", health("memory", json!(bad))),
        [
            format!(
                "{at}.name: Invalid value: \"memory\": must match one of the container's resource requests"
            ),
            format!(
                "{at}.resources[0].health: Unsupported value: \"\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\""
            ),
            format!("{at}.resources[1].message: Required value: must be non-empty if specified"),
            format!("{at}.resources[1].resourceID: Duplicate value: \"a\""),
        ]
    );
    assert_eq!(
        said(&old, "ephemeralContainerStatuses", health("cpu", json!([]))),
        [
            "status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status"
        ]
    );
}

#[test]
fn both_names_of_the_service_account_are_told() {
    for field in ["serviceAccount", "serviceAccountName"] {
        let pod = made(POD, &with(&of(POD), &format!("/spec/{field}"), json!("bot")));
        assert_eq!(
            (&pod["spec"]["serviceAccount"], &pod["spec"]["serviceAccountName"]),
            (&json!("bot"), &json!("bot"))
        );
    }
    assert_eq!(refused(POD, &with(&of(POD), "/spec/serviceAccountName", json!("A"))).len(), 1);
}

#[test]
fn a_claim_of_a_pod_names_one_source() {
    let claims = |claims: Value| with(&of(POD), "/spec/resourceClaims", claims);
    assert_eq!(
        refused(POD, &claims(json!([{"name": "x"}, {"name": "x", "resourceClaimName": "a"}]))),
        [
            "spec.resourceClaims[0]: Invalid value: {\"Name\":\"x\",\"ResourceClaimName\":null,\"ResourceClaimTemplateName\":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            "spec.resourceClaims[1].name: Duplicate value: \"x\"",
        ]
    );
}

#[test]
fn a_pod_for_linux_has_no_options_of_windows_and_the_other_way_round() {
    let linux = with(&of(POD), "/spec/os", json!({"name": "linux"}));
    assert_eq!(
        refused(POD, &with(&linux, "/spec/securityContext", json!({"windowsOptions": {}}))),
        ["spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"]
    );
    let windows = with(&of(POD), "/spec/os", json!({"name": "windows"}));
    let context = json!({"runAsUser": 1, "windowsOptions": {"runAsUserName": ""}});
    assert_eq!(
        refused(POD, &with(&windows, "/spec/securityContext", context)),
        [
            "spec.securityContext.windowsOptions.runAsUserName: Invalid value: \"\": runAsUserName cannot be an empty string",
            "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        ]
    );
}

#[test]
fn the_address_of_a_pod_and_the_first_of_its_addresses_are_one() {
    for (written, kept) in [
        (json!({"podIP": "192.0.2.1"}), json!({"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]})),
        (
            json!({"podIPs": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}]}),
            json!({"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}]}),
        ),
        (
            json!({"podIP": "192.0.2.2", "podIPs": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}]}),
            json!({"podIP": "192.0.2.2", "podIPs": [{"ip": "192.0.2.2"}]}),
        ),
        (json!({"podIPs": [{"ip": ""}]}), json!({"podIPs": [{"ip": ""}]})),
        (json!({}), json!({})),
    ] {
        let mut pod = json!({"status": written});
        crate::rules::pods::default_pod(&mut pod);
        assert_eq!(pod["status"], kept);
    }
}

#[test]
fn annotations_of_a_changed_pod_are_looked_at_twice() {
    const PROFILE: &str = "container.seccomp.security.alpha.kubernetes.io/c";
    let kind = ("", "v1", "pods");
    let old = made(kind, &of(kind));
    let new = with(&old, "/metadata/annotations", json!({PROFILE: "a"}));
    let said = super::rules(kind).errors_on_update(&new, &old, true);
    assert_eq!(
        said.iter().filter(|error| error.to_string().contains("seccomp profile")).count(),
        2,
        "{said:?}"
    );
}
