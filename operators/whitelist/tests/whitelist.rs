//! The promises of the WhiteList operator, in a whole cluster and in virtual time. `WL-` rows are those of the write-up
//! that the sample comes from; "Beyond" is what it promises besides.

mod lab;
mod log;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    coordination::v1::Lease,
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, ValidationDirective},
};
use kubewright::{command::Installation, testing::Cluster};
use kubewright_whitelist::{Enforce, WhiteList, deployment_name, manifests, operator};
use lab::{
    NAME, Reconciled, condition, foreign, images, is_ready, notes, noting, replicas, uid, whitelist,
    with_sample,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

#[kubewright::test]
async fn wl_01_without_a_whitelist_there_is_no_deployment(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Deployment>().await, []);
}

/// WL-02, WL-03.
#[kubewright::test]
async fn wl_03_the_sample_gets_one_nginx_that_it_controls(cluster: Cluster) {
    with_sample(&cluster).await;
    let deployment = cluster.get::<Deployment>(NAME).await;
    assert_eq!(images(&deployment), ["nginx"]);
    let owner = &deployment.owner_references()[0];
    let sample = cluster.get::<WhiteList>("whitelist-sample").await;
    assert_eq!((owner.controller, &owner.uid), (Some(true), &uid(&sample)));
    let spec = deployment.spec.expect("a spec");
    assert_eq!(spec.replicas, Some(1));
    let labels = spec.selector.match_labels.expect("a selector");
    assert_eq!(labels.get("deployment").map(String::as_str), Some(NAME));
    assert_eq!(cluster.list::<Pod>().await.len(), 1);
}

#[kubewright::test]
async fn wl_04_a_deleted_deployment_is_back_at_once(cluster: Cluster) {
    with_sample(&cluster).await;
    let before = uid(&cluster.get::<Deployment>(NAME).await);
    cluster.delete::<Deployment>(NAME).await;
    let is_back = |cluster: Cluster| {
        let before = before.clone();
        async move { cluster.try_get::<Deployment>(NAME).await.filter(|found| uid(found) != before) }
    };
    let back = cluster.run_until(is_back, Duration::from_secs(1)).await;
    assert_eq!(images(&back), ["nginx"]);
}

#[kubewright::test]
async fn wl_06_another_image_is_taken_and_goes_back(cluster: Cluster) {
    with_sample(&cluster).await;
    let pod = json!({"containers": [{"name": "nginx", "image": "httpd"}]});
    let changed = cluster.patch::<Deployment>(NAME, json!({"spec": {"template": {"spec": pod}}})).await;
    assert_eq!(images(&changed), ["httpd"]);
    cluster.settle().await;
    assert_eq!(images(&cluster.get::<Deployment>(NAME).await), ["nginx"]);
    assert_eq!(notes(&cluster, "Restored").await.len(), 1);
}

#[kubewright::test]
async fn wl_07_the_whole_spec_is_enforced(cluster: Cluster) {
    with_sample(&cluster).await;
    let before = cluster.get::<Deployment>(NAME).await.spec;
    let restarted = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
    let two = json!([{"name": "nginx", "image": "nginx"}, {"name": "extra", "image": "extra"}]);
    for change in [
        json!({"replicas": 4}),
        json!({"template": {"spec": {"containers": two}}}),
        json!({"template": {"metadata": {"annotations": restarted}}}),
        json!({"minReadySeconds": 10}),
        json!({"paused": true}),
        json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}),
    ] {
        let changed = cluster.patch::<Deployment>(NAME, json!({"spec": change})).await;
        assert_ne!(changed.spec, before, "{change}");
        cluster.settle().await;
        assert_eq!(cluster.get::<Deployment>(NAME).await.spec, before, "{change}");
    }
}

/// `kubectl scale --replicas=4`.
#[kubewright::test]
async fn wl_07_a_scaled_deployment_goes_back_to_one(cluster: Cluster) {
    with_sample(&cluster).await;
    let scale = Patch::Merge(json!({"spec": {"replicas": 4}}));
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let scaled = deployments.patch_scale(NAME, &PatchParams::default(), &scale).await.expect("scaled");
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(4));
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(1));
    assert_eq!(cluster.list::<Pod>().await.len(), 1);
}

