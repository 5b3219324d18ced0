//! Commands in containers, and those who are attached to them.

use std::time::Duration;

use kubewright_kubelet::container::{ExecError, Identity, Signal, Spec, Streams, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Bench, OUTPUT, output};

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn shell(script: &str) -> Vec<String> {
    command(&["/bin/sh", "-c", script])
}

pub(crate) async fn a_command_runs_beside_the_program_in_its_namespaces() {
    let bench = Bench::new().await;
    let mut spec = bench.script("exec sleep 1000");
    spec.environment.insert("WHO".to_owned(), "me".to_owned());
    spec.working_directory = "/usr".into();
    if bench.has("user") {
        spec.identity = Identity { uid: 4242, gid: 4242, groups: Vec::new() };
    }
    let (user, host) = if bench.has("user") { ("4242", "box") } else { ("0", "") };
    let container = bench.start(spec).await;
    let script = "echo $WHO $(pwd) $(id -u) $(test \"$0\" = box && hostname); echo err >&2; exit 3";
    let mut session =
        container.exec(command(&["sh", "-c", script, host]), OUTPUT, None).await.expect("it runs");
    assert_eq!(output(&mut session).await.trim_end(), format!("me /usr {user} {host}").trim_end());
    let mut text = String::new();
    session.stderr.as_mut().expect("standard error").read_to_string(&mut text).await.expect("text");
    assert_eq!(text, "err\n");
    let exit = session.exit.await.expect("it ran");
    assert_eq!((exit.code, exit.signal), (3, None));
    container.signal(Signal::KILL);
    assert_eq!(container.exited().await.code, 137);
    let refused = container.exec(shell("true"), OUTPUT, None).await.err();
    assert_eq!(refused, Some(ExecError::NotRunning));
}

pub(crate) async fn a_command_reads_its_input_to_the_end() {
    let bench = Bench::new().await;
    let container = bench.start(bench.spec(&["sleep", "1000"])).await;
    let streams = Streams { stdin: true, ..OUTPUT };
    let mut session = container.exec(command(&["cat"]), streams, None).await.expect("it runs");
    let text = "x".repeat(1 << 20);
    let mut stdin = session.stdin.take().expect("standard input");
    let sent = text.clone();
    let writer = tokio::spawn(async move { stdin.write_all(sent.as_bytes()).await });
    assert_eq!(output(&mut session).await, text);
    writer.await.expect("no panic").expect("it reads");
    assert_eq!(session.exit.await.expect("it ran").code, 0);
}

pub(crate) async fn a_command_that_cannot_start_is_told_in_the_words_of_runc() {
    let bench = Bench::new().await;
    let container = bench.start(bench.spec(&["sleep", "1000"])).await;
    let refused = container.exec(command(&["nope"]), OUTPUT, None).await.err();
    let text = "failed to exec in container: OCI runtime exec failed: exec failed: unable to start container process: \
        exec: \"nope\": executable file not found in $PATH";
    assert_eq!(refused, Some(ExecError::Start(text.to_owned())));
}

pub(crate) async fn a_command_ends_at_its_time_and_with_its_session() {
    let bench = Bench::new().await;
    let container = bench.start(bench.spec(&["sleep", "1000"])).await;
    let patience = Duration::from_millis(50);
    let session = container.exec(command(&["sleep", "1001"]), OUTPUT, Some(patience)).await.expect("it runs");
    assert_eq!(session.exit.await, Err(ExecError::TimedOut(patience)));

    let mut session = container.exec(shell("sleep 1002 & wait"), OUTPUT, None).await.expect("it runs");
    let mut stdout = session.stdout.take().expect("standard output");
    drop(session);
    // It ends when no process has it open any more.
    assert_eq!(stdout.read_to_string(&mut String::new()).await.expect("text"), 0);
}

pub(crate) async fn a_terminal_has_a_size_and_takes_keys() {
    let bench = Bench::new().await;
    let container = bench.start(bench.spec(&["sleep", "1000"])).await;
    let streams = Streams { stdin: true, stdout: true, stderr: false, tty: true };
    let script = "test -t 0 && test -t 1 && test -t 2 && read line && stty size && tty && exec sleep 1000";
    let mut session = container.exec(shell(script), streams, None).await.expect("it runs");
    let resize = session.resize.clone().expect("a terminal");
    resize.send(TerminalSize { width: 101, height: 33 }).await.expect("a terminal");
    let (mut stdin, mut stdout) =
        (session.stdin.take().expect("input"), session.stdout.take().expect("output"));
    // A size that was taken is seen by who looks later; the queue of sizes is drained before what follows is asked for.
    while resize.capacity() < resize.max_capacity() {
        tokio::task::yield_now().await;
    }
    stdin.write_all(b"go\n").await.expect("a terminal");
    let mut text = String::new();
    let mut block = [0; 256];
    while !text.contains("/dev/pts/") {
        let length = stdout.read(&mut block).await.expect("a terminal");
        assert!(length > 0, "{text}");
        text.push_str(std::str::from_utf8(&block[..length]).expect("text"));
    }
    assert!(text.contains("33 101\r\n"), "{text}");
    stdin.write_all(b"\x03").await.expect("a terminal");
    let exit = session.exit.await.expect("it ran");
    assert_eq!(exit.signal, Some(2));
    stdout.read_to_string(&mut text).await.expect("it ends like a file");
}

pub(crate) async fn several_are_attached_at_once_and_the_first_who_leaves_ends_the_input() {
    let bench = Bench::new().await;
    let spec = Spec { stdin: true, stdin_once: true, ..bench.spec(&["cat"]) };
    let container = bench.start(spec).await;
    let mut watcher = container.attach(OUTPUT).await.expect("a session");
    let mut writer = container.attach(Streams { stdin: true, ..OUTPUT }).await.expect("a session");
    writer.stdin.take().expect("standard input").write_all(b"hello\n").await.expect("it reads");
    assert_eq!(output(&mut writer).await, "hello\n");
    assert_eq!(output(&mut watcher).await, "hello\n");
    assert_eq!(watcher.exit.await.expect("it ran").code, 0);
    assert_eq!(container.attach(OUTPUT).await.err(), Some(ExecError::NotRunning));
}

pub(crate) async fn a_program_on_a_terminal_writes_one_stream() {
    let bench = Bench::new().await;
    let spec = Spec { tty: true, stdin: true, ..bench.script("tty; read line; echo $line >&2") };
    let path = spec.log.clone();
    let container = bench.start(spec).await;
    let streams = Streams { stdin: true, stdout: true, stderr: false, tty: true };
    let mut session = container.attach(streams).await.expect("a session");
    assert!(session.resize.is_some());
    session.stdin.as_mut().expect("standard input").write_all(b"typed\n").await.expect("a terminal");
    assert_eq!(container.exited().await.code, 0);
    let log = std::fs::read_to_string(path).expect("a log");
    assert!(log.contains("stdout F /dev/pts/") && log.contains("stdout F typed\r\n"), "{log}");
    assert!(!log.contains("stderr"), "{log}");
}
