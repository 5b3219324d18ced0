//! At every moment of a rolling update there are enough available pods, and not too many in all.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::faults::{Apart, Faults, Witness};
use crate::support::{World, deployment, template};

/// Pods that only [`tend`] makes ready.
fn slow(image: &str) -> serde_json::Value {
    let mut template = template(image);
    template["spec"]["schedulerName"] = json!("nobody");
    template
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Makes some of the pods ready.
async fn tend(world: &World, faults: &Faults) {
    for pod in world.all::<Pod>().await.iter().filter(|pod| !is_ready(pod)) {
        if faults.below(3) == 0 {
            let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.cluster.world().clock.now());
            let status = json!({"status": {"phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}});
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            // It may be gone by now.
            let _ =
                world.api::<Pod>().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
        }
    }
}

async fn is_over(world: &World) -> bool {
    let web = world.api::<Deployment>().get("web").await.expect("the Deployment");
    let (wanted, status) = (web.spec.and_then(|spec| spec.replicas), web.status.unwrap_or_default());
    status.observed_generation == web.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|count| *count == wanted)
}

#[tokio::test(start_paused = true)]
async fn availability_stays_within_the_bounds_at_every_moment() {
    for seed in 0..6 {
        let faults = Faults::new(seed);
        let replicas = 1 + faults.below(8);
        let (surge, unavailable) = (faults.below(4), faults.below(4));
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        let world = World::with("serviceaccount").await;
        let controllers = Apart::start(&world, "deployment,replicaset", &faults);
        let mut web = deployment(i32::try_from(replicas).expect("a small number"));
        web["spec"]["template"] = slow("web:0");
        web["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        world.create::<Deployment>(web).await;
        while !is_over(&world).await {
            tend(&world, &faults).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }

        let (most, least) = (replicas + surge, replicas.saturating_sub(unavailable));
        let witness = Witness::of::<Pod>(&world, move |pods| {
            let there = || pods.values().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            let (all, available) = (there().count(), there().filter(|pod| is_ready(pod)).count());
            let is_well = all <= most && available >= least;
            if is_well { Ok(()) } else { Err(format!("{available} of {all}, not {least} of {most}")) }
        });
        for version in 1..=3 {
            world
                .merge::<Deployment>("web", json!({"spec": {"template": slow(&format!("web:{version}"))}}))
                .await;
            for _ in 0..faults.below(20) {
                tokio::time::sleep(Duration::from_millis(faults.below(3000) as u64)).await;
                tend(&world, &faults).await;
                if faults.below(8) == 0 {
                    controllers.restart();
                }
            }
        }
        faults.end();
        let mut patience = 4000;
        while !is_over(&world).await {
            tend(&world, &faults).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            patience -= 1;
            assert!(patience > 0, "seed {seed}: the rollout does not end");
        }
        assert_eq!(
            witness.complaints(),
            Vec::<String>::new(),
            "seed {seed}: {replicas} +{surge} -{unavailable}"
        );
    }
}
