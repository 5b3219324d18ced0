//! The rows of the write-up.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use kubewright::testing::Cluster;
use kubewright_security_group::{FINALIZER, SECRET, SecurityGroup, manifests};
use serde_json::{Value, json};

use crate::lab::{GROUP, Lab, MASTER, SAMPLE, sample, sample_with};

/// Where the operator is installed.
const HOME: &str = "openstack-sg-controller-system";
const RULE: &str = "ingress IPv4 tcp 8888 8888 127.0.0.1/32";

/// SG-01, SG-03: the manifest of the write-up, three masters whose systemUUIDs are in upper case.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_01_the_sample_makes_the_group_its_rule_and_puts_three_servers_into_it(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let mut masters = lab.masters().await;
    lab.node("worker", &[("node-role.kubernetes.io/worker", "")]).await;
    lab.create(SAMPLE, sample()).await;
    let status = lab.until_ready(SAMPLE).await;
    masters.sort();
    assert_eq!(status.nodes, masters, "their IDs, in lower case");
    assert_eq!(status.id, Some(lab.group(GROUP)));
    assert_eq!(status.attached.as_deref(), Some("3/3"));
    lab.expect(GROUP, masters);
    let group = lab.group(GROUP);
    let rules = lab.cloud.with(|cloud| cloud.rules(&group));
    assert_eq!(rules, [RULE], "the two rules of a new group are gone");
    let object = lab.cluster.get::<SecurityGroup>(SAMPLE).await;
    assert_eq!(object.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
}

/// SG-04.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_04_a_tighter_selector_takes_the_others_out(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let one = lab.node("master-001", &[MASTER, ("foo", "bar")]).await;
    let selector = json!({"spec": {"nodeSelector": {"role": "master", "foo": "bar"}}});
    lab.cluster.patch::<SecurityGroup>(SAMPLE, selector).await;
    lab.cluster.settle().await;
    lab.expect(GROUP, vec![one.clone()]);
    let status = lab.status(SAMPLE).await;
    assert_eq!((status.nodes, status.attached.as_deref()), (vec![one], Some("1/1")));
}

/// SG-05. What is missing is made before what is too much goes, so that an open port stays open.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_05_rules_follow_the_spec_and_are_added_before_others_are_deleted(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    lab.cloud.forget_calls();
    let rules = json!([
        {"portRangeMin": 8888, "portRangeMax": 8888, "remoteIpPrefix": "127.0.0.1", "protocol": "udp"},
        {"remoteIpPrefix": "2001:db8::1/64", "direction": "egress", "protocol": "ipv6-icmp", "icmpType": 128},
    ]);
    lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"rules": rules}})).await;
    lab.cluster.settle().await;
    let group = lab.group(GROUP);
    assert_eq!(
        lab.cloud.with(|cloud| cloud.rules(&group)),
        ["egress IPv6 ipv6-icmp 128 null 2001:db8::/64", "ingress IPv4 udp 8888 8888 127.0.0.1/32"]
    );
    let writes: Vec<Method> = lab
        .cloud
        .calls()
        .into_iter()
        .map(|call| call.method)
        .filter(|method| method != Method::GET)
        .collect();
    assert_eq!(writes, [Method::POST, Method::POST, Method::DELETE], "and nothing else");
}

/// SG-06.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_06_a_server_that_somebody_took_out_is_back_within_a_minute(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    for _ in 0..5 {
        let before = lab.members(GROUP);
        let port = lab.cloud.with(|cloud| cloud.ports.keys().next().cloned()).expect("a port");
        lab.cloud
            .with(|cloud| cloud.ports.get_mut(&port).expect("it is there")["security_groups"] = json!([]));
        assert_eq!(lab.members(GROUP).len(), 2);
        lab.cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(lab.members(GROUP), before);
    }
}

/// SG-07.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_07_servers_leave_before_the_group_is_deleted_and_the_object_goes_last(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let group = lab.group(GROUP);
    // Somebody else's server is in the group: it cannot go.
    let stranger = lab.cloud.with(|cloud| {
        let port = cloud.boot("stranger");
        cloud.ports.get_mut(&port).expect("it is there")["security_groups"] = json!([group]);
        port
    });
    lab.cloud.forget_calls();
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.advance(Duration::from_secs(20)).await;
    let object = lab.cluster.get::<SecurityGroup>(SAMPLE).await;
    assert!(object.metadata.deletion_timestamp.is_some(), "it is there until its group is gone");
    let (_, _, message) = lab.condition(SAMPLE, "CleanupFailed").await;
    assert!(message.contains(&stranger), "{message}");
    assert_eq!(lab.members(GROUP), ["stranger"]);
    let writes: Vec<_> = lab
        .cloud
        .calls()
        .into_iter()
        .map(|call| call.method)
        .filter(|method| method != Method::GET)
        .collect();
    assert_eq!(writes[..4], [Method::PUT, Method::PUT, Method::PUT, Method::DELETE]);

    lab.cloud.with(|cloud| cloud.delete_server("stranger"));
    lab.cluster.advance(Duration::from_secs(180)).await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    assert_eq!(lab.cloud.with(|cloud| cloud.named(GROUP)), [] as [&str; 0]);
}

