//! A validating webhook refuses a Room that loses seats, in Kubernetes' own words. In a test the API server calls it in the process, without
//! sockets and certificates. `docs/webhooks.md` explains it.

use kube::{Api, CustomResource, api::Patch};
use kubewright::{
    command::Operator,
    testing::Cluster,
    webhook::{Denied, FieldError, Request, ValidationResult, Validator, Warnings, Webhook, Webhooks},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Room", namespaced)]
struct RoomSpec {
    seats: u32,
}

struct Seats;

impl Validator<Room> for Seats {
    async fn validate_update(&self, _: &Request, old: &Room, new: &Room) -> ValidationResult {
        if new.spec.seats < old.spec.seats {
            let why = format!("there are {} already", old.spec.seats);
            return Err(Denied::invalid(new, &[FieldError::invalid("spec.seats", new.spec.seats, why)]));
        }
        Ok(Warnings::none())
    }
}

fn operator() -> Operator {
    let webhooks = Webhooks::new("room").add(Webhook::validating::<Room>(Seats));
    Operator::new("room", "0.1.0").definition::<Room>().webhooks(webhooks)
}

#[kubewright::test]
async fn a_room_never_loses_seats(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&Room::new("hall", RoomSpec { seats: 10 })).await;
    cluster.patch::<Room>("hall", json!({"spec": {"seats": 12}})).await;

    let rooms = Api::<Room>::namespaced(cluster.client(), cluster.namespace());
    let fewer = Patch::Merge(json!({"spec": {"seats": 11}}));
    let refused =
        rooms.patch("hall", &Default::default(), &fewer).await.expect_err("fewer seats").to_string();
    assert!(refused.contains("spec.seats: Invalid value: 11: there are 12 already"), "{refused}");
    assert_eq!(cluster.get::<Room>("hall").await.spec.seats, 12);
}
