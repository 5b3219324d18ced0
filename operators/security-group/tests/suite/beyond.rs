//! What goes beyond the write-up ("Beyond", by its numbers), and the accidents of the original that must not happen here.

use std::{collections::BTreeSet, time::Duration};

use http::Method;
use kubewright::{SKIP_CLEANUP, testing::Cluster};
use kubewright_security_group::{FINALIZER, SecurityGroup};
use serde_json::json;

use crate::{
    fake::Faults,
    lab::{GROUP, Lab, MASTER, SAMPLE, sample_with},
};

/// Beyond 1, and the accident that the author of the write-up feared.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_08_groups_of_one_name_live_side_by_side(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let masters = lab.masters().await;
    lab.cloud.with(|cloud| {
        for _ in 0..2 {
            let group = cloud.group_of("demo", GROUP, "somebody else's");
            cloud.groups.insert(group["id"].as_str().expect("an ID").to_owned(), group);
        }
    });
    for name in ["a", "b"] {
        lab.create(name, sample_with(json!({}))).await;
        lab.until_ready(name).await;
    }
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(lab.cloud.with(|cloud| cloud.named(GROUP)).len(), 4);
    let (a, b) = (lab.status("a").await.id.expect("an ID"), lab.status("b").await.id.expect("an ID"));
    assert_ne!(a, b);
    lab.cluster.delete::<SecurityGroup>("a").await;
    lab.cluster.settle().await;
    let left = lab.cloud.with(|cloud| cloud.named(GROUP));
    assert!(left.contains(&b) && !left.contains(&a) && left.len() == 3);
    assert_eq!(lab.cloud.with(|cloud| cloud.members(&b)), masters.into_iter().collect());

    lab.create("c", sample_with(json!({"adoptExisting": true}))).await;
    let status = lab.until_condition("c", "Ready", "False").await;
    assert!(status.conditions.iter().any(|condition| condition.reason == "AmbiguousName"), "{status:?}");
    assert_eq!(lab.cloud.with(|cloud| cloud.named(GROUP)).len(), 3, "nothing is made when it is not clear");
}

/// Beyond 1.
#[kubewright::test(nodes = 0, controllers = "")]
async fn another_name_renames_the_group(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let id = lab.group(GROUP);
    lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"name": "new"}})).await;
    lab.cluster.settle().await;
    assert_eq!(lab.group("new"), id);
    assert_eq!(lab.status(SAMPLE).await.name.as_deref(), Some("new"));
    assert_eq!(lab.members("new").len(), 3);
}

/// Beyond 1: an ID that is not there makes no group, however often it is looked for.
#[kubewright::test(nodes = 0, controllers = "")]
async fn an_id_that_does_not_exist_makes_no_group(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.create(SAMPLE, sample_with(json!({"id": "11111111-2222-4333-8444-555555555555"}))).await;
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.1, "GroupNotFound");
    assert_eq!(lab.cloud.with(|cloud| cloud.named(GROUP)), [] as [&str; 0]);
    assert_eq!(lab.notes("FailureEnsure").await.len(), 1);
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.settle().await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
}

/// Beyond 1: an adopted group is kept, unless the object says otherwise; one that was made is deleted, unless it says so.
#[kubewright::test(nodes = 0, controllers = "")]
async fn the_deletion_policy_decides_and_adopted_groups_are_kept_by_default(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.masters().await;
    for (policy, adopt, kept) in [
        (None, true, true),
        (Some("Delete"), true, false),
        (Some("Retain"), true, true),
        (None, false, false),
        (Some("Retain"), false, true),
    ] {
        let name = format!("sg-{adopt}-{}", policy.unwrap_or("none"));
        let mut spec = sample_with(json!({"name": name, "rules": []}));
        if let Some(policy) = policy {
            spec["deletionPolicy"] = policy.into();
        }
        if adopt {
            let id = lab.cloud.with(|cloud| {
                let group = cloud.group_of("demo", &name, "made by hand");
                let id = group["id"].as_str().expect("an ID").to_owned();
                cloud.groups.insert(id.clone(), group);
                id
            });
            spec["id"] = id.into();
        }
        lab.create(SAMPLE, spec).await;
        lab.until_ready(SAMPLE).await;
        assert_eq!(lab.members(&name).len(), 3);
        lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
        lab.cluster.settle().await;
        let left = lab.cloud.with(|cloud| cloud.named(&name));
        assert_eq!(left.len(), usize::from(kept), "{name}");
        for id in left {
            assert_eq!(lab.cloud.with(|cloud| cloud.members(&id)), BTreeSet::new(), "{name}");
            assert_eq!(lab.cloud.with(|cloud| cloud.groups[&id]["tags"].clone()), json!([]), "{name}");
        }
    }
}

