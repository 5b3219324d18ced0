//! The promises of the WhiteList operator, in a whole cluster and in virtual time. `WL-` rows are those of the write-up
//! that the sample comes from.

mod faults;
mod lab;

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use kubewright::{
    command::{Installation, Run},
    testing::Cluster,
};
use kubewright_whitelist::{Enforce, WhiteList, WhiteListSpec, deployment_name, manifests};
use lab::{Lab, all, eventually, foreign, images, patch, sample, uid};
use serde_json::{Value, json};

const NAME: &str = "whitelist-sample-deployment";

#[tokio::test(start_paused = true)]
async fn wl_01_without_a_whitelist_there_is_no_deployment() {
    let lab = Lab::start().await;
    lab.settle().await;
    assert_eq!(all(&lab.deployments).await, []);
}

/// WL-02, WL-03.
#[tokio::test(start_paused = true)]
async fn wl_03_the_sample_gets_one_nginx_that_it_controls() {
    let lab = Lab::start().await;
    let whitelist = lab.create("whitelist-sample", sample()).await;
    lab.until_ready("whitelist-sample").await;
    let deployment = lab.deployment(NAME).await;
    let spec = deployment.spec.as_ref().expect("a spec");
    assert_eq!(spec.replicas, Some(1));
    assert_eq!(images(&deployment), ["nginx"]);
    let labels = spec.selector.match_labels.as_ref().expect("a selector");
    assert_eq!(labels.get("deployment").map(String::as_str), Some(NAME));
    let owner = &deployment.owner_references()[0];
    assert_eq!((owner.controller, &owner.uid), (Some(true), &uid(&whitelist)));
    assert_eq!(all(&lab.pods).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn wl_04_a_deleted_deployment_is_back_at_once() {
    let lab = Lab::start().await;
    let before = lab.ready("whitelist-sample").await;
    let deleted = tokio::time::Instant::now();
    lab.deployments.delete(NAME, &DeleteParams::default()).await.expect("deleted");
    let back = eventually("the Deployment is back", || async {
        lab.deployments.get_opt(NAME).await.expect("an answer").filter(|found| uid(found) != uid(&before))
    })
    .await;
    assert_eq!(images(&back), ["nginx"]);
    assert!(deleted.elapsed() < Duration::from_secs(1), "it took {:?}", deleted.elapsed());
}

#[tokio::test(start_paused = true)]
async fn wl_06_another_image_is_taken_and_goes_back() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    let pod = json!({"containers": [{"name": "nginx", "image": "httpd"}]});
    let changed = patch(&lab.deployments, NAME, json!({"spec": {"template": {"spec": pod}}})).await;
    assert_eq!(images(&changed), ["httpd"]);
    lab.settle().await;
    assert_eq!(images(&lab.deployment(NAME).await), ["nginx"]);
    assert_eq!(lab.notes("Restored").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn wl_07_the_whole_spec_is_enforced() {
    let lab = Lab::start().await;
    let before = lab.ready("whitelist-sample").await;
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
        let changed = patch(&lab.deployments, NAME, json!({"spec": change})).await;
        assert_ne!(changed.spec, before.spec, "{change}");
        lab.settle().await;
        assert_eq!(lab.deployment(NAME).await.spec, before.spec, "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn wl_07_a_scaled_deployment_goes_back_to_one() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    let scale = kube::api::Patch::Merge(json!({"spec": {"replicas": 4}}));
    let scaled =
        lab.deployments.patch_scale(NAME, &kube::api::PatchParams::default(), &scale).await.expect("scaled");
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(4));
    lab.settle().await;
    assert_eq!(lab.deployment(NAME).await.spec.expect("a spec").replicas, Some(1));
    assert_eq!(all(&lab.pods).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn wl_08_labels_and_annotations_of_the_deployment_are_kept() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    let metadata = json!({"labels": {"foo": "bar"}, "annotations": {"who": "a human"}});
    patch(&lab.deployments, NAME, json!({"metadata": metadata, "spec": {"replicas": 2}})).await;
    lab.settle().await;
    let kept = lab.deployment(NAME).await;
    assert_eq!(kept.spec.as_ref().expect("a spec").replicas, Some(1));
    assert_eq!(kept.labels().get("foo").map(String::as_str), Some("bar"));
    assert_eq!(kept.annotations().get("who").map(String::as_str), Some("a human"));
}

#[tokio::test(start_paused = true)]
async fn wl_09_a_deleted_whitelist_takes_everything_along() {
    let lab = Lab::start().await;
    for parameters in [DeleteParams::background(), DeleteParams::foreground()] {
        lab.ready("whitelist-sample").await;
        lab.whitelists.delete("whitelist-sample", &parameters).await.expect("deleted");
        lab.settle().await;
        assert_eq!(all(&lab.whitelists).await, []);
        assert_eq!(all(&lab.deployments).await, []);
        assert_eq!(all(&lab.replica_sets).await, []);
        assert_eq!(all(&lab.pods).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn wl_10_two_whitelists_have_a_deployment_each() {
    let lab = Lab::start().await;
    let (one, two) = (lab.ready("one").await, lab.ready("two").await);
    lab.whitelists.delete("one", &DeleteParams::default()).await.expect("deleted");
    lab.settle().await;
    let left = all(&lab.deployments).await;
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["two-deployment"]);
    assert_eq!(uid(&left[0]), uid(&two));
    assert_ne!(uid(&one), uid(&two));
}

#[tokio::test(start_paused = true)]
async fn wl_11_a_change_of_a_deployment_reconciles_its_whitelist() {
    let lab = Lab::start().await;
    lab.ready("one").await;
    lab.ready("two").await;
    lab.settle().await;
    lab.reconciled.lock().expect("no panic before").clear();
    patch(&lab.deployments, "two-deployment", json!({"metadata": {"labels": {"a": "b"}}})).await;
    lab.settle().await;
    let reconciled = lab.reconciled.lock().expect("no panic before");
    let names: BTreeSet<&str> = reconciled.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["two"]));
}

#[tokio::test(start_paused = true)]
async fn wl_12_an_idle_hour_brings_neither_reconciles_nor_writes() {
    let lab = Lab::start().await;
    let deployment = lab.ready("whitelist-sample").await;
    lab.settle().await;
    let versions = async || {
        let whitelist = lab.whitelists.get("whitelist-sample").await.expect("a WhiteList");
        (whitelist.resource_version(), lab.deployment(NAME).await.resource_version())
    };
    let before = versions().await;
    lab.reconciled.lock().expect("no panic before").clear();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(*lab.reconciled.lock().expect("no panic before"), []);
    assert_eq!(versions().await, before);
    assert_eq!(uid(&lab.deployment(NAME).await), uid(&deployment));
}

/// WL-13, Beyond 6.
#[tokio::test(start_paused = true)]
async fn wl_13_a_long_name_works_too() {
    let lab = Lab::start().await;
    for name in ["a".repeat(53), "b".repeat(253)] {
        lab.create(&name, WhiteListSpec::default()).await;
        lab.until_ready(&name).await;
        assert_eq!(images(&lab.deployment(&deployment_name(&name)).await), ["nginx"]);
    }
}

#[tokio::test(start_paused = true)]
async fn wl_15_a_strict_server_takes_the_sample_as_it_is() {
    let lab = Lab::start().await;
    let sample: Value = serde_saphyr::from_str(manifests::SAMPLE).expect("the sample is YAML");
    let path = "/apis/sample.foo.bar/v1beta1/namespaces/default/whitelists";
    let body = serde_json::to_vec(&sample).expect("JSON");
    let mut request = kube::core::Request::new(path).create(&PostParams::default(), body).expect("a request");
    *request.uri_mut() = format!("{path}?fieldValidation=Strict").parse().expect("a path");
    let created: WhiteList = lab.client.request(request).await.expect("a strict server takes it");
    assert_eq!(created.spec, lab::sample());
}

/// Beyond 2.
#[tokio::test(start_paused = true)]
async fn somebody_elses_deployment_is_left_alone_with_the_condition_conflict() {
    let lab = Lab::start().await;
    let theirs = lab.deployments.create(&PostParams::default(), &foreign(NAME)).await.expect("created");
    lab.create("whitelist-sample", sample()).await;
    eventually("the conflict is told", || async {
        let conflict = lab.condition("whitelist-sample", "Conflict").await;
        (conflict == ("True".to_owned(), "DeploymentNotOwned".to_owned())).then_some(())
    })
    .await;
    assert_eq!(lab.condition("whitelist-sample", "Available").await.0, "False");
    let left = lab.deployment(NAME).await;
    assert_eq!((uid(&left), left.spec.as_ref()), (uid(&theirs), theirs.spec.as_ref()));

    lab.deployments.delete(NAME, &DeleteParams::default()).await.expect("deleted");
    lab.until_ready("whitelist-sample").await;
    assert_eq!(images(&lab.deployment(NAME).await), ["nginx"]);
    assert_eq!(lab.condition("whitelist-sample", "Conflict").await.0, "False");
}

/// Beyond 3.
#[tokio::test(start_paused = true)]
async fn the_status_follows_the_deployment_and_the_generation() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    assert_eq!(lab.condition("whitelist-sample", "Available").await.0, "True");
    let changed = patch(&lab.whitelists, "whitelist-sample", json!({"spec": {"foo": "other"}})).await;
    lab.settle().await;
    let status = lab.whitelists.get("whitelist-sample").await.expect("a WhiteList").status.expect("a status");
    assert_eq!(status.observed_generation, changed.metadata.generation);
    assert_eq!(changed.metadata.generation, Some(2));
}

/// Beyond 4.
#[tokio::test(start_paused = true)]
async fn events_tell_what_was_created_and_what_differed() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    patch(&lab.deployments, NAME, json!({"spec": {"replicas": 4}})).await;
    lab.settle().await;
    assert_eq!(lab.notes("Created").await, ["Created Deployment whitelist-sample-deployment"]);
    assert_eq!(
        lab.notes("Restored").await,
        ["Restored Deployment whitelist-sample-deployment: spec.replicas: 4 -> 1"]
    );
}

/// Beyond 4.
#[tokio::test(start_paused = true)]
async fn a_fight_over_the_deployment_does_not_flood_the_cluster_with_events() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    for seconds in 1..60 {
        patch(&lab.deployments, NAME, json!({"spec": {"minReadySeconds": seconds}})).await;
        lab.settle().await;
        assert_eq!(lab.deployment(NAME).await.spec.expect("a spec").min_ready_seconds, None);
    }
    assert_eq!(lab.notes("Created").await.len() + lab.notes("Restored").await.len(), 25);
}

/// Beyond 5.
#[tokio::test(start_paused = true)]
async fn while_paused_a_human_may_edit_and_even_delete() {
    let lab = Lab::start().await;
    lab.ready("whitelist-sample").await;
    patch(&lab.whitelists, "whitelist-sample", json!({"spec": {"paused": true}})).await;
    lab.settle().await;
    patch(&lab.deployments, NAME, json!({"spec": {"replicas": 3}})).await;
    lab.settle().await;
    assert_eq!(lab.deployment(NAME).await.spec.expect("a spec").replicas, Some(3));
    assert_eq!(lab.condition("whitelist-sample", "Paused").await.0, "True");

    lab.deployments.delete(NAME, &DeleteParams::default()).await.expect("deleted");
    lab.settle().await;
    assert_eq!(all(&lab.deployments).await, []);

    patch(&lab.whitelists, "whitelist-sample", json!({"spec": {"paused": false}})).await;
    lab.settle().await;
    assert_eq!(lab.deployment(NAME).await.spec.expect("a spec").replicas, Some(1));
}

/// As it is deployed: by its program, under the rights of its manifests and no others, as the leader of its replicas.
#[tokio::test(start_paused = true)]
async fn the_program_works_under_the_rights_that_its_manifests_give_it() {
    let run = Run {
        leader_elect: true,
        leader_elect_resource_namespace: Some(lab::HOME.to_owned()),
        ..Run::default()
    };
    let mut told = None;
    let lab = Lab::with(|manager, _| {
        let manager = kubewright_whitelist::operator().manager(manager, &run).expect("it makes sense");
        told = Some((manager.metrics().clone(), manager.readiness().clone()));
        manager
    })
    .await;
    let (metrics, ready) = told.expect("a manager");
    lab.ready("whitelist-sample").await;
    assert_eq!(ready.report("", "verbose").text, "[+]informer-sync ok\nhealthz check passed\n");
    lab.deployments.delete(NAME, &DeleteParams::default()).await.expect("deleted");
    lab.settle().await;
    assert_eq!(images(&lab.deployment(NAME).await), ["nginx"]);
    let leases: Api<Lease> = Api::namespaced(lab.client.clone(), lab::HOME);
    assert!(leases.get("whitelist").await.is_ok_and(|lease| lease.spec.is_some()));

    let text = metrics.text();
    for line in [
        "leader_election_master_status{name=\"whitelist\"} 1\n",
        "controller_runtime_reconcile_total{controller=\"whitelist\",result=\"error\"} 0\n",
        "workqueue_depth{controller=\"whitelist\",name=\"whitelist\",priority=\"0\"} 0\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("reconcile_total{controller=\"whitelist\",result=\"success\"} 0\n"), "{text}");
}

/// What `whitelist manifests` prints is taken by the API server, the Deployment too.
#[tokio::test(start_paused = true)]
async fn everything_that_installs_it_is_taken_by_the_api_server() {
    let lab = Lab::start().await;
    let all = kubewright_whitelist::operator().manifests(&Installation::default()).expect("manifests");
    assert_eq!(all.len(), 11 + 1);
    for object in all.into_iter().skip(11) {
        lab::install(&lab.client, &object).await;
    }
    let deployments: Api<Deployment> = Api::namespaced(lab.client.clone(), lab::HOME);
    let deployment = deployments.get("whitelist").await.expect("it is there");
    assert_eq!(deployment.spec.and_then(|spec| spec.replicas), Some(1));
}

/// WL-07, WL-08, Beyond 1: by server-side apply of its own fields what an autoscaler and kubectl set survives, and the image is
/// enforced all the same.
#[kubewright::test]
async fn wl_08_where_only_own_fields_are_enforced_replicas_and_annotations_survive(cluster: Cluster) {
    cluster.run(kubewright_whitelist::operator).await;
    let spec = WhiteListSpec { enforce: Enforce::OwnFields, ..sample() };
    cluster.create(&WhiteList::new("whitelist-sample", spec)).await;
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

/// Whatever goes wrong on the way: the Deployment comes back as it is meant to be.
#[kubewright::test(seeds = 3, faults)]
async fn wl_04_the_deployment_comes_back_whatever_goes_wrong(cluster: Cluster) {
    cluster.run(kubewright_whitelist::operator).await;
    cluster.create(&WhiteList::new("whitelist-sample", sample())).await;
    cluster.eventually(|cluster| async move { cluster.exists::<Deployment>(NAME).await }).await;
    cluster.delete::<Deployment>(NAME).await;
    cluster
        .run_until(
            |cluster| async move {
                let whitelist = cluster.get::<WhiteList>("whitelist-sample").await;
                let found = cluster.try_get::<Deployment>(NAME).await;
                let is_right = found.is_some_and(|found| {
                    found.metadata.deletion_timestamp.is_none() && images(&found) == ["nginx"]
                });
                is_right && whitelist.status.is_some_and(|status| status.ready)
            },
            Duration::from_secs(600),
        )
        .await;
}
