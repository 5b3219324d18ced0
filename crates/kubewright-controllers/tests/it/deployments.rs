//! Deployments and ReplicaSets.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::support::{World, deployment, phase, template};

async fn status(world: &World) -> Value {
    let web = world.api::<Deployment>().get("web").await.expect("the Deployment");
    kubewright_objects::to_value(&web.status).expect("JSON")
}

fn reason(status: &Value, kind: &str) -> String {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind);
    found.and_then(|condition| condition["reason"].as_str().map(str::to_owned)).unwrap_or_default()
}

fn controller(
    owners: Option<&Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference>>,
) -> String {
    owners
        .into_iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.clone())
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(3)).await;
    world.settle().await;
    let mut status = status(&world).await;
    assert_eq!(reason(&status, "Available"), "MinimumReplicasAvailable");
    assert_eq!(reason(&status, "Progressing"), "NewReplicaSetAvailable");
    status["conditions"] = Value::Null;
    assert_eq!(
        status,
        json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "terminatingReplicas": 0, "conditions": null})
    );
    let web = world.api::<Deployment>().get("web").await.expect("the Deployment");
    assert_eq!(web.metadata.annotations.expect("annotations")["deployment.kubernetes.io/revision"], "1");
    assert_eq!(web.metadata.generation, Some(1));
    let scaled = world.events("Deployment").await;
    assert_eq!(scaled.len(), 1);
    assert!(scaled[0].1.starts_with("Scaled up replica set web-") && scaled[0].1.ends_with(" from 0 to 3"));
    assert_eq!(world.events("ReplicaSet").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_controller_writes_is_managed_by_the_program_that_it_is_part_of() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(1)).await;
    world.settle().await;
    let managers = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        let entries = meta.managed_fields.iter().flatten();
        entries.filter_map(|entry| entry.manager.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let sets = world.all::<ReplicaSet>().await;
    assert_eq!(managers(&sets[0].metadata).into_iter().collect::<Vec<_>>(), ["kube-controller-manager"]);
    let pods = world.all::<Pod>().await;
    assert_eq!(
        managers(&pods[0].metadata).into_iter().collect::<Vec<_>>(),
        ["kube-controller-manager", "kubelet"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_replaces_all_pods_and_keeps_the_old_set() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(4)).await;
    world.settle().await;
    world.merge::<Deployment>("web", json!({"spec": {"template": template("web:2")}})).await;
    world.settle().await;
    let pods = world.all::<Pod>().await;
    assert_eq!(pods.len(), 4);
    for pod in &pods {
        assert_eq!(pod.spec.as_ref().expect("a spec").containers[0].image.as_deref(), Some("web:2"));
    }
    let mut sizes: Vec<_> =
        world.all::<ReplicaSet>().await.iter().map(|set| set.spec.as_ref().unwrap().replicas).collect();
    sizes.sort();
    assert_eq!(sizes, [Some(0), Some(4)]);
    assert_eq!(reason(&status(&world).await, "Progressing"), "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_and_a_deleted_set_come_back() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(2)).await;
    world.settle().await;
    let pods = world.names::<Pod>().await;
    world.api::<Pod>().delete(&pods[0], &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    let after = world.names::<Pod>().await;
    assert!(after.len() == 2 && !after.contains(&pods[0]), "{after:?}");

    let set = world.all::<ReplicaSet>().await.remove(0);
    let name = set.metadata.name.clone().expect("a name");
    world.api::<ReplicaSet>().delete(&name, &DeleteParams::background()).await.expect("deleted");
    world.settle().await;
    let again = world.api::<ReplicaSet>().get(&name).await.expect("made again");
    assert_ne!(again.metadata.uid, set.metadata.uid);
    let owners: Vec<_> = world
        .all::<Pod>()
        .await
        .iter()
        .map(|pod| controller(pod.metadata.owner_references.as_ref()))
        .collect();
    assert_eq!(owners, vec![again.metadata.uid.clone().expect("a uid"); 2]);
}

#[tokio::test(start_paused = true)]
async fn scaling_keeps_as_many_pods_as_are_wanted() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(1)).await;
    for replicas in [5, 2, 0, 3] {
        world.merge::<Deployment>("web", json!({"spec": {"replicas": replicas}})).await;
        world.settle().await;
        assert_eq!(i64::try_from(world.all::<Pod>().await.len()), Ok(replicas));
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_gets_stuck_times_out_and_keeps_the_old_pods_available() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(4)).await;
    world.settle().await;
    let mut stuck = template("web:2");
    stuck["spec"]["schedulerName"] = json!("nobody");
    world.merge::<Deployment>("web", json!({"spec": {"template": stuck}})).await;
    world.settle().await;
    let before = status(&world).await;
    assert_eq!((&before["availableReplicas"], &before["updatedReplicas"]), (&json!(3), &json!(2)));
    assert_eq!(reason(&before, "Progressing"), "ReplicaSetUpdated");
    tokio::time::sleep(Duration::from_secs(700)).await;
    let after = status(&world).await;
    assert_eq!(reason(&after, "Progressing"), "ProgressDeadlineExceeded");
    assert_eq!(after["availableReplicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deployment_deletes_its_sets_and_pods() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(2)).await;
    world.settle().await;
    world.api::<Deployment>().delete("web", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!((world.names::<ReplicaSet>().await.len(), world.names::<Pod>().await.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn orphaned_sets_are_adopted_by_the_next_deployment() {
    let world = World::start().await;
    world.create::<Deployment>(deployment(2)).await;
    world.settle().await;
    let set = world.all::<ReplicaSet>().await.remove(0);
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    world.api::<Deployment>().delete("web", &orphan).await.expect("deleted");
    world.settle().await;
    assert!(!world.is_there::<Deployment>("web").await);
    assert_eq!(world.all::<ReplicaSet>().await[0].metadata.owner_references, None);

    let web = world.create::<Deployment>(deployment(3)).await;
    world.settle().await;
    let sets = world.all::<ReplicaSet>().await;
    assert_eq!((sets.len(), &sets[0].metadata.uid), (1, &set.metadata.uid));
    assert_eq!(Some(controller(sets[0].metadata.owner_references.as_ref())), web.metadata.uid);
    assert_eq!(world.all::<Pod>().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_set_adopts_releases_and_replaces_pods() {
    let world = World::start().await;
    let bare = json!({"metadata": {"name": "orphan", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    world.create::<Pod>(bare).await;
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")}});
    world.create::<ReplicaSet>(set).await;
    world.settle().await;
    let pods = world.names::<Pod>().await;
    assert!(pods.len() == 2 && pods.contains(&"orphan".to_owned()), "{pods:?}");

    world.merge::<Pod>("orphan", json!({"metadata": {"labels": {"app": "debug"}}})).await;
    world.settle().await;
    let released = world.api::<Pod>().get("orphan").await.expect("the pod");
    assert_eq!(released.metadata.owner_references, None);
    assert_eq!(world.all::<Pod>().await.len(), 3);

    let ours = world.names::<Pod>().await.into_iter().find(|name| name != "orphan").expect("a pod");
    world.merge_status::<Pod>(&ours, json!({"phase": "Failed", "reason": "Evicted"})).await;
    world.settle().await;
    let running = world.all::<Pod>().await.iter().filter(|pod| phase(pod) == "Running").count();
    assert_eq!(running, 3, "the released one, and two of the set");
    assert!(world.is_there::<Pod>(&ours).await, "a failed pod stays");
}

#[tokio::test(start_paused = true)]
async fn a_set_whose_pods_are_refused_says_so_and_recovers() {
    let world = World::start().await;
    let mut template = template("web:1");
    template["spec"]["serviceAccountName"] = json!("missing");
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    world.create::<ReplicaSet>(set).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let failed = world.api::<ReplicaSet>().get("web").await.expect("the set").status.expect("a status");
    let condition = &failed.conditions.expect("conditions")[0];
    assert_eq!(
        (condition.type_.as_str(), condition.reason.as_deref()),
        ("ReplicaFailure", Some("FailedCreate"))
    );

    let account = json!({"metadata": {"name": "missing"}});
    world.create::<k8s_openapi::api::core::v1::ServiceAccount>(account).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let recovered = world.api::<ReplicaSet>().get("web").await.expect("the set").status.expect("a status");
    assert_eq!((recovered.ready_replicas, recovered.conditions), (Some(1), None));
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_of_more_pods_than_one_pass_makes_has_them_all_although_nobody_else_does_anything() {
    let world = World::with_nodes("serviceaccount,replicaset", 0).await;
    let spec =
        json!({"replicas": 1001, "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")});
    world.create::<ReplicaSet>(json!({"metadata": {"name": "web"}, "spec": spec})).await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await.len(), 1001);
    world.merge::<ReplicaSet>("web", json!({"spec": {"replicas": 0}})).await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await.len(), 0);
    let status = world.all::<ReplicaSet>().await.remove(0).status.expect("a status");
    assert_eq!((status.replicas, status.observed_generation), (0, Some(2)));
}
