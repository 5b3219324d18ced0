//! Of two replicas one works. When it dies, the other one works as soon as the lease has run out, and what was left undone is done then.
//! `docs/production.md` explains leader election, and `docs/testing.md` how a test has replicas.

use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering::Relaxed};

use kube::CustomResource;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Invoice", namespaced)]
struct InvoiceSpec {}

/// Counts the letters that are sent, by whichever replica.
struct Invoices(Arc<AtomicUsize>);

impl Reconciler for Invoices {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if ctx.get::<Invoice>(key).is_some() {
            self.0.fetch_add(1, Relaxed);
        }
        Ok(Outcome::Done)
    }
}

fn operator(letters: &Arc<AtomicUsize>) -> Operator {
    let letters = letters.clone();
    let controller = move || Controller::new("invoice", Invoices(letters.clone())).for_kind::<Invoice>();
    Operator::new("invoice", "0.1.0").definition::<Invoice>().controller(controller)
}

#[kubewright::test]
async fn one_replica_works_and_the_other_takes_over_when_it_dies(cluster: Cluster) {
    let letters = Arc::new(AtomicUsize::new(0));
    let operator = cluster.run(operator(&letters)).replicas(2).await;
    cluster.create(&Invoice::new("may", InvoiceSpec {})).await;
    cluster.eventually(async |_| letters.load(Relaxed) > 0).await;
    cluster.settle().await;
    assert_eq!(letters.load(Relaxed), 1, "one of the two works");

    operator.crash_leader().await;
    letters.store(0, Relaxed);
    cluster.create(&Invoice::new("june", InvoiceSpec {})).await;
    cluster.settle().await;
    assert_eq!(letters.load(Relaxed), 0, "the lease of the dead replica has not run out");
    cluster.eventually(async |_| letters.load(Relaxed) == 2).await;
}
