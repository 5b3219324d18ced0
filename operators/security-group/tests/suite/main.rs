//! The promises of the SecurityGroup operator: in a whole cluster and a whole cloud, both in this process, in virtual time;
//! and, where there is one, against a real OpenStack. `SG-` rows are those of the write-up that the operator comes from.

mod beyond;
mod contract;
mod fake;
mod lab;
mod log;
mod real;
mod rows;
mod seeds;
mod tls;

use std::sync::Arc;

use kubewright::World;

#[tokio::test(start_paused = true)]
async fn the_fake_is_held_to_the_contract() {
    let fake = fake::Fake::new(&World::simulated(1));
    let (demo, admin) = (fake.access("demo"), fake.access("admin"));
    contract::hold(&contract::Lab { network: Arc::new(fake), demo, admin, run: "contract".to_owned() }).await;
}

/// `OPENSTACK` is the folder of the servers that `tests/openstack/lab.py` started.
#[tokio::test]
#[ignore = "needs OpenStack's servers: cargo xtask test starts them"]
async fn the_real_servers_keep_the_contract() {
    let url = std::env::var("OPENSTACK_URL").expect("OPENSTACK_URL says where Keystone is");
    let (demo, admin) = (fake::access(&url, "demo"), fake::access(&url, "admin"));
    let network = Arc::new(kubewright_security_group::cloud::Internet);
    let run = format!("contract-{}", std::process::id());
    contract::hold(&contract::Lab { network, demo, admin, run }).await;
}