/// SG-08, with the flag that says so: names are no identity.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_08_a_group_of_that_name_is_taken_over_when_it_is_asked_for(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let masters = lab.masters().await;
    let theirs = lab.cloud.with(|cloud| {
        let group = cloud.group_of("demo", GROUP, "made by hand");
        let id = group["id"].as_str().expect("an ID").to_owned();
        cloud.groups.insert(id.clone(), group);
        id
    });
    lab.create(SAMPLE, sample_with(json!({"adoptExisting": true}))).await;
    let status = lab.until_ready(SAMPLE).await;
    assert_eq!((status.id.as_ref(), status.adopted), (Some(&theirs), true));
    lab.expect(GROUP, masters);
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.settle().await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    assert_eq!(lab.members(GROUP), [] as [&str; 0], "it is kept, without our servers");
}

/// SG-10: who left the selection, by a new label or with its node, is taken out, as it is in the status.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_10_the_status_knows_whom_to_take_out_when_the_nodes_do_not(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    lab.operator.stop().await;
    lab.relabel("master-1", json!({"node-role.kubernetes.io/master": null})).await;
    lab.cluster.delete::<k8s_openapi::api::core::v1::Node>("master-2").await;
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.operator.restart().await;
    lab.cluster.settle().await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    assert_eq!(lab.cloud.with(|cloud| cloud.named(GROUP)), [] as [&str; 0]);
}

/// SG-11: the API server takes the manifests of both generations, strictly.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_11_the_manifests_of_both_generations_are_taken_by_a_strict_server(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let first: Value = serde_saphyr::from_str(manifests::SAMPLE).expect("YAML");
    strictly(&lab, first).await.expect("the first generation's");
    let second = json!({
        "apiVersion": "openstack.repl.info/v1beta1", "kind": "SecurityGroup", "metadata": {"name": "second"},
        "spec": {
            "name": "second", "tenant": "demo", "id": "11111111-2222-4333-8444-555555555555",
            "nodeSelector": {"role": "master"},
            "rules": [
                {"direction": "ingress", "etherType": "IPv4", "protocol": "tcp", "portRangeMin": 8888, "portRangeMax": 9000,
                 "remoteIpPrefix": "127.0.0.1"},
                {"direction": "egress", "etherType": "IPv6", "protocol": "ipv6-icmp", "portRangeMin": 0, "portRangeMax": 0,
                 "remoteIpPrefix": "::/0"},
            ],
        },
    });
    strictly(&lab, second).await.expect("the second generation's");
}

/// SG-12, and what else a schema can see.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_12_what_makes_no_sense_is_refused_with_what_to_do_about_it(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let rule = |change: Value| {
        let mut rule = json!({"portRangeMin": 80, "portRangeMax": 80, "remoteIpPrefix": "10.0.0.0/8"});
        for (name, value) in change.as_object().expect("fields") {
            rule[name] = value.clone();
        }
        json!({"rules": [rule]})
    };
    for (change, told) in [
        (
            rule(json!({"direction": "in"})),
            r#"spec.rules[0].direction: Unsupported value: "in": supported values: "ingress", "egress""#,
        ),
        (
            rule(json!({"portRangeMax": 70000})),
            "spec.rules[0].portRangeMax: Invalid value: 70000: spec.rules[0].portRangeMax in body should be less than or equal to 65535",
        ),
        (
            rule(json!({"portRangeMax": "70000"})),
            "spec.rules[0].portRangeMax: Invalid value: \"70000\": spec.rules[0].portRangeMax in body should match",
        ),
        (rule(json!({"portRangeMax": 79})), "portRangeMin is more than portRangeMax"),
        (rule(json!({"portRangeMax": null})), "give both portRangeMin and portRangeMax"),
        (rule(json!({"protocol": "quic"})), "spec.rules[0].protocol: Unsupported value: \"quic\""),
        (rule(json!({"protocol": "gre"})), "this protocol has no ports"),
        (rule(json!({"icmpType": 8})), "icmpType and icmpCode are for the protocols icmp and ipv6-icmp"),
        (
            rule(json!({"remoteIpPrefix": "10.0.0.0/33"})),
            "must be a network or an address, such as 10.0.0.0/8",
        ),
        (rule(json!({"etherType": "IPv6"})), "etherType and remoteIpPrefix are of different families"),
        (rule(json!({"remoteIpPrefix": null})), "give either remoteIpPrefix or remoteGroupRef"),
        (json!({"nodeSelector": {}}), "an empty selector would put every node into the group"),
        (
            json!({"nodeSelector": null, "nodeLabelSelector": {}}),
            "an empty selector would put every node into the group",
        ),
        (json!({"name": "Default"}), "OpenStack keeps the name default for itself"),
        (json!({"name": ""}), "spec.name in body should be at least 1 chars long"),
        (json!({"id": "../ports"}), "spec.id in body should match"),
        (json!({"syncPeriodSeconds": 1}), "should be greater than or equal to 10"),
    ] {
        let spec = sample_with(change.clone());
        let body = json!({"apiVersion": "openstack.repl.info/v1beta1", "kind": "SecurityGroup", "metadata": {"name": "x"}, "spec": spec});
        let refusal = strictly(&lab, body).await.err().unwrap_or_else(|| panic!("{change} was taken"));
        assert!(refusal.contains(told), "{change}: {refusal}");
    }
}

