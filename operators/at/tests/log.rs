//! What the operator logs. A test program of its own: which log lines are wanted is a fact of the whole process, which
//! tests on other threads would change.

#[allow(dead_code, reason = "the lab serves the other tests too")]
mod lab;

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use kubewright::testing::Cluster;
use kubewright_at::operator;
use lab::{at, done};
use serde_json::json;

/// AT-14: the lines of the book's client-go variant, in its words; the flag `--kubeconfig` is that of every operator here.
#[kubewright::test]
async fn at_14_the_log_tells_what_the_book_tells(cluster: Cluster) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    cluster.run(operator).await;
    cluster.create(&at("example-at", json!({}))).await;
    done(&cluster, "example-at").await;
    let text = String::from_utf8(log.0.lock().expect("no panic before").clone()).expect("text");
    for (line, times) in [
        ("instance default/example-at: checking schedule \"2023-07-14T10:12:00Z\"", 1..10),
        ("instance default/example-at: it's time! Ready to execute: echo YAY", 1..2),
        ("instance default/example-at: pod launched: name=example-at-pod", 1..2),
    ] {
        let told = text.lines().filter(|said| said.ends_with(line)).count();
        assert!(times.contains(&told), "{told} times {line}: {text}");
    }
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic before").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
