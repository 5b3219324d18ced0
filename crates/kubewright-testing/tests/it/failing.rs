//! Operators whose reconciles fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::command::Operator;
use kubewright::testing::Cluster;
use kubewright::testing::admin::{ApiFault, Match, Rule, Schedule, Verb};
use kubewright::testing::harness::{self, Faults, Seeds, Test};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

use crate::copier::{self, secret};

const TEST: Test = Test {
    package: "kubewright-testing",
    module: "it::failing",
    name: "it",
    controllers: "",
    kubernetes: None,
    nodes: 0,
    namespaces: &[],
    seeds: Seeds::One(0),
    faults: Faults::None,
};

/// Fails for each Secret, in one of two ways, until it is told to succeed.
struct Failing {
    error: fn() -> Error,
    succeeds: Arc<AtomicBool>,
}

impl Reconciler for Failing {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        match ctx.get::<Secret>(key) {
            Some(_) if !self.succeeds.load(Ordering::Relaxed) => Err((self.error)()),
            _ => Ok(Outcome::Done),
        }
    }
}

fn failing(
    error: fn() -> Error,
    succeeds: &Arc<AtomicBool>,
) -> impl Fn() -> Operator + Send + Sync + 'static {
    let succeeds = Arc::clone(succeeds);
    move || {
        let succeeds = Arc::clone(&succeeds);
        let controller = move || {
            let reconciler = Failing { error, succeeds: Arc::clone(&succeeds) };
            Controller::new("secrets", reconciler).for_kind::<Secret>()
        };
        Operator::new("failing", "1.0").controller(controller)
    }
}

fn out_of_luck() -> Error {
    Error::new("out of luck")
}

/// Nothing is asserted, and the operator has no finalizer that would stay.
#[test]
fn a_reconcile_that_fails_for_ever_fails_a_test_that_asserts_nothing() {
    for faults in [Faults::None, Faults::Only(&[])] {
        let run = || {
            harness::run(&Test { faults, ..TEST }, async |cluster: Cluster| {
                cluster.run(failing(out_of_luck, &Arc::default())).await;
                cluster.create(&secret("a", &["key"])).await;
                cluster.settle().await;
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it fails");
        let text = panic.downcast_ref::<String>().expect("a text");
        assert_eq!(
            text,
            "the operator failing fails again and again: controller secrets, default/a: out of luck"
        );
    }
}

#[kubewright::test]
async fn a_test_that_wants_a_failing_operator_is_told_what_fails(cluster: Cluster) {
    let succeeds = Arc::default();
    cluster.run(failing(out_of_luck, &succeeds)).await;
    assert_eq!(cluster.settle_with_failures().await, []);
    cluster.create(&secret("a", &["key"])).await;
    let failing = cluster.settle_with_failures().await;
    assert_eq!((failing.len(), &*failing[0].key.name, &*failing[0].error), (1, "a", "out of luck"));

    // What stood in the way is gone: it is found out by the next try, which a test need not wait for by itself.
    succeeds.store(true, Ordering::Relaxed);
    cluster.settle().await;
}

#[kubewright::test]
async fn what_is_not_tried_again_does_not_fail_a_test(cluster: Cluster) {
    cluster.run(failing(|| Error::terminal("no use"), &Arc::default())).await;
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
}

#[kubewright::test]
async fn who_fails_because_of_a_fault_is_not_blamed_and_tries_once_more_when_it_is_over(cluster: Cluster) {
    cluster.run(copier::operator()).await;
    let error = ApiFault::Error { code: 500, reason: None, message: None };
    let copies = Match::resource("configmaps").verbs([Verb::Patch]);
    let admin = cluster.admin().expect("the admin");
    let fault = admin.inject(Rule::new(error).on(copies).at(Schedule::always()));
    cluster.create(&secret("a", &["key"])).await;
    cluster.settle().await;
    assert!(!cluster.exists::<ConfigMap>("a").await);
    admin.remove_fault(fault);
    cluster.settle().await;
    assert!(cluster.exists::<ConfigMap>("a").await);
}