/// What the API server says to a request with `fieldValidation=Strict`.
async fn strictly(lab: &Lab, mut body: Value) -> Result<(), String> {
    // As kubectl sends it: without what is null.
    body["spec"].as_object_mut().expect("a spec").retain(|_, value| !value.is_null());
    for rule in body["spec"]["rules"].as_array_mut().expect("rules") {
        rule.as_object_mut().expect("a rule").retain(|_, value| !value.is_null());
    }
    let path = "/apis/openstack.repl.info/v1beta1/namespaces/default/securitygroups";
    let body = serde_json::to_vec(&body).expect("JSON");
    let mut request = kube::core::Request::new(path).create(&PostParams::default(), body).expect("a request");
    *request.uri_mut() = format!("{path}?fieldValidation=Strict").parse().expect("a path");
    match lab.cluster.client().request::<DynamicObject>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => panic!("{other}"),
    }
}

/// SG-13.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_13_events_tell_what_was_done(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let server = lab.node("master", &[MASTER]).await;
    lab.create(SAMPLE, sample()).await;
    lab.until_ready(SAMPLE).await;
    assert_eq!(lab.notes("SuccessfulEnsure").await, ["Created SecurityGroup sg-test"]);
    assert_eq!(
        lab.notes("SuccessfulAddRule").await,
        ["Created SecurityGroupRule cidr=127.0.0.1/32, port=8888-8888"]
    );
    assert_eq!(lab.notes("SuccessfulDeleteRule").await, ["Deleted SecurityGroupRule cidr=, port=0-0"]);
    assert_eq!(
        lab.notes("AttachSecurityGroup").await,
        [format!("Attached SecurityGroup sg-test to {server}")]
    );
    let id = lab.group(GROUP);
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.settle().await;
    assert_eq!(
        lab.notes("SuccessDetachSecurityGroup").await,
        [format!("Detached SecurityGroup sg-test from {server}")]
    );
    assert_eq!(
        lab.notes("SuccessfulDeleteExternalDependency").await,
        [format!("Deleted SecurityGroup {id}")]
    );
}

/// SG-14.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_14_a_group_that_was_deleted_behind_its_back_is_made_anew(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let (old, servers) = (lab.group(GROUP), lab.members(GROUP));
    let delete = |id: String| {
        lab.cloud.with(|cloud| {
            cloud.groups.remove(&id);
            for port in cloud.ports.values_mut() {
                port["security_groups"].as_array_mut().expect("a list").retain(|group| *group != id.as_str());
            }
        });
    };
    delete(old.clone());
    lab.cluster.advance(Duration::from_secs(61)).await;
    lab.expect(GROUP, servers);
    let new = lab.group(GROUP);
    assert_ne!(new, old);
    assert_eq!(lab.status(SAMPLE).await.id, Some(new.clone()));

    delete(new.clone());
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.settle().await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    let told = lab.notes("SecurityGroupAlreadyDeleted").await;
    assert_eq!(told, [format!("SecurityGroup {new} is already deleted")]);
}

/// SG-15.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_15_nothing_is_made_while_the_cloud_does_not_say_what_is_there(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    lab.cloud.set_faults(Some(crate::fake::Faults::always_broken()));
    lab.cloud.forget_calls();
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.1, "CloudRefuses");
    let status = lab.status(SAMPLE).await;
    assert_eq!((status.id, status.attached.as_deref()), (Some(lab.group(GROUP)), Some("3/3")));
    assert_eq!(lab.cloud.calls(), [], "not even asked for");
    assert_eq!(lab.notes("FailureEnsure").await.len(), 1, "it is told once");
    lab.cloud.set_faults(None);
    lab.until_ready(SAMPLE).await;
}