#[kubewright::test]
async fn wl_08_labels_and_annotations_of_the_deployment_are_kept(cluster: Cluster) {
    with_sample(&cluster).await;
    let metadata = json!({"labels": {"foo": "bar"}, "annotations": {"who": "a human"}});
    cluster.patch::<Deployment>(NAME, json!({"metadata": metadata, "spec": {"replicas": 2}})).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(1));
    let kept = cluster.get::<Deployment>(NAME).await;
    assert_eq!(kept.labels().get("foo").map(String::as_str), Some("bar"));
    assert_eq!(kept.annotations().get("who").map(String::as_str), Some("a human"));
}

/// WL-07, WL-08, Beyond 1: by server-side apply of its own fields what an autoscaler and kubectl set survives, and the image is
/// enforced all the same.
#[kubewright::test]
async fn wl_08_where_only_own_fields_are_enforced_replicas_and_annotations_survive(cluster: Cluster) {
    cluster.run(operator).await;
    let mut sample = whitelist("whitelist-sample");
    sample.spec.enforce = Enforce::OwnFields;
    cluster.create(&sample).await;
    cluster.settle().await;
    let restarted = json!({"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}});
    let pod =
        json!({"containers": [{"name": "nginx", "image": "httpd"}, {"name": "extra", "image": "extra"}]});
    let change = json!({"spec": {"replicas": 4, "template": {"metadata": restarted, "spec": pod}}});
    cluster.patch::<Deployment>(NAME, change).await;
    cluster.settle().await;
    let found = cluster.get::<Deployment>(NAME).await;
    assert_eq!(images(&found), ["nginx", "extra"]);
    let spec = found.spec.expect("a spec");
    assert_eq!(spec.replicas, Some(4));
    assert!(spec.template.metadata.and_then(|meta| meta.annotations).is_some());
    let before = cluster.revision();
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(cluster.revision(), before, "it applies when something differs, and not else");
}

#[kubewright::test]
async fn wl_09_a_deleted_whitelist_takes_everything_along(cluster: Cluster) {
    cluster.run(operator).await;
    let whitelists: Api<WhiteList> = Api::default_namespaced(cluster.client());
    for parameters in [DeleteParams::background(), DeleteParams::foreground()] {
        cluster.create(&whitelist("whitelist-sample")).await;
        cluster.settle().await;
        assert_eq!(cluster.list::<Pod>().await.len(), 1);
        whitelists.delete("whitelist-sample", &parameters).await.expect("deleted");
        cluster.settle().await;
        assert_eq!(cluster.list::<WhiteList>().await, []);
        assert_eq!(cluster.list::<Deployment>().await, []);
        assert_eq!(cluster.list::<ReplicaSet>().await, []);
        assert_eq!(cluster.list::<Pod>().await, []);
    }
}

#[kubewright::test]
async fn wl_10_two_whitelists_have_a_deployment_each(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&whitelist("one")).await;
    cluster.create(&whitelist("two")).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Deployment>().await.len(), 2);
    let two = uid(&cluster.get::<Deployment>("two-deployment").await);
    cluster.delete::<WhiteList>("one").await;
    cluster.settle().await;
    let left = cluster.list::<Deployment>().await;
    assert_eq!(left.iter().map(uid).collect::<Vec<_>>(), [two]);
}

#[kubewright::test]
async fn wl_11_a_change_of_a_deployment_reconciles_its_whitelist(cluster: Cluster) {
    let reconciled = Reconciled::default();
    cluster.run(noting(&reconciled)).await;
    cluster.create(&whitelist("one")).await;
    cluster.create(&whitelist("two")).await;
    cluster.settle().await;
    reconciled.lock().clear();
    cluster.patch::<Deployment>("two-deployment", json!({"metadata": {"labels": {"a": "b"}}})).await;
    cluster.settle().await;
    let names: BTreeSet<String> = reconciled.lock().iter().map(|key| key.name.clone()).collect();
    assert_eq!(names, BTreeSet::from(["two".to_owned()]));
}

