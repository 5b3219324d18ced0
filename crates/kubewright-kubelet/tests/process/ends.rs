//! How containers end, and that nothing is left of them.

use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};

use kubewright_kubelet::container::log::{self, Options};
use kubewright_kubelet::container::{Container, Signal, StartError};

use futures::TryStreamExt;

use crate::support::{Bench, launcher};

/// Waits until a container has written so many lines.
async fn lines(bench: &Bench, container: &dyn Container, count: usize) {
    let options = Options { follow: true, ..Options::default() };
    let mut log = Box::pin(log::read(&bench.directory.join("log"), options, container.log()).expect("a log"));
    let mut found = 0;
    while found < count {
        let piece = log.try_next().await.expect("a log").expect("a line");
        found += piece.iter().filter(|byte| **byte == b'\n').count();
    }
}

/// The processes of this machine whose arguments hold a word.
fn processes(word: &str) -> usize {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    all.filter(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
    .count()
}

pub(crate) async fn a_program_decides_what_a_signal_does() {
    let bench = Bench::new().await;
    let script = "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 1000 & wait $!; done";
    let container = bench.start(bench.script(script)).await;
    lines(&bench, &*container, 1).await;
    container.signal(Signal::TERMINATE);
    let exit = container.exited().await;
    assert_eq!((exit.code, exit.signal), (5, None));
    assert_eq!(crate::support::read(&bench.directory.join("log"), Options::default()).await, "up\nbye\n");
}

pub(crate) async fn the_first_process_hears_no_signal_that_it_does_not_handle() {
    let bench = Bench::new().await;
    if !bench.has("pid") {
        println!("  skipped: this machine allows no pid namespaces");
        return;
    }
    let container = bench.start(bench.spec(&["sleep", "1003"])).await;
    container.signal(Signal::TERMINATE);
    let mut session = container
        .exec(vec!["true".to_owned()], crate::support::OUTPUT, None)
        .await
        .expect("it is there still");
    crate::support::output(&mut session).await;
    container.signal(Signal::KILL);
    let exit = container.exited().await;
    assert_eq!((exit.code, exit.signal), (137, Some(9)));
}

pub(crate) async fn all_processes_end_with_the_first() {
    let bench = Bench::new().await;
    let waiting = "setsid sh -c 'echo up; while :; do sleep 1000; done' 1004.5 &";
    let script = format!("{waiting} ({waiting}) ; read line; exit 0");
    let mut spec = bench.script(&script);
    spec.stdin = true;
    spec.stdin_once = true;
    let container = bench.start(spec).await;
    lines(&bench, &*container, 2).await;
    assert!(processes("1004.5") >= 2);
    let streams = kubewright_kubelet::container::Streams { stdin: true, ..Default::default() };
    drop(container.attach(streams).await.expect("a session"));
    assert_eq!(container.exited().await.code, 0);
    assert_eq!(processes("1004.5"), 0);
}

pub(crate) async fn closing_a_runtime_ends_its_containers_and_starts_no_more() {
    let bench = Bench::new().await;
    let container = bench.start(bench.spec(&["sleep", "1005.5"])).await;
    bench.runtime.close().await;
    assert_eq!(container.exited().await.code, 137);
    assert_eq!(processes("1005.5"), 0);
    let refusal = bench.refusal(bench.spec(&["true"])).await;
    assert_eq!(refusal, StartError::Create("the runtime is closed".to_owned()));
    assert!(!bench.directory.join("containers/test").exists());
}

pub(crate) async fn names_are_given_once_and_are_plain() {
    let bench = Bench::new().await;
    let container = bench.start(bench.spec(&["sleep", "1000"])).await;
    let taken = bench.refusal(bench.spec(&["true"])).await;
    assert_eq!(taken, StartError::Create("a container is called \"test\" already".to_owned()));
    container.signal(Signal::KILL);
    container.exited().await;
    assert_eq!(bench.run(bench.spec(&["true"])).await.0.code, 0);
    for id in ["", "../up", "a/b", "é"] {
        let mut spec = bench.spec(&["true"]);
        spec.id = id.to_owned();
        assert!(matches!(bench.refusal(spec).await, StartError::Create(_)), "{id}");
    }
}

/// What the process does that [`containers_do_not_outlive_a_runtime_that_is_killed`] kills.
pub(crate) async fn start_and_wait(word: &str) {
    // A test that fails does not leave this behind.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let bench = Bench::new().await;
    let waiting = "echo up; while :; do sleep 1000; done";
    let script = format!("setsid sh -c '{waiting}' {word} & {waiting}");
    let container = bench.start(bench.spec(&["sh", "-c", &script, word])).await;
    lines(&bench, &*container, 2).await;
    println!("{}", bench.directory.display());
    container.exited().await;
}

pub(crate) async fn containers_do_not_outlive_a_runtime_that_is_killed() {
    if !Bench::new().await.has("pid") {
        println!("  skipped: without pid namespaces what left its process group may stay");
        return;
    }
    let word = format!("1006.{}", std::process::id());
    let mut command = Command::new(launcher());
    let mut runtime =
        command.args([crate::RUN, &word]).stdout(Stdio::piped()).spawn().expect("this program, once more");
    let mut lines = std::io::BufReader::new(runtime.stdout.take().expect("its output"));
    let mut directory = String::new();
    lines.read_line(&mut directory).expect("a directory");
    assert!(processes(&word) >= 3, "two of the container, and the runtime");
    let shims = shims(runtime.id());
    runtime.kill().expect("it runs");
    runtime.wait().expect("it ran");
    for shim in shims {
        // Readable once it has ended.
        rustix::event::poll(&mut [rustix::event::PollFd::new(&shim, rustix::event::PollFlags::IN)], None)
            .expect("it ends");
    }
    assert_eq!(processes(&word), 0);
    let directory = Path::new(directory.trim());
    assert!(!directory.join("containers/test").exists());
    fs::remove_dir_all(directory).expect("its own directory");
}

/// The children of a process, as something to wait for.
fn shims(runtime: u32) -> Vec<rustix::fd::OwnedFd> {
    let threads = fs::read_dir(format!("/proc/{runtime}/task")).expect("threads").flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers: Vec<i32> = children
        .flat_map(|line| line.split_whitespace().map(|n| n.parse().expect("a number")).collect::<Vec<_>>())
        .collect();
    assert_eq!(numbers.len(), 1);
    let open = |number: i32| {
        let process = rustix::process::Pid::from_raw(number).expect("a process");
        rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).expect("a process")
    };
    numbers.into_iter().map(open).collect()
}