/// Beyond 1.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_lost_status_is_rebuilt_without_a_second_group(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let (id, servers) = (lab.group(GROUP), lab.members(GROUP));
    for described in [true, false] {
        lab.operator.stop().await;
        let client = lab.cluster.client();
        let api: kube::Api<SecurityGroup> = kube::Api::default_namespaced(client);
        let lost = kube::api::Patch::Merge(json!({"status": null}));
        api.patch_status(SAMPLE, &kube::api::PatchParams::default(), &lost).await.expect("lost");
        // One that the selection has lost too: it is still in the group.
        lab.relabel(
            "master-1",
            json!({"node-role.kubernetes.io/master": if described { None } else { Some("") }}),
        )
        .await;
        if !described {
            lab.cloud.with(|cloud| {
                cloud.groups.get_mut(&id).expect("it is there")["description"] = "edited".into();
            });
        }
        lab.operator.restart().await;
        lab.until_ready(SAMPLE).await;
        assert_eq!(lab.group(GROUP), id);
        assert_eq!(lab.members(GROUP).len(), if described { 2 } else { 3 });
    }
    assert_eq!(lab.members(GROUP), servers);
}

/// Beyond 1: an answer that never came leaves no group behind, also when the object goes at once.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_group_whose_answer_was_lost_is_found_again(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.masters().await;
    lab.cloud.set_faults(Some(Faults::lost_creations()));
    lab.create(SAMPLE, sample_with(json!({}))).await;
    lab.cluster.advance(Duration::from_secs(2)).await;
    assert!(lab.status(SAMPLE).await.creating_since.is_some());
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.advance(Duration::from_secs(120)).await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    assert_eq!(lab.cloud.with(|cloud| cloud.named(GROUP)), [] as [&str; 0]);
    lab.create(SAMPLE, sample_with(json!({}))).await;
    lab.until_ready(SAMPLE).await;
    lab.expect(GROUP, lab.members(GROUP));
}

/// Beyond 1: a group that was made twice, because a killed operator's request came late, goes again.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_second_group_of_the_same_object_is_removed(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let (id, servers) = (lab.group(GROUP), lab.members(GROUP));
    lab.cloud.with(|cloud| {
        let mut late = cloud.groups[&id].clone();
        late["id"] = "0late".into();
        late["tags"] = json!([]);
        cloud.groups.insert("0late".to_owned(), late);
    });
    lab.cluster.advance(Duration::from_secs(61)).await;
    assert_eq!(lab.group(GROUP), id);
    lab.expect(GROUP, servers);
}

/// Beyond 2.
#[kubewright::test(nodes = 0, controllers = "")]
async fn rules_may_name_the_group_of_another_object_or_their_own(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.node("master", &[MASTER]).await;
    let rules =
        json!([{"remoteGroupRef": {"name": "web"}}, {"remoteGroupRef": {"name": "db"}, "protocol": "any"}]);
    lab.create("db", sample_with(json!({"name": "db", "rules": rules, "keepDefaultEgress": true}))).await;
    let status = lab.until_condition("db", "RulesSynced", "False").await;
    let synced = status.conditions.iter().find(|one| one.type_ == "RulesSynced").expect("it is there");
    assert_eq!(synced.reason, "RemoteGroupNotReady");
    assert_eq!(status.attached.as_deref(), Some("1/1"), "the rest goes on");
    lab.create("web", sample_with(json!({"name": "web"}))).await;
    lab.cluster.settle().await;
    let (db, web) = (lab.group("db"), lab.group("web"));
    assert_eq!(
        lab.cloud.with(|cloud| cloud.rules(&db)),
        [
            "egress IPv4 null null null null".to_owned(),
            "egress IPv6 null null null null".to_owned(),
            format!("ingress IPv4 null null null {db}"),
            format!("ingress IPv4 tcp null null {web}"),
        ]
    );
    assert_eq!(lab.condition("db", "Ready").await.0, "True");
}

/// Beyond 2: what is there already, in whatever spelling, is not sent.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_rule_without_mask_is_not_added_for_ever(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let rules = json!([{"remoteIpPrefix": "127.0.0.1", "portRangeMin": 1, "portRangeMax": "65535", "protocol": "TCP"}]);
    lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"rules": rules}})).await;
    lab.cluster.settle().await;
    lab.cloud.forget_calls();
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert!(lab.cloud.calls().iter().all(|call| call.method == Method::GET), "{:?}", lab.cloud.calls());
}

