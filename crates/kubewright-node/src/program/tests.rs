//! What is known of the programs of containers.

use serde_json::{Value, json};

use super::*;

fn container(value: &Value) -> Container {
    let mut value = value.clone();
    value["name"] = json!("c");
    kubewright_objects::from_value(value).expect("a container")
}

fn program(value: impl Into<Value>) -> Option<Program> {
    Program::of(&container(&value.into()))
}

fn script(text: &str) -> Option<Program> {
    program(json!({"image": "busybox:1", "command": ["sh", "-c", text]}))
}

/// How long the script runs, and its exit code.
fn end(text: &str) -> Option<(u64, i32)> {
    let (after, code) = script(text)?.end?;
    Some((after.as_secs(), code))
}

/// What is in its log after so many seconds.
fn logged(program: &Program, seconds: u64) -> String {
    let (lines, _) = lines(program, Duration::from_secs(seconds)).expect("it is known");
    lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn a_script_runs_as_long_as_its_commands_and_ends_as_its_last_one() {
    assert_eq!(end("sleep 5"), Some((5, 0)));
    assert_eq!(end("sleep 1m; exit 3"), Some((60, 3)));
    assert_eq!(end("exit 1"), Some((0, 1)));
    assert_eq!(end("true && sleep 2 && false"), Some((2, 1)));
    assert_eq!(end("false || sleep 3"), Some((3, 0)));
    assert_eq!(end("false && sleep 3; sleep 1"), Some((1, 0)));
    assert_eq!(end("echo 'a;b' # and so on\nsleep 2"), Some((2, 0)));
}

#[test]
fn a_script_that_is_to_end_at_an_error_does() {
    let stops = |text: &str| program(json!({"command": ["/bin/sh", "-ec", text]})).and_then(|one| one.end);
    assert_eq!(stops("false; sleep 9"), Some((Duration::ZERO, 1)));
    assert_eq!(stops("false || true; sleep 9"), Some((Duration::from_secs(9), 0)));
}

#[test]
fn what_is_not_understood_is_not_guessed() {
    for text in [
        "exec server",
        "echo $HOME",
        "cat /etc/hosts",
        "sleep 1 &",
        "a=b; sleep 1",
        "ls | wc",
        "while true; do echo a; done",
        "while read line; do sleep 1; done",
        "echo 'open",
        "exit 256",
        "sleep soon",
        "",
    ] {
        assert_eq!(script(text), None, "{text}");
    }
    assert_eq!(program(json!({"command": ["sleep", "$(TIME)"]})), None);
    assert_eq!(program(json!({"image": "nginx", "args": ["sleep", "5"]})), None, "it is for an entrypoint");
    assert_eq!(program(json!({"image": "busybox"})), None);
}

#[test]
fn a_program_goes_on_for_ever_that_sleeps_for_ever() {
    assert_eq!(script("sleep infinity").map(|one| one.end), Some(None));
    let polo = script("while true; do echo polo; sleep 2; done").expect("it is known");
    assert_eq!(polo.end, None);
    assert_eq!(logged(&polo, 0), "polo\n");
    assert_eq!(logged(&polo, 5), "polo\npolo\npolo\n");
    let (_, next) = lines(&polo, Duration::from_secs(5)).expect("it is known");
    assert_eq!(next, Some(Duration::from_secs(6)));
}

#[test]
fn what_is_printed_is_in_the_log_and_what_is_written_to_the_message_is_not() {
    let chatty = script("echo -n hello; echo \" world\"; sleep 2; printf 'a\\nb\\n'; exit 1").expect("known");
    assert_eq!(logged(&chatty, 0), "hello world\n");
    assert_eq!(logged(&chatty, 2), "hello world\na\nb\n");
    let container = container(&json!({"command": ["sh", "-c", "echo DONE > /dev/termination-log"]}));
    let program = Program::of(&container).expect("it is known");
    assert_eq!(program.message(&container).as_deref(), Some("DONE\n"));
    assert_eq!(logged(&program, 0), "");
}

#[test]
fn the_end_of_the_log_of_a_program_that_failed_is_its_message_where_that_is_wished() {
    let of = |code: u8, policy: &str| {
        let script = format!("echo DONE; exit {code}");
        let container =
            container(&json!({"command": ["sh", "-c", script], "terminationMessagePolicy": policy}));
        Program::of(&container).expect("it is known").message(&container)
    };
    assert_eq!(of(1, "FallbackToLogsOnError").as_deref(), Some("DONE\n"));
    assert_eq!(of(0, "FallbackToLogsOnError"), None);
    assert_eq!(of(1, "File"), None);
}

#[test]
fn agnhost_and_pause_run_until_they_are_stopped() {
    let image = "registry.k8s.io/e2e-test-images/agnhost:2.53";
    let paused = program(json!({"image": image})).expect("it is known");
    assert_eq!((paused.end, paused.stop), (None, Stop::Ends(2)));
    assert_eq!(logged(&paused, 0), "Paused\nSignals registered\n");
    let server =
        program(json!({"image": image, "args": ["netexec", "--http-port=80"]})).expect("it is known");
    assert_eq!(lines(&server, Duration::ZERO), None, "its log is not known");
    let tester = program(json!({"image": image, "args": ["entrypoint-tester", "a"]})).expect("it is known");
    assert_eq!(logged(&tester, 0), "[/agnhost entrypoint-tester a]\n");
    assert!(program(json!({"image": "registry.k8s.io/pause:3.10"})).is_some());
}

#[test]
fn a_program_without_a_handler_is_killed_when_its_grace_period_is_over() {
    let second = Duration::from_secs;
    let asleep = script("sleep 100").expect("it is known");
    assert_eq!(asleep.stopped(second(10), second(30)), (second(30), 137));
    assert_eq!(asleep.stopped(second(90), second(30)), (second(10), 0), "it ends before that");
    let paused = program(json!({"image": "agnhost"})).expect("it is known");
    assert_eq!(paused.stopped(second(10), second(30)), (second(2), 2));
    assert_eq!(paused.stopped(second(10), Duration::ZERO), (Duration::ZERO, 137));
}
