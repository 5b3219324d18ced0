//! Probes as event sources.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{
    Context, Controller, Key, Outcome, World,
    probes::{HttpGet, Probes},
    sources::{Every, Jitter},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::Instant,
};

use crate::{
    harness::{Log, does, run},
    lab::{Lab, Only},
};

/// Shows what is found of each Pod as a condition.
fn showing(probes: &Probes<String>, log: &Log<String>) -> Controller {
    let (probes, keys, log) = (probes.clone(), probes.keys(), log.clone());
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (probes, log, ctx, key) = (probes.clone(), log.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(pod) = ctx.get::<Pod>(&key) else {
                probes.forget(&key);
                return Ok(Outcome::Done);
            };
            probes.observe(&key, key.name.clone());
            if let Some(report) = probes.report(&key) {
                log.push(format!("{} {:?}", key.name, report.result));
                ctx.set_condition(&*pod, &report.condition("Answers")).await?;
            }
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler).for_kind::<Pod>().source(keys)
}

#[tokio::test(start_paused = true)]
async fn what_a_probe_finds_reaches_the_reconciler_when_it_changes() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    let (answer, asked) = (Arc::new(Mutex::new(Ok("fine".to_owned()))), Log::new());
    let (answers, asks, start) = (answer.clone(), asked.clone(), Instant::now());
    let every = Every::new(Duration::from_secs(30)).jitter(Jitter(0.1));
    let probes = Probes::new(&World::simulated(3), every, Duration::from_secs(5), move |name: String| {
        let (answer, asks) = (answers.lock().clone(), asks.clone());
        async move {
            asks.push((name.clone(), start.elapsed()));
            if name == "hangs" { std::future::pending().await } else { answer }
        }
    });
    lab.put("pods", "a", json!({})).await;
    lab.put("pods", "hangs", json!({})).await;
    let _running = run(&lab, [showing(&probes, &log)]);
    lab.settle().await;
    assert!(log.take().iter().all(|line| line == "a Ok(\"fine\")"));
    tokio::time::sleep(Duration::from_secs(600)).await;
    let lines = log.take();
    assert!(lines.iter().all(|line| line.starts_with("hangs Err(\"no answer within 5s")), "{lines:?}");
    assert!(lines.len() <= 2, "once, and once more for its own condition: {lines:?}");
    let times = |name: &str| asked.entries().iter().filter(|(asked, _)| asked == name).count();
    assert!((18..=24).contains(&times("a")), "{}", times("a"));
    assert!((15..=20).contains(&times("hangs")), "{}", times("hangs"));
    *answer.lock() = Err("on fire".to_owned());
    tokio::time::sleep(Duration::from_secs(40)).await;
    let pod = lab.stored("pods", "a").await.unwrap_or_default();
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == "Answers").unwrap_or(&pod);
    assert_eq!(
        [&condition["type"], &condition["status"], &condition["message"]],
        ["Answers", "False", "on fire"]
    );
    lab.remove("pods", "a").await;
    lab.settle().await;
    let before = times("a");
    lab.pass(Duration::from_secs(600)).await;
    assert_eq!(times("a"), before, "nobody asks for what is gone");
}

#[tokio::test]
async fn a_get_is_well_by_its_status_and_tells_the_beginning_of_the_answer() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(async move {
        for (status, body) in [("200 OK", "fine".to_owned()), ("503 Service Unavailable", "x".repeat(1000))] {
            let (mut stream, _) = listener.accept().await?;
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await?;
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let uri: http::Uri = format!("http://{address}/healthz").parse().unwrap_or_default();
    let get = HttpGet::default();
    assert_eq!(get.get(uri.clone()).await, Ok("200 OK: fine".to_owned()));
    let ill = get.get(uri.clone()).await.err().unwrap_or_default();
    assert!(ill.starts_with("503 Service Unavailable: xxx") && ill.len() < 300, "{ill}");
    serving.await??;
    assert!(get.get(uri).await.is_err(), "nobody listens any more");
    Ok(())
}