/// Beyond 3: other groups of a port stay, also when somebody else writes it at the same time.
#[kubewright::test(nodes = 0, controllers = "")]
async fn other_groups_of_a_port_are_never_touched(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.masters().await;
    let before = lab.cloud.with(|cloud| cloud.ports.clone());
    lab.cloud.set_faults(Some(Faults::overtaken(7, 60)));
    lab.create(SAMPLE, sample_with(json!({}))).await;
    lab.until_ready(SAMPLE).await;
    let id = lab.group(GROUP);
    for (port, old) in &before {
        let mut wanted: BTreeSet<String> =
            kubewright::object::from_value(&old["security_groups"]).expect("IDs");
        wanted.insert(id.clone());
        assert_eq!(lab.cloud.with(|cloud| cloud.groups_of(port)), wanted);
    }
    assert!(lab.cloud.calls().iter().any(|call| call.status == 412), "somebody was faster at least once");
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.advance(Duration::from_secs(60)).await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    for (port, old) in &before {
        assert_eq!(
            lab.cloud.with(|cloud| cloud.ports[port]["security_groups"].clone()),
            old["security_groups"]
        );
    }
}

/// Beyond 3.
#[kubewright::test(nodes = 0, controllers = "")]
async fn ports_without_port_security_are_skipped_and_told(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let masters = lab.masters().await;
    lab.cloud.with(|cloud| {
        let port = cloud
            .ports
            .values_mut()
            .find(|port| port["device_id"] == masters[0].as_str())
            .expect("it is there");
        port["port_security_enabled"] = false.into();
        port["security_groups"] = json!([]);
    });
    lab.create(SAMPLE, sample_with(json!({}))).await;
    let status = lab.until_condition(SAMPLE, "Attached", "False").await;
    assert_eq!(status.attached.as_deref(), Some("2/3"));
    assert_eq!(
        (status.problems[0].node.as_str(), status.problems[0].reason.as_str()),
        ("master-1", "PortSecurityDisabled")
    );
    lab.expect(GROUP, masters[1..].to_vec());
}

/// Beyond 4: without waiting for the next look at the cloud.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_new_node_and_a_new_label_count_at_once(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let mut servers = lab.members(GROUP);
    let began = tokio::time::Instant::now();
    servers.push(lab.node("master-4", &[MASTER]).await);
    servers.push(lab.node("later", &[]).await);
    lab.relabel("later", json!({MASTER.0: ""})).await;
    lab.cluster.settle().await;
    assert!(began.elapsed() < Duration::from_secs(5));
    lab.expect(GROUP, servers.clone());
    lab.relabel("later", json!({MASTER.0: null})).await;
    lab.cluster.delete::<k8s_openapi::api::core::v1::Node>("master-4").await;
    lab.cluster.settle().await;
    lab.expect(GROUP, servers[..3].to_vec());
}

/// Beyond 4: a server that is gone, and a node of another cloud, keep nobody else out.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_node_without_a_server_is_a_problem_of_its_own(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let masters = lab.masters().await;
    lab.node_of("gone", &[MASTER], "99999999-2222-3333-4444-555555555555", None).await;
    lab.node_of("elsewhere", &[MASTER], "", Some("aws:///eu-central-1a/i-0123")).await;
    lab.create(SAMPLE, sample_with(json!({}))).await;
    let status = lab.until_condition(SAMPLE, "Attached", "False").await;
    assert_eq!(status.attached.as_deref(), Some("3/5"));
    let told: Vec<_> = status.problems.iter().map(|one| format!("{} {}", one.node, one.reason)).collect();
    assert_eq!(told, ["elsewhere NotOfOpenStack", "gone ServerNotFound"]);
    lab.expect(GROUP, masters.clone());

    // A server that goes later does not wedge the object either.
    lab.cloud.with(|cloud| cloud.delete_server(&masters[0]));
    lab.cluster.advance(Duration::from_secs(61)).await;
    assert_eq!(lab.status(SAMPLE).await.attached.as_deref(), Some("2/5"));
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.settle().await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
}