#[kubewright::test]
async fn wl_12_an_idle_hour_brings_neither_reconciles_nor_writes(cluster: Cluster) {
    let reconciled = Reconciled::default();
    cluster.run(noting(&reconciled)).await;
    cluster.create(&whitelist("whitelist-sample")).await;
    cluster.settle().await;
    assert!(is_ready(&cluster, "whitelist-sample").await);
    let before = cluster.revision();
    reconciled.lock().clear();
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(*reconciled.lock(), []);
    assert_eq!(cluster.revision(), before);
}

/// WL-13, Beyond 6.
#[kubewright::test]
async fn wl_13_a_long_name_works_too(cluster: Cluster) {
    cluster.run(operator).await;
    for name in ["a".repeat(53), "b".repeat(253)] {
        cluster.create(&whitelist(&name)).await;
        cluster.settle().await;
        assert!(is_ready(&cluster, &name).await);
        assert_eq!(images(&cluster.get::<Deployment>(&deployment_name(&name)).await), ["nginx"]);
    }
}

#[kubewright::test]
async fn wl_15_a_strict_server_takes_the_sample_as_it_is(cluster: Cluster) {
    cluster.run(operator).await;
    let sample: Value = serde_saphyr::from_str(manifests::SAMPLE).expect("the sample is YAML");
    let strict =
        PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("kubectl") };
    let whitelists: Api<WhiteList> = Api::default_namespaced(cluster.client());
    let applied = whitelists.patch("whitelist-sample", &strict, &Patch::Apply(&sample)).await;
    assert_eq!(applied.expect("a strict server takes it").spec, whitelist("whitelist-sample").spec);
}

/// Beyond 2.
#[kubewright::test]
async fn somebody_elses_deployment_is_left_alone_with_the_condition_conflict(cluster: Cluster) {
    cluster.run(operator).await;
    let theirs = cluster.create(&foreign()).await;
    cluster.create(&whitelist("whitelist-sample")).await;
    cluster.settle().await;
    assert_eq!(condition(&cluster, "Conflict").await, "True DeploymentNotOwned");
    assert!(condition(&cluster, "Available").await.starts_with("False "));
    let left = cluster.get::<Deployment>(NAME).await;
    assert_eq!((uid(&left), left.spec), (uid(&theirs), theirs.spec));

    cluster.delete::<Deployment>(NAME).await;
    cluster.eventually(async |cluster: Cluster| is_ready(&cluster, "whitelist-sample").await).await;
    assert_eq!(images(&cluster.get::<Deployment>(NAME).await), ["nginx"]);
    assert!(condition(&cluster, "Conflict").await.starts_with("False "));
}

/// Beyond 3.
#[kubewright::test]
async fn the_status_follows_the_deployment_and_the_generation(cluster: Cluster) {
    with_sample(&cluster).await;
    assert!(condition(&cluster, "Available").await.starts_with("True "));
    let changed = cluster.patch::<WhiteList>("whitelist-sample", json!({"spec": {"foo": "other"}})).await;
    assert_eq!(changed.metadata.generation, Some(2));
    cluster.settle().await;
    let status = cluster.get::<WhiteList>("whitelist-sample").await.status.expect("a status");
    assert_eq!(status.observed_generation, Some(2));
}

/// Beyond 4.
#[kubewright::test]
async fn events_tell_what_was_created_and_what_differed(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<Deployment>(NAME, json!({"spec": {"replicas": 4}})).await;
    cluster.settle().await;
    assert_eq!(notes(&cluster, "Created").await, ["Created Deployment whitelist-sample-deployment"]);
    assert_eq!(
        notes(&cluster, "Restored").await,
        ["Restored Deployment whitelist-sample-deployment: spec.replicas: 4 -> 1"]
    );
}

/// Beyond 4.
#[kubewright::test]
async fn a_fight_over_the_deployment_does_not_flood_the_cluster_with_events(cluster: Cluster) {
    with_sample(&cluster).await;
    for seconds in 1..60 {
        cluster.patch::<Deployment>(NAME, json!({"spec": {"minReadySeconds": seconds}})).await;
        cluster.settle().await;
        let spec = cluster.get::<Deployment>(NAME).await.spec.expect("a spec");
        assert_eq!(spec.min_ready_seconds, None);
    }
    assert_eq!(notes(&cluster, "Created").await.len(), 1);
    let restored = notes(&cluster, "Restored").await;
    assert_eq!(restored.len(), 10, "nine by themselves, and one for all others");
    assert!(restored.iter().any(|note| note.starts_with("(combined from similar events): ")), "{restored:?}");
}

