//! A Timer has two versions: v1 says minutes, v2 seconds. Objects are stored as v2, and a webhook converts between the two. The seconds that
//! v1 cannot hold are kept in an annotation. `docs/webhooks.md` explains it.

use kube::CustomResource;
use kubewright::{
    command::Operator,
    testing::Cluster,
    webhook::{Conversion, Webhooks},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Timer", root = "TimerV1", namespaced)]
struct TimerV1Spec {
    minutes: u32,
}

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v2", kind = "Timer", root = "TimerV2", namespaced)]
struct TimerV2Spec {
    seconds: u32,
}

impl From<TimerV1> for TimerV2 {
    fn from(old: TimerV1) -> Self {
        Self { metadata: old.metadata, spec: TimerV2Spec { seconds: old.spec.minutes * 60 } }
    }
}

impl From<TimerV2> for TimerV1 {
    fn from(new: TimerV2) -> Self {
        Self { metadata: new.metadata, spec: TimerV1Spec { minutes: new.spec.seconds / 60 } }
    }
}

fn conversion() -> Conversion<TimerV2> {
    Conversion::hub::<TimerV2>().spoke::<TimerV1>().keeping("example.com/conversion")
}

#[kubewright::test]
async fn both_versions_are_the_same_object(cluster: Cluster) {
    let webhooks = Webhooks::new("timer").convert(conversion());
    let operator = Operator::new("timer", "0.1.0").definition::<TimerV2>().definition::<TimerV1>();
    cluster.run(operator.webhooks(webhooks)).await;
    cluster.create(&TimerV1::new("tea", TimerV1Spec { minutes: 3 })).await;
    assert_eq!(cluster.get::<TimerV2>("tea").await.spec.seconds, 180);
    cluster.create(&TimerV2::new("egg", TimerV2Spec { seconds: 270 })).await;
    assert_eq!(cluster.get::<TimerV1>("egg").await.spec.minutes, 4);
}

#[test]
fn nothing_is_lost_on_the_way_to_the_old_version_and_back() {
    conversion().assert_round_trips([TimerV2::new("egg", TimerV2Spec { seconds: 270 })]);
    conversion().assert_spoke_round_trips([TimerV1::new("tea", TimerV1Spec { minutes: 3 })]);
}
