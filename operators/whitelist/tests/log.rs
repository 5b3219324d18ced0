//! What the operator logs. A test program of its own: which log lines are wanted is a fact of the whole process, which
//! tests on other threads would change.

use std::{
    io::{self, Write},
    sync::Arc,
};

use kubewright::testing::Cluster;
use kubewright_whitelist::{WhiteList, WhiteListSpec, operator};
use parking_lot::Mutex;

#[kubewright::test]
async fn wl_05_the_log_says_what_is_created(cluster: Cluster) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    cluster.run(operator).await;
    cluster.create(&WhiteList::new("whitelist-sample", WhiteListSpec::default())).await;
    cluster.settle().await;
    let text = String::from_utf8(log.0.lock().clone()).expect("text");
    let told =
        text.lines().filter(|line| line.ends_with("Creating Deployment default/whitelist-sample-deployment"));
    assert_eq!(told.count(), 1, "{text}");
    assert!(!text.contains("Updating Deployment"), "{text}");
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
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
