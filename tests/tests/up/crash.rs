//! `kubewright up --data`, killed while many clients write: what was acknowledged is there when it is started again.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use futures::future::join_all;
use futures::{TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use kubewright_tests::Up;
use serde_json::json;

/// How often it is killed, how long after it was started at the latest, and how many clients write until then.
const ROUNDS: u64 = 40;
const LONGEST: u64 = 1200;
const WRITERS: u64 = 24;
/// The objects of each writer.
const KEYS: u64 = 8;
/// The bytes of each object: with these the store writes a checkpoint in most rounds.
const SIZE: usize = 16 << 10;

/// What is known of an object: its value and resource version, or that it is not there.
type Known = Option<(u64, String)>;

/// What a writer knows of its objects.
#[derive(Default)]
struct Memory {
    acknowledged: BTreeMap<String, Known>,
    /// The write that was never answered: the value that it gives, or that it deletes.
    in_doubt: Option<(String, Option<u64>)>,
    writes: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the built command: cargo xtask test"]
async fn every_acknowledged_write_survives_kill_9_and_no_half_one() {
    let mut up = Up::start("crash", &["--nodes", "0", "--data", "data"]);
    let kubeconfig = std::fs::read_to_string(up.kubeconfig()).expect("a kubeconfig");
    let mut there: BTreeMap<String, Known> = BTreeMap::new();
    let (mut newest, mut writes) = (0, 0);
    for round in 0..ROUNDS {
        let client = client(&up).await;
        let watcher = tokio::spawn(watch(client.clone(), newest));
        let writers = (0..WRITERS).map(|writer| tokio::spawn(write(client.clone(), writer, there.clone())));
        let writers: Vec<_> = writers.collect();
        tokio::time::sleep(Duration::from_millis(random() % LONGEST)).await;
        up.kill();
        let memories: Vec<Memory> =
            join_all(writers).await.into_iter().map(|memory| memory.expect("no panic")).collect();
        let seen = watcher.await.expect("no panic");

        up.kill_and_start_again();
        let (found, version) = list(&up).await;
        assert!(version >= newest, "round {round}: resource versions go back from {newest} to {version}");
        assert!(version >= seen, "round {round}: a watcher has seen {seen}, and {version} is the newest");
        writes += memories.iter().map(|memory| memory.writes).sum::<u64>();
        check(round, &memories, &found, version);
        (there, newest) = (found, version);
    }
    let (before, after) = [&kubeconfig, &std::fs::read_to_string(up.kubeconfig()).expect("a kubeconfig")]
        .map(|text| text.lines().filter(|line| !line.contains("server:")).collect::<String>())
        .into();
    assert_eq!(before, after, "the authority and the token were kept");
    assert!(writes > ROUNDS * WRITERS, "{writes} writes are no load");
}

/// Compares what is there with what every writer knows.
fn check(round: u64, memories: &[Memory], found: &BTreeMap<String, Known>, version: u64) {
    let mut expected = 0;
    for memory in memories {
        for (name, known) in &memory.acknowledged {
            let is = found.get(name).cloned().flatten();
            expected += u64::from(is.is_some());
            if let Some((_, own)) = known {
                assert!(own.parse::<u64>().expect("a number") <= version);
            }
            if is == *known {
                continue;
            }
            let doubt = memory.in_doubt.as_ref().filter(|(doubted, _)| doubted == name);
            let Some((_, value)) = doubt else {
                panic!("round {round}: {name} was acknowledged as {known:?}, and is {is:?}");
            };
            assert_eq!(is.map(|(value, _)| value), *value, "round {round}: {name} is neither old nor new");
        }
    }
    assert_eq!(found.len() as u64, expected, "round {round}: there is something that nobody has written");
}

/// Creates, replaces and deletes objects until the server is gone.
async fn write(client: Client, writer: u64, there: BTreeMap<String, Known>) -> Memory {
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut memory = Memory::default();
    for key in 0..KEYS {
        let name = format!("writer-{writer}-{key}");
        let known = there.get(&name).cloned().flatten();
        memory.acknowledged.insert(name, known);
    }
    loop {
        let dice = random();
        let name = format!("writer-{writer}-{}", dice % KEYS);
        let known = memory.acknowledged[&name].clone();
        let value = dice >> 8;
        let (next, done) = match &known {
            None => {
                let object = config_map(&name, value, None);
                (Some(value), config_maps.create(&PostParams::default(), &object).await.map(Some))
            }
            Some(_) if dice.is_multiple_of(5) => {
                (None, config_maps.delete(&name, &DeleteParams::default()).await.map(|_| None))
            }
            Some((_, version)) => {
                let object = config_map(&name, value, Some(version));
                (Some(value), config_maps.replace(&name, &PostParams::default(), &object).await.map(Some))
            }
        };
        match done {
            Ok(object) => {
                let known = object.map(|object| (value, object.resource_version().expect("a version")));
                memory.acknowledged.insert(name, known);
                memory.writes += 1;
            }
            Err(kube::Error::Api(status)) => panic!("{name} is {known:?}: {status:?}"),
            Err(_) => {
                memory.in_doubt = Some((name, next));
                return memory;
            }
        }
    }
}

/// Watches until the server is gone; gives the newest resource version that it was told of.
async fn watch(client: Client, from: u64) -> u64 {
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut newest = from;
    let Ok(events) = config_maps.watch(&WatchParams::default(), &from.to_string()).await else {
        return newest;
    };
    pin_mut!(events);
    while let Ok(Some(event)) = events.try_next().await {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) = event
        {
            newest = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(newest);
        }
    }
    newest
}

/// All objects of writers, each of which must be whole, and the resource version of the list.
async fn list(up: &Up) -> (BTreeMap<String, Known>, u64) {
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client(up).await);
    let list = config_maps.list(&ListParams::default()).await.expect("a list");
    let version = list.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
    let found = list.items.iter().filter(|object| object.name_any().starts_with("writer-")).map(|object| {
        let data = object.data.as_ref().expect("data");
        let value: u64 = data["value"].parse().expect("a number");
        assert_eq!(
            data["padding"],
            padding(value),
            "{} is half of one and half of another",
            object.name_any()
        );
        (object.name_any(), Some((value, object.resource_version().expect("a version"))))
    });
    (found.collect(), version.expect("a version"))
}

fn config_map(name: &str, value: u64, version: Option<&str>) -> ConfigMap {
    kubewright_objects::from_value(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "resourceVersion": version},
        "data": {"value": value.to_string(), "padding": padding(value)}
    }))
    .expect("a ConfigMap")
}

/// A text that only one value has.
fn padding(value: u64) -> String {
    let digits = format!("{value:016x}");
    digits.repeat(SIZE / digits.len())
}

async fn client(up: &Up) -> Client {
    let kubeconfig = Kubeconfig::read_from(up.kubeconfig()).expect("a kubeconfig");
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

/// A number that is another one in every run: where it is killed is not to be the same each time.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
