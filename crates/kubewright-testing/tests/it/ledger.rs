//! What an operator does outside of the cluster is noted by a fake.

use std::panic::{AssertUnwindSafe, catch_unwind};

use k8s_openapi::api::core::v1::Secret;
use kubewright::command::Operator;
use kubewright::testing::harness::{self, Faults, Seeds, Test};
use kubewright::testing::{Cluster, Ledger};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

use crate::copier::secret;

const TEST: Test = Test {
    package: "kubewright-testing",
    module: "it::ledger",
    name: "it",
    controllers: "",
    kubernetes: None,
    nodes: 0,
    namespaces: &[],
    seeds: Seeds::One(0),
    faults: Faults::None,
};

/// Sends a letter for each Secret: once, as it knows, or each time that it looks.
struct Letters {
    ledger: Ledger,
    looks_first: bool,
}

impl Reconciler for Letters {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let letter = format!("letter about {key}");
        let is_sent = self.ledger.effects().contains(&letter);
        if ctx.get::<Secret>(key).is_some() && !(self.looks_first && is_sent) {
            self.ledger.once(letter);
        }
        Ok(Outcome::Done)
    }
}

async fn two_looks(cluster: Cluster, looks_first: bool) {
    let ledger = cluster.ledger();
    let operator = cluster.run(move || {
        let ledger = ledger.clone();
        let controller = move || {
            Controller::new("letters", Letters { ledger: ledger.clone(), looks_first }).for_kind::<Secret>()
        };
        Operator::new("letters", "1.0").controller(controller)
    });
    let operator = operator.await;
    cluster.create(&secret("login", &["password"])).await;
    cluster.settle().await;
    operator.restart().await;
    cluster.settle().await;
}

fn failure(looks_first: bool) -> Option<String> {
    let run = || harness::run(&TEST, |cluster| two_looks(cluster, looks_first));
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn an_outside_effect_that_is_repeated_fails_the_test() {
    let why = failure(false).expect("a failure");
    assert!(
        why.starts_with("outside effects are not repeated: letter about default/login was done at "),
        "{why}"
    );
    assert_eq!(failure(true), None);
}
