//! Events: how many are written, what they say, and who waits for them.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{CancellationToken, Context, Controller, EventType, Key, NewEvent, Outcome};
use serde_json::{Value, json};

use crate::{
    harness::{does, run},
    lab::Lab,
};

/// A controller named `test` that tells all of this of each ConfigMap, in one reconcile.
fn telling(tell: impl Fn(&Context, &ConfigMap) + Clone + Send + Sync + 'static) -> Controller {
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (tell, ctx, key) = (tell.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            if let Some(object) = ctx.get::<ConfigMap>(&key) {
                tell(&ctx, &object);
            }
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler).for_kind::<ConfigMap>()
}

fn moved_to_many_places(ctx: &Context, map: &ConfigMap) {
    for place in 0..40 {
        ctx.event(map, EventType::Normal, "Moved", &format!("to place {place}"));
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_differ_in_their_note_alone_become_one_from_the_tenth_on() {
    let lab = Lab::new().await;
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [telling(moved_to_many_places)]);
    lab.settle().await;
    let events = lab.events_of("test", "events").await;
    assert_eq!(events.len(), 10, "{events:?}");
    let combined = events.iter().find(|event| event["note"] == "(combined from similar events): to place 9");
    // 25 writes: nine by themselves, one that begins the series, and fifteen that count.
    assert_eq!(combined.map(|event| &event["series"]["count"]), Some(&json!(16)), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn the_older_form_is_limited_in_the_same_way_and_says_what_came_last() {
    let lab = Lab::new().await;
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [telling(moved_to_many_places).core_events()]);
    lab.settle().await;
    let events = lab.events_of("test", "core events").await;
    assert_eq!(events.len(), 10, "{events:?}");
    let combined = events.iter().find(|event| event["count"] == 16);
    assert_eq!(
        combined.map(|event| &event["message"]),
        Some(&json!("(combined from similar events): to place 24")),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_says_what_was_done_and_to_which_second_object() {
    let lab = Lab::new().await;
    lab.put("configmaps", "a", json!({})).await;
    let tell = |ctx: &Context, map: &ConfigMap| {
        let event = NewEvent::new(EventType::Normal, "Copied", "to b");
        let mut copy = map.clone();
        copy.metadata.name = Some("b".into());
        ctx.record(map, event.action("Copy").related(&copy));
    };
    let _running = run(&lab, [telling(tell)]);
    lab.settle().await;
    let events = lab.events_of("test", "events").await;
    let told = events.first().cloned().unwrap_or_default();
    let parts: [&Value; 3] = [&told["action"], &told["regarding"]["name"], &told["related"]["name"]];
    assert_eq!(parts, [&json!("Copy"), &json!("a"), &json!("b")], "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_was_told_before_a_shutdown_is_written_before_it_ends() {
    let lab = Lab::new().await;
    lab.put("configmaps", "a", json!({})).await;
    let (mut manager, shutdown) = (lab.manager(), CancellationToken::new());
    let stop = shutdown.clone();
    manager.add(telling(move |ctx, map| {
        for reason in ["First", "Second", "Third"] {
            ctx.event(map, EventType::Normal, reason, "on the way out");
        }
        stop.cancel();
    }));
    let backlog = manager.backlog().clone();
    assert!(manager.run(shutdown).await.is_ok());
    assert!(backlog.is_empty(std::time::Duration::MAX));
    assert_eq!(lab.events_of("test", "events").await.len(), 3);
}
