//! What containers write, and how it is read back.

use std::fs;

use futures::TryStreamExt;
use kubewright_kubelet::container::Signal;
use kubewright_kubelet::container::log::{self, Options, Stream};

use crate::support::{Bench, read};

pub(crate) async fn a_log_is_in_the_format_of_the_cri() {
    let bench = Bench::new().await;
    let mut spec = bench.script("echo one; echo two >&2; printf three");
    spec.log = bench.directory.join("pods/a_b_c/box/0.log");
    let path = spec.log.clone();
    bench.run(spec).await;
    let text = fs::read_to_string(&path).expect("a log");
    let mut rest: Vec<String> = text
        .lines()
        .map(|line| {
            let (time, rest) = line.split_once(' ').expect("a time");
            assert!(time.parse::<jiff::Timestamp>().is_ok() && time.ends_with('Z'), "{time}");
            rest.to_owned()
        })
        .collect();
    rest.sort();
    assert_eq!(rest, ["stderr F two", "stdout F one", "stdout P three"]);
    let stdout = Options { stream: Some(Stream::Stdout), tail: Some(2), ..Options::default() };
    assert!(["one\nthree", "three"].contains(&read(&path, stdout).await.as_str()));
}

pub(crate) async fn following_ends_with_the_container_and_misses_nothing() {
    let bench = Bench::new().await;
    let mut spec = bench.script("read line; echo got $line; read line; echo got $line; printf end");
    spec.stdin = true;
    let path = spec.log.clone();
    let container = bench.start(spec).await;
    let options = Options { follow: true, ..Options::default() };
    let mut stream = Box::pin(log::read(&path, options, container.log()).expect("a log"));
    let streams = kubewright_kubelet::container::Streams { stdin: true, ..Default::default() };
    let mut session = container.attach(streams).await.expect("a session");
    let stdin = session.stdin.as_mut().expect("standard input");
    for word in ["a", "b"] {
        tokio::io::AsyncWriteExt::write_all(stdin, format!("{word}\n").as_bytes()).await.expect("it reads");
        let piece = stream.try_next().await.expect("a log").expect("a piece");
        assert_eq!(piece, format!("got {word}\n"));
    }
    assert_eq!(stream.try_next().await.expect("a log").expect("a piece"), "end");
    assert_eq!(stream.try_next().await.expect("a log"), None);
}

pub(crate) async fn a_follower_survives_rotation_and_old_files_go() {
    let bench = Bench::new().await;
    // 80 MB in lines of 20 kB.
    let script = "head -c 80000000 /dev/zero | tr '\\0' x | fold -w 20000";
    let spec = bench.script(&format!("read go; {script}"));
    let spec = kubewright_kubelet::container::Spec { stdin: true, ..spec };
    let path = spec.log.clone();
    let container = bench.start(spec).await;
    let options = Options { follow: true, ..Options::default() };
    let mut stream = Box::pin(log::read(&path, options, container.log()).expect("a log"));
    let streams = kubewright_kubelet::container::Streams { stdin: true, ..Default::default() };
    let mut session = container.attach(streams).await.expect("a session");
    let stdin = session.stdin.as_mut().expect("standard input");
    tokio::io::AsyncWriteExt::write_all(stdin, b"go\n").await.expect("it reads");
    let mut lines = 0;
    while let Some(piece) = stream.try_next().await.expect("a log") {
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(container.exited().await.code, 0);
    let files: Vec<u64> = fs::read_dir(&bench.directory)
        .expect("a folder")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log"))
        .map(|entry| entry.metadata().expect("a file").len())
        .collect();
    assert_eq!(files.len(), 5);
    assert!(files.iter().all(|size| *size <= 10 << 20), "{files:?}");
    // A follower may fall behind by as much as is kept, and no further than that.
    assert!((2000..=4000).contains(&lines), "{lines}");
    log::remove(&path).expect("it goes");
    assert!(!path.with_extension("1").exists() && !path.exists());
}

pub(crate) async fn a_container_that_nobody_reads_does_not_wait() {
    let bench = Bench::new().await;
    let container = bench.start(bench.script("head -c 3000000 /dev/zero; exec sleep 1000")).await;
    let streams = crate::support::OUTPUT;
    let unread = container.attach(streams).await.expect("a session");
    let mut grown = 0;
    let options = Options { follow: true, ..Options::default() };
    let mut stream =
        Box::pin(log::read(&bench.directory.join("log"), options, container.log()).expect("a log"));
    while grown < 2_900_000 {
        grown += stream.try_next().await.expect("a log").expect("more").len();
    }
    container.signal(Signal::KILL);
    container.exited().await;
    drop(unread);
}
