//! What the operator logs.

use kubewright::testing::{Cluster, Log};
use kubewright_at::operator;
use serde_json::json;

use super::lab::{at, done};

/// AT-14: the lines of the book's client-go variant, in its words; the flag `--kubeconfig` is that of every operator here.
#[kubewright::test]
async fn at_14_the_log_tells_what_the_book_tells(cluster: Cluster) {
    let log = Log::keep();
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({}))).await;
    done(&cluster, "example-at").await;
    let told = log.of("kubewright_at");
    for (line, times) in [
        ("instance default/example-at: checking schedule \"2023-07-14T10:12:00Z\"", 1..10),
        ("instance default/example-at: it's time! Ready to execute: echo YAY", 1..2),
        ("instance default/example-at: pod launched: name=example-at-pod", 1..2),
    ] {
        let said = told.iter().filter(|said| *said == line).count();
        assert!(times.contains(&said), "{said} times {line}: {told:#?}");
    }
}