/// Beyond 5.
#[kubewright::test]
async fn while_paused_a_human_may_edit_and_even_delete(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<WhiteList>("whitelist-sample", json!({"spec": {"paused": true}})).await;
    cluster.settle().await;
    cluster.patch::<Deployment>(NAME, json!({"spec": {"replicas": 3}})).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(3));
    assert!(condition(&cluster, "Paused").await.starts_with("True "));

    cluster.delete::<Deployment>(NAME).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Deployment>().await, []);

    cluster.patch::<WhiteList>("whitelist-sample", json!({"spec": {"paused": false}})).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(1));
}

/// As it is deployed: two replicas, one of which leads, under the rights of its manifests and no others.
#[kubewright::test]
async fn the_program_works_under_the_rights_that_its_manifests_give_it(cluster: Cluster) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&told);
    let program = move || {
        let noted = Arc::clone(&noted);
        operator().setup(move |manager| {
            noted.lock().push((manager.metrics().clone(), manager.readiness().clone()));
            Ok(())
        })
    };
    cluster.run(program).replicas(2).await;
    cluster.create(&whitelist("whitelist-sample")).await;
    cluster.settle().await;
    cluster.delete::<Deployment>(NAME).await;
    cluster.settle().await;
    assert_eq!(images(&cluster.get::<Deployment>(NAME).await), ["nginx"]);
    let lease = cluster.in_namespace("whitelist-system").get::<Lease>("whitelist").await;
    assert!(lease.spec.and_then(|spec| spec.holder_identity).is_some());

    let replicas = told.lock().clone();
    let texts: Vec<String> = replicas.iter().map(|(metrics, _)| metrics.text()).collect();
    let leads = |text: &&String| text.contains("leader_election_master_status{name=\"whitelist\"} 1\n");
    let leading: Vec<&String> = texts.iter().filter(leads).collect();
    let [text] = leading[..] else { panic!("one of two leads: {texts:#?}") };
    for line in [
        "controller_runtime_reconcile_total{controller=\"whitelist\",result=\"error\"} 0\n",
        "workqueue_depth{controller=\"whitelist\",name=\"whitelist\",priority=\"0\"} 0\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("reconcile_total{controller=\"whitelist\",result=\"success\"} 0\n"), "{text}");
    for (_, ready) in &replicas {
        assert_eq!(ready.report("", "verbose").text, "[+]informer-sync ok\nhealthz check passed\n");
    }
}

/// What `whitelist manifests` prints is taken by the API server, the Deployment too, and its pod is let in.
#[kubewright::test]
async fn everything_that_installs_it_is_taken_by_the_api_server(cluster: Cluster) {
    cluster.run(operator).await; // installs all but the Deployment
    let all = operator().manifests(&Installation::default()).expect("manifests");
    let program = all.into_iter().find_map(|object| object.try_parse::<Deployment>().ok());
    cluster.create(&program.expect("a Deployment")).await;
    cluster.settle().await;
    let program = cluster.in_namespace("whitelist-system").get::<Deployment>("whitelist").await;
    assert_eq!(program.status.and_then(|status| status.ready_replicas), Some(1));
}

/// Whatever goes wrong on the way: what somebody changes goes back, and what somebody deletes comes back.
#[kubewright::test(seeds = 200, faults)]
async fn wl_04_the_deployment_comes_back_whatever_goes_wrong(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&whitelist("whitelist-sample")).await;
    cluster.eventually(async |cluster: Cluster| cluster.exists::<Deployment>(NAME).await).await;
    cluster.patch::<Deployment>(NAME, json!({"spec": {"replicas": 4}})).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(1));
    assert!(is_ready(&cluster, "whitelist-sample").await);

    cluster.delete::<Deployment>(NAME).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(1));
    assert!(is_ready(&cluster, "whitelist-sample").await);
}