/// SG-16: the Secret of `make deploy`, in the operator's namespace; a change of it needs no restart.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_16_the_secret_of_the_write_up_configures_it_and_may_change(cluster: Cluster) {
    let lab = Lab::without_credentials(cluster).await;
    let masters = lab.masters().await;
    lab.create(SAMPLE, sample()).await;
    let status = lab.until_condition(SAMPLE, "Ready", "False").await;
    assert!(status.conditions[0].message.starts_with("no OpenStack cloud is configured"), "{status:?}");
    assert_eq!(lab.notes("FailureEnsure").await.len(), 1);
    assert_eq!(lab.cluster.get::<SecurityGroup>(SAMPLE).await.metadata.finalizers, None, "nothing holds it");

    let system = lab.cluster.in_namespace(HOME);
    assert!(lab.cluster.exists::<Namespace>(HOME).await);
    system.create(&secret(SECRET, "wrong")).await;
    lab.cluster.advance(Duration::from_secs(61)).await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.1, "CredentialsRefused");
    system.patch::<Secret>(SECRET, json!({"stringData": {"os_password": "secret"}})).await;
    lab.cluster.advance(Duration::from_secs(61)).await;
    lab.until_ready(SAMPLE).await;
    lab.expect(GROUP, masters);
}

fn secret(name: &str, password: &str) -> Secret {
    kubewright::object::from_value(json!({
        "metadata": {"name": name},
        "stringData": {
            "os_auth_url": format!("{}/v3", crate::fake::URL), "os_username": "demo", "os_password": password,
            "os_project_name": "demo", "os_tenant_name": "demo", "os_region_name": "RegionOne",
            "os_identity_api_version": "3", "os_domain_name": "Default", "os_project_domain_name": "Default",
            "os_user_domain_name": "Default",
        },
    }))
    .expect("a Secret")
}

/// A SecurityGroup may name its own cloud: a Secret beside it.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_16_an_object_may_name_a_secret_of_its_own(cluster: Cluster) {
    let lab = Lab::without_credentials(cluster).await;
    let masters = lab.masters().await;
    lab.create(SAMPLE, sample_with(json!({"cloudRef": {"name": "mine"}}))).await;
    let status = lab.until_condition(SAMPLE, "Ready", "False").await;
    assert_eq!(status.conditions[0].message, "there is no Secret default/mine");
    lab.cluster.create(&secret("mine", "secret")).await;
    lab.cluster.advance(Duration::from_secs(61)).await;
    lab.until_ready(SAMPLE).await;
    lab.expect(GROUP, masters);
}

/// SG-17, and before a token runs out it is renewed: a whole day without one 401.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_17_tokens_are_renewed_before_they_run_out_and_when_they_are_refused(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    lab.cloud.forget_calls();
    lab.cluster.advance(Duration::from_hours(24)).await;
    let calls = lab.cloud.calls();
    assert!(calls.iter().all(|call| call.status != 401), "{calls:?}");
    let logins = lab.cloud.with(|cloud| cloud.logins);
    assert!((24..40).contains(&logins), "tokens live for an hour: {logins}");

    lab.cloud.with(|cloud| cloud.tokens.clear());
    lab.cloud.forget_calls();
    let port = lab.cloud.with(|cloud| cloud.ports.keys().next().cloned()).expect("a port");
    lab.cloud.with(|cloud| cloud.ports.get_mut(&port).expect("it is there")["security_groups"] = json!([]));
    lab.cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(lab.cloud.calls()[0].status, 401);
    assert_eq!(lab.members(GROUP).len(), 3);
    assert_eq!(lab.condition(SAMPLE, "Ready").await.0, "True");
}

/// What `security-group manifests` prints, the Deployment too.
#[kubewright::test(nodes = 0, controllers = "")]
async fn everything_that_installs_it_is_taken_by_the_api_server(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let all = kubewright_security_group::operator().manifests(&kubewright::command::Installation::default());
    for object in all.expect("manifests") {
        let types = object.types.clone().expect("a kind");
        if types.kind != "Deployment" {
            continue; // the test's own installation has them already
        }
        let kind =
            kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::try_from(&types).expect("a kind"));
        let api: Api<DynamicObject> = Api::namespaced_with(lab.cluster.client(), HOME, &kind);
        api.create(&PostParams::default(), &object).await.expect("taken");
    }
}
