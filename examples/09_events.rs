//! `ctx.event` tells people what the operator did, where `kubectl describe` shows it. It waits for nothing, and what is said again is
//! counted on the same Event. `docs/production.md` explains it.

use kube::CustomResource;
use kubewright::{
    Context, Controller, Error, EventType, Key, Outcome, Reconciler, command::Operator, testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Order", namespaced)]
struct OrderSpec {
    pizzas: u32,
}

struct Orders;

impl Reconciler for Orders {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(order) = ctx.get::<Order>(key) else { return Ok(Outcome::Done) };
        match order.spec.pizzas {
            0 => ctx.event(&*order, EventType::Warning, "Empty", "Nothing is ordered"),
            pizzas => ctx.event(&*order, EventType::Normal, "Baking", &format!("Baking {pizzas} pizzas")),
        }
        Ok(Outcome::Done)
    }
}

fn operator() -> Operator {
    let controller = || Controller::new("order", Orders).for_kind::<Order>();
    Operator::new("order", "0.1.0").definition::<Order>().controller(controller)
}

#[kubewright::test]
async fn an_order_tells_what_becomes_of_it(cluster: Cluster) {
    cluster.run(operator).await;
    let order = cluster.create(&Order::new("dinner", OrderSpec { pizzas: 0 })).await;
    cluster.settle().await;
    cluster.patch::<Order>("dinner", json!({"spec": {"pizzas": 2}})).await;
    cluster.settle().await;
    let events = cluster.events_of(&order).await;
    let texts = events.iter().map(|event| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        format!("{} {}: {}", text(&event.type_), text(&event.reason), text(&event.note))
    });
    assert_eq!(
        texts.collect::<Vec<_>>(),
        ["Warning Empty: Nothing is ordered", "Normal Baking: Baking 2 pizzas"]
    );
}
