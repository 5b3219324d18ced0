//! What the program of a container does, where its image and command say so: how long it runs, how it ends, what it
//! prints, and the termination message that it leaves. Pure: nothing is started.
//!
//! Known are `sleep`, `true`, `false`, `echo` and `printf`, scripts of `sh -c` made of these ([`shell`]), and the commands of
//! Kubernetes' own images `agnhost` and `pause` that tests start. Of anything else nothing is said ([`Program::of`] is
//! `None`), and whoever looks decides what becomes of it.

mod image;
mod log;
mod shell;

use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

pub(crate) use self::image::is_unpullable;
pub(crate) use self::log::lines;

/// Where a container leaves its termination message unless it says otherwise.
const MESSAGE_PATH: &str = "/dev/termination-log";
/// How long a program takes that ends when it is told to: times of deletion are whole seconds, and everybody is to see it
/// terminate.
const PROMPT: Duration = Duration::from_secs(2);
/// The exit code of a container that was killed.
pub(crate) const KILLED: i32 = 137;
/// The most that the kubelet reads of a termination message, and of a log in its place.
const LONGEST_MESSAGE: usize = 4096;
const LONGEST_FALLBACK: usize = 2048;
const MOST_FALLBACK_LINES: usize = 80;

/// What a program does from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// What it prints; `None` where that is not known.
    output: Option<Vec<Printed>>,
    /// What it does again and again, once it has come there.
    cycle: Option<Cycle>,
    /// When it ends by itself, and with which exit code; it goes on for ever without.
    pub(crate) end: Option<(Duration, i32)>,
    /// What it wrote to its termination message's file.
    message: String,
    /// What it does when it is to stop.
    pub(crate) stop: Stop,
}

/// Something printed, so long after the start.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Printed {
    after: Duration,
    text: String,
}

/// The part of a program that is repeated: what is printed from `from` on is printed again `every` so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cycle {
    from: Duration,
    every: Duration,
}

/// What a program does when it is sent SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It ends soon, with this code.
    Ends(i32),
    /// It goes on, as the first process of a container does that has no handler, until it is killed.
    GoesOn,
}

impl Program {
    /// The program of a container, if it is known.
    pub(crate) fn of(container: &Container) -> Option<Self> {
        let (command, args) = (words(container.command.as_ref()), words(container.args.as_ref()));
        // What Kubernetes would put there is not known here.
        if command.iter().chain(&args).any(|word| word.contains("$(")) {
            return None;
        }
        let message_path = container.termination_message_path.as_deref().filter(|path| !path.is_empty());
        let message_path = message_path.unwrap_or(MESSAGE_PATH);
        if let Some((program, rest)) = command.split_first() {
            let rest: Vec<&str> = rest.iter().chain(&args).copied().collect();
            return started(program, &rest, message_path);
        }
        match (image::name(container.image.as_deref().unwrap_or_default()), args.split_first()) {
            ("agnhost", _) => agnhost("/agnhost", &args),
            ("pause", None) => Some(Self::going_on(Some(Vec::new()), Stop::Ends(0))),
            ("busybox", Some((program, rest))) => started(program, rest, message_path),
            _ => None,
        }
    }

    fn going_on(output: Option<Vec<Printed>>, stop: Stop) -> Self {
        Self { output, cycle: None, end: None, message: String::new(), stop }
    }

    fn ending(output: Vec<Printed>, after: Duration, code: i32) -> Self {
        Self {
            output: Some(output),
            cycle: None,
            end: Some((after, code)),
            message: String::new(),
            stop: Stop::GoesOn,
        }
    }

    /// The termination message of the container when its program has ended by itself
    /// (`getTerminationMessage` in `pkg/kubelet/kuberuntime`).
    pub(crate) fn message(&self, container: &Container) -> Option<String> {
        if !self.message.is_empty() {
            return Some(tail(&self.message, LONGEST_MESSAGE).to_owned());
        }
        let falls_back = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        self.end.filter(|(_, code)| falls_back && *code != 0)?;
        let all: String = self.output.iter().flatten().map(|printed| printed.text.as_str()).collect();
        let skipped = all.split_inclusive('\n').count().saturating_sub(MOST_FALLBACK_LINES);
        let last: String = all.split_inclusive('\n').skip(skipped).collect();
        (!last.is_empty()).then(|| tail(&last, LONGEST_FALLBACK).to_owned())
    }

    /// How long after it was sent SIGTERM it ends, and with which code, when it has run for `ran` and is killed after
    /// `grace`.
    pub(crate) fn stopped(&self, ran: Duration, grace: Duration) -> (Duration, i32) {
        let (takes, code) = match self.stop {
            Stop::Ends(code) if PROMPT <= grace => (PROMPT, code),
            _ => (grace, KILLED),
        };
        match self.end {
            Some((end, own)) if end.saturating_sub(ran) < takes => (end.saturating_sub(ran), own),
            _ => (takes, code),
        }
    }
}

fn words(list: Option<&Vec<String>>) -> Vec<&str> {
    list.into_iter().flatten().map(String::as_str).collect()
}

/// The last part of a text, of at most `most` bytes.
fn tail(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

/// A program by the path of its file.
fn started(program: &str, args: &[&str], message_path: &str) -> Option<Program> {
    match program.rsplit('/').next()? {
        "sh" | "ash" | "bash" => {
            let (script, stops_at_error) = script(args)?;
            shell::run(script, stops_at_error, message_path)
        }
        "agnhost" | "agnhost-2" => agnhost(program, args),
        "pause" if args.is_empty() => Some(Program::going_on(Some(Vec::new()), Stop::Ends(0))),
        name => shell::command(name, args, message_path),
    }
}

/// The script of `sh -c SCRIPT`, and whether it ends at the first command that fails (`-e`).
fn script<'a>(args: &[&'a str]) -> Option<(&'a str, bool)> {
    let mut stops_at_error = false;
    let mut args = args.iter();
    loop {
        let flags = args.next()?.strip_prefix('-')?;
        if flags.is_empty() || !flags.chars().all(|flag| matches!(flag, 'c' | 'e' | 'u')) {
            return None;
        }
        stops_at_error |= flags.contains('e');
        if flags.contains('c') {
            return Some((args.next()?, stops_at_error));
        }
    }
}

/// The commands of `agnhost` (`test/images/agnhost` of Kubernetes); without one it pauses.
fn agnhost(program: &str, args: &[&str]) -> Option<Program> {
    const SERVERS: [&str; 8] = [
        "netexec",
        "serve-hostname",
        "test-webserver",
        "nettest",
        "porter",
        "liveness",
        "guestbook",
        "no-snat-test-proxy",
    ];
    match args.first().copied().unwrap_or("pause") {
        "pause" => {
            let printed = Printed { after: Duration::ZERO, text: "Paused\nSignals registered\n".to_owned() };
            Some(Program::going_on(Some(vec![printed]), Stop::Ends(2)))
        }
        "entrypoint-tester" => {
            let all: Vec<&str> = std::iter::once(program).chain(args.iter().copied()).collect();
            let text = format!("[{}]\n", all.join(" "));
            Some(Program::ending(vec![Printed { after: Duration::ZERO, text }], Duration::ZERO, 0))
        }
        server if SERVERS.contains(&server) => Some(Program::going_on(None, Stop::Ends(0))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
