//! Runs in which the cloud's API fails, answers get lost, others write the same ports and the operator is killed; and runs in
//! which what goes wrong is Kubernetes' API.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kubewright::testing::Cluster;
use kubewright_security_group::SecurityGroup;
use serde_json::json;

use crate::{
    fake::Faults,
    lab::{GROUP, Lab, MASTER, SAMPLE, sample_with},
};

/// Whatever goes wrong in between: in the end there is one group, with the rules that are wanted, with every selected server in
/// it and no other; no server has lost another group; and when the object goes, nothing of it is left.
#[kubewright::test(nodes = 0, controllers = "", seeds = 200)]
async fn sg_01_whatever_goes_wrong_there_is_one_group_with_all_servers_in_it(cluster: Cluster) {
    let dice = cluster.world().dice.clone();
    let lab = Lab::start(cluster).await;
    let mut servers = lab.masters().await;
    let default = lab.cloud.with(|cloud| cloud.default_group("demo")).expect("it is there");
    lab.cloud.set_faults(Some(Faults::new(dice.below(1 << 30) as u64, 25)));
    lab.create(SAMPLE, sample_with(json!({}))).await;
    for round in 0..8 {
        lab.cluster.advance(Duration::from_millis(1 + dice.below(20_000) as u64)).await;
        match dice.below(6) {
            0 | 1 => {
                lab.operator.crash().await;
                lab.operator.restart().await;
            }
            2 => servers.push(lab.node(&format!("more-{round}"), &[MASTER]).await),
            3 => {
                let port = 8000 + round;
                let rules =
                    json!([{"portRangeMin": port, "portRangeMax": port, "remoteIpPrefix": "10.0.0.0/8"}]);
                lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"rules": rules}})).await;
            }
            4 if !servers.is_empty() && round < 3 => {
                let number = 3 - round;
                if lab.cluster.exists::<Node>(&format!("master-{number}")).await {
                    lab.cluster.delete::<Node>(&format!("master-{number}")).await;
                    servers.remove(number - 1);
                }
            }
            _ => lab.cloud.with(|cloud| {
                // Somebody takes a server out by hand.
                let ports = cloud.ports.values_mut();
                for port in ports.take(1) {
                    port["security_groups"] = json!([default]);
                }
            }),
        }
    }
    lab.cloud.set_faults(None);
    lab.cluster.advance(Duration::from_secs(300)).await;
    lab.until_ready(SAMPLE).await;
    lab.expect(GROUP, servers);
    let (group, wanted) = (lab.group(GROUP), lab.cluster.get::<SecurityGroup>(SAMPLE).await.spec.rules.len());
    assert_eq!(lab.cloud.with(|cloud| cloud.rules(&group)).len(), wanted);
    let all_keep =
        lab.cloud.with(|cloud| cloud.ports.keys().all(|port| cloud.groups_of(port).contains(&default)));
    assert!(all_keep, "no server has lost another group");

    lab.cloud.set_faults(Some(Faults::new(dice.below(1 << 30) as u64, 25)));
    lab.cluster.delete::<SecurityGroup>(SAMPLE).await;
    lab.cluster.advance(Duration::from_millis(1 + dice.below(5_000) as u64)).await;
    lab.operator.crash().await;
    lab.operator.restart().await;
    lab.cluster.advance(Duration::from_secs(30)).await;
    lab.cloud.set_faults(None);
    lab.cluster.advance(Duration::from_secs(400)).await;
    assert!(!lab.cluster.exists::<SecurityGroup>(SAMPLE).await);
    let left =
        lab.cloud.with(|cloud| cloud.groups.values().filter(|group| group["name"] != "default").count());
    assert_eq!(left, 0, "nothing is left behind");
}

/// Conflicts, lost answers, old watches, crashes, nodes that go and come back: the group has the rule that is wanted by then, and
/// all servers.
#[kubewright::test(nodes = 0, controllers = "", seeds = 200, faults)]
async fn sg_01_whatever_goes_wrong_in_the_cluster_the_group_is_as_wanted(cluster: Cluster) {
    let lab = Lab::start(cluster).await;
    let mut servers = lab.masters().await;
    lab.create(SAMPLE, sample_with(json!({}))).await;
    lab.cluster.advance(Duration::from_secs(30)).await;
    let rules = json!([{"portRangeMin": 8443, "portRangeMax": 8443, "remoteIpPrefix": "10.0.0.0/8"}]);
    lab.cluster.patch::<SecurityGroup>(SAMPLE, json!({"spec": {"rules": rules}})).await;
    servers.push(lab.node("master-4", &[MASTER]).await);
    servers.sort();
    let is_as_wanted = |_| async {
        let ids = lab.cloud.with(|cloud| cloud.named(GROUP));
        let [id] = ids.as_slice() else { return Err(format!("groups: {ids:?}")) };
        let (members, rules) = lab.cloud.with(|cloud| (cloud.members(id), cloud.rules(id)));
        if members.iter().eq(&servers) && rules == ["ingress IPv4 tcp 8443 8443 10.0.0.0/8"] {
            Ok(())
        } else {
            Err(format!("{members:?}, {rules:?}"))
        }
    };
    lab.cluster.run_until(is_as_wanted, Duration::from_mins(15)).await;
    lab.expect(GROUP, servers);
}