/// Beyond 5: so many nodes, and still a handful of requests; and none of them a write when nothing has changed.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_pass_is_three_lists_however_many_nodes_there_are(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    for number in 0..60 {
        lab.node(&format!("master-{number}"), &[MASTER]).await;
    }
    lab.create(SAMPLE, sample_with(json!({}))).await;
    lab.until_ready(SAMPLE).await;
    lab.cluster.settle().await;
    lab.cloud.forget_calls();
    let before = lab.cluster.revision();
    lab.cluster.advance(Duration::from_hours(1)).await;
    let calls = lab.cloud.calls();
    assert_eq!(lab.cluster.revision(), before, "nothing is written when nothing has changed");
    let lists = calls.iter().filter(|call| call.method == Method::GET).count();
    assert!(
        calls.iter().all(|call| call.method == Method::GET || call.path.starts_with("/v3/auth")),
        "{calls:?}"
    );
    assert!((3 * 60..3 * 76).contains(&lists), "{lists} in an hour of passes after 48 to 60 s");
}

/// Beyond 5: with an interval of its own.
#[kubewright::test(nodes = 0, controllers = "")]
async fn the_interval_can_be_told(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.create(SAMPLE, sample_with(json!({"syncPeriodSeconds": 600}))).await;
    lab.until_ready(SAMPLE).await;
    lab.cluster.settle().await;
    lab.cloud.forget_calls();
    lab.cluster.advance(Duration::from_hours(1)).await;
    let passes = lab.cloud.calls().iter().filter(|call| call.path.contains("?description=")).count();
    assert!((6..=8).contains(&passes), "{passes}");
}

/// Beyond 5.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_busy_cloud_is_left_alone_for_as_long_as_it_asks(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    lab.create("other", sample_with(json!({"name": "other"}))).await;
    lab.until_ready("other").await;
    lab.cloud.set_faults(Some(Faults::always_busy(120)));
    lab.cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.1, "CloudBusy");
    let before = lab.cloud.attempts();
    lab.cluster.advance(Duration::from_secs(600)).await;
    let attempts = lab.cloud.attempts() - before;
    assert!((3..=7).contains(&attempts), "{attempts} in ten minutes, of both objects");
    lab.cloud.set_faults(None);
    lab.cluster.advance(Duration::from_secs(160)).await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.0, "True");
}

/// Beyond 5.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_quota_that_is_full_is_told_and_the_rest_goes_on(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    lab.masters().await;
    let quota = |name: &str, number: i64| {
        lab.cloud.with(|cloud| {
            drop(cloud.quotas.entry("demo".to_owned()).or_default().insert(name.to_owned(), number.into()));
        });
    };
    quota("security_group", 1);
    lab.create(SAMPLE, sample_with(json!({"keepDefaultEgress": true}))).await;
    lab.cluster.settle().await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.1, "QuotaExceeded");
    assert_eq!(lab.status(SAMPLE).await.creating_since, None, "it was an answer");
    quota("security_group", 10);
    // The default group has two rules, a new one has two.
    quota("security_group_rule", 4);
    lab.cluster.advance(Duration::from_secs(61)).await;
    let (synced, reason, message) = lab.condition(SAMPLE, "RulesSynced").await;
    assert_eq!((synced.as_str(), reason.as_str()), ("False", "QuotaExceeded"), "{message}");
    assert_eq!(lab.members(GROUP).len(), 3, "servers do not wait for rules");
    lab.cluster.advance(Duration::from_secs(600)).await;
    assert_eq!(lab.notes("FailureAddRule").await.len(), 1, "told once");
    quota("security_group_rule", 5);
    lab.cluster.advance(Duration::from_secs(61)).await;
    lab.until_ready(SAMPLE).await;
}

/// A way out when the cloud is gone for good.
#[kubewright::test(nodes = 0, controllers = "")]
async fn sg_07_there_is_a_way_out_when_the_cloud_is_gone(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    lab.cloud.set_faults(Some(Faults::always_broken()));
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.advance(Duration::from_secs(300)).await;
    assert_eq!(lab.condition(SAMPLE, "CleanupFailed").await.0, "True");
    let skip = json!({"metadata": {"annotations": {SKIP_CLEANUP: FINALIZER}}});
    lab.cluster.patch::<SecurityGroup>(SAMPLE, skip).await;
    lab.cluster.settle().await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
}

/// What the schema cannot see is a condition and one Event, and nobody leaves the group because of it.
#[kubewright::test(nodes = 0, controllers = "")]
async fn a_selector_that_makes_no_sense_is_told_once_and_changes_nothing(cluster: Cluster) {
    let lab = Lab::with_sample(cluster).await;
    let bad = json!({"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["x"]}]});
    lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"nodeLabelSelector": bad}})).await;
    lab.cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(lab.condition(SAMPLE, "Ready").await.1, "InvalidSelector");
    assert_eq!(lab.notes("FailureEnsure").await.len(), 1);
    assert_eq!(lab.members(GROUP).len(), 3);
}
