//! What `up` says to a person: lines in columns, in colours where a terminal shows them, and not one for each of fifty pods.

use std::{
    cell::Cell,
    collections::BTreeMap,
    env,
    ffi::OsStr,
    io::{self, IsTerminal, Write},
    path::Path,
    time::Duration,
};

use crate::change::Id;

/// So many objects to which the same happens at once are still told one by one.
const FEW: usize = 3;
/// How wide the column of objects is at first, and at most: what is longer takes its line out of the columns.
const WIDTHS: (usize, usize) = (36, 64);

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// When, since the start.
    pub(crate) at: Duration,
    pub(crate) id: Id,
    /// The name of the object that controls it.
    pub(crate) of: Option<String>,
    pub(crate) what: String,
    pub(crate) tone: Tone,
}

/// How something is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// It is as it is wanted.
    Good,
    /// Somebody may want to look.
    Bad,
    /// It is over.
    Gone,
}

/// Says things to a person, unless it is to be quiet.
pub(crate) struct Printer {
    quiet: bool,
    is_terminal: bool,
    colours: bool,
    width: Cell<usize>,
}

impl Printer {
    /// One that speaks on standard output.
    pub(crate) fn new(quiet: bool) -> Self {
        let output = io::stdout();
        Self {
            quiet,
            is_terminal: output.is_terminal(),
            colours: shows_colours(&output),
            width: Cell::new(WIDTHS.0),
        }
    }

    /// Nobody may be listening any more (`kubewright up | head`): that is no reason to end.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stdout(), "{line}");
        }
    }

    /// Says what takes a while, to who sits and waits.
    pub(crate) fn progress(&self, line: &str) {
        if self.is_terminal {
            self.say(&painted(line, DIM, self.colours));
        }
    }

    /// Says where the control plane is and how kubectl finds it.
    pub(crate) fn ready(&self, ready: &str, kubeconfig: &Path) {
        self.say(&painted(ready, BOLD, self.colours));
        self.say(&format!(
            "kubeconfig written to {}; for kubectl in another terminal:\n",
            kubeconfig.display()
        ));
        self.say(&format!("  {}\n", painted(&export(kubeconfig), BOLD, self.colours)));
    }

    /// Says what happened, where the same happened to many in one line.
    pub(crate) fn print(&self, events: Vec<Event>) {
        for (subject, event) in folded(events) {
            let width = self.width.get().max(subject.chars().count().min(WIDTHS.1));
            self.width.set(width);
            self.say(&line(&subject, &event, width, self.colours));
        }
    }

    /// Says the last thing. The terminal has written `^C` by then, and the prompt is to stand at the beginning of a line.
    pub(crate) fn end(&self, line: &str) {
        let gap = if self.is_terminal { "\n" } else { "" };
        self.say(&format!("{gap}{line}"));
    }
}

/// Whether what is written there may have colours: a terminal shows them, and nobody has asked for none (<https://no-color.org>).
pub(crate) fn shows_colours(output: &impl IsTerminal) -> bool {
    may_have_colours(output.is_terminal(), env::var_os("NO_COLOR").as_deref(), env::var_os("TERM").as_deref())
}

fn may_have_colours(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty) && term.is_some_and(|term| term != "dumb")
}

/// Parameters of the sequence that sets how a terminal writes.
pub(crate) const BOLD: &str = "1";
pub(crate) const DIM: &str = "2";
pub(crate) const RED: &str = "31";
pub(crate) const GREEN: &str = "32";

impl Tone {
    fn colour(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some(GREEN),
            Self::Bad => Some(RED),
            Self::Gone => Some(DIM),
        }
    }
}

/// A text in this colour, where colours are shown.
pub(crate) fn painted(text: &str, colour: &str, colours: bool) -> String {
    if colours { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// What has a shell speak to the cluster of this kubeconfig, in whatever folder it is.
fn export(kubeconfig: &Path) -> String {
    let path = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    format!("export KUBECONFIG={}", quoted(&path.display().to_string()))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// One line in columns: when, what, what happened.
fn line(subject: &str, event: &Event, width: usize, colours: bool) -> String {
    let time = painted(&format!("{:>6}", since_start(event.at)), DIM, colours);
    let what = event.tone.colour().map_or_else(|| event.what.clone(), |c| painted(&event.what, c, colours));
    format!("{time}  {subject:width$}  {what}")
}

/// Short, and as exact as it still matters.
fn since_start(at: Duration) -> String {
    let seconds = at.as_secs();
    match seconds {
        0..60 => format!("{seconds}.{}s", at.subsec_millis() / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// What is told of what happened within a moment: of an object that got further several times where it is now and how it came there,
/// and of many objects to which the same happened how many they are.
fn folded(events: Vec<Event>) -> Vec<(String, Event)> {
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        let last = joined.iter_mut().rev().find(|last| last.id == event.id);
        match last.filter(|last| last.tone == Tone::Good && event.tone == Tone::Good) {
            Some(last) => last.what = format!("{}, {}", last.what, event.what),
            None => joined.push(event),
        }
    }
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for event in &joined {
        *counts.entry(happening(event)).or_default() += 1;
    }
    let mut lines = Vec::new();
    for event in &joined {
        // Many are told where the first one of them would be.
        let line = match counts.get_mut(&happening(event)) {
            Some(count) if *count > FEW => Some(std::mem::take(count)),
            Some(0) => None,
            _ => Some(1),
        };
        lines.extend(line.map(|count| (subject(event, count), event.clone())));
    }
    lines
}

/// What is the same of several objects: their kind, their namespace, what controls them and what happened to them.
fn happening(event: &Event) -> (&str, Option<&str>, Option<&str>, &str) {
    (&event.id.kind, event.id.namespace.as_deref(), event.of.as_deref(), &event.what)
}

/// What a line is about, as kubectl takes it: `pod/web-0`, `pod/web-0 -n shop`, or `50 pods of web-0`.
fn subject(event: &Event, count: usize) -> String {
    let Id { kind, namespace, name } = &event.id;
    let kind = if kind == "customresourcedefinition" { "crd" } else { kind };
    let what = match (count, &event.of) {
        (1, _) => format!("{kind}/{name}"),
        (count, Some(of)) => format!("{count} {kind}s of {of}"),
        (count, None) => format!("{count} {kind}s"),
    };
    match namespace.as_deref() {
        None | Some("default") => what,
        Some(namespace) => format!("{what} -n {namespace}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, what: &str, tone: Tone) -> Event {
        let id = Id { kind: "pod".to_owned(), namespace: Some("default".to_owned()), name: name.to_owned() };
        Event {
            at: Duration::from_millis(1270),
            id,
            of: Some("web-1".to_owned()),
            what: what.to_owned(),
            tone,
        }
    }

    fn lines(events: Vec<Event>) -> Vec<String> {
        folded(events).iter().map(|(subject, event)| line(subject, event, 20, false)).collect()
    }

    #[test]
    fn what_happens_is_told_in_columns() {
        let mut elsewhere = pod("web-1-b", "deleted", Tone::Gone);
        elsewhere.id.namespace = Some("shop".to_owned());
        assert_eq!(
            lines(vec![pod("web-1-a", "ready", Tone::Good), elsewhere]),
            ["  1.2s  pod/web-1-a           ready", "  1.2s  pod/web-1-b -n shop   deleted"]
        );
        let mut definition = pod("as.b.c", "installed", Tone::Good);
        definition.id.kind = "customresourcedefinition".to_owned();
        definition.id.namespace = None;
        assert_eq!(lines(vec![definition]), ["  1.2s  crd/as.b.c            installed"]);
    }

    #[test]
    fn the_same_of_many_is_one_line_and_of_few_is_not() {
        let same = |count: usize| (0..count).map(|n| pod(&format!("web-1-{n}"), "ready", Tone::Good));
        assert_eq!(lines(same(3).collect()).len(), 3);
        let other = pod("web-1-x", "Failed", Tone::Bad);
        assert_eq!(
            lines(same(50).chain([other]).collect()),
            ["  1.2s  50 pods of web-1      ready", "  1.2s  pod/web-1-x           Failed"]
        );
    }

    #[test]
    fn what_gets_further_within_a_moment_is_one_line() {
        let events = [("runs", Tone::Good), ("ready", Tone::Good), ("deleted", Tone::Gone)];
        assert_eq!(
            lines(events.map(|(what, tone)| pod("a", what, tone)).into()),
            ["  1.2s  pod/a                 runs, ready", "  1.2s  pod/a                 deleted"]
        );
    }

    #[test]
    fn time_is_told_as_exactly_as_it_matters() {
        let event =
            [0, 999, 59_950, 60_000, 3_599_000, 90_061_000].map(Duration::from_millis).map(since_start);
        assert_eq!(event, ["0.0s", "0.9s", "59.9s", "1m00s", "59m59s", "25h01m"]);
    }

    #[test]
    fn colours_are_for_terminals_of_who_wants_them() {
        let [xterm, dumb, one, empty] = ["xterm", "dumb", "1", ""].map(|text| Some(OsStr::new(text)));
        assert!(may_have_colours(true, None, xterm) && may_have_colours(true, empty, xterm));
        assert!(!may_have_colours(false, None, xterm));
        assert!(!may_have_colours(true, one, xterm));
        assert!(!may_have_colours(true, None, dumb) && !may_have_colours(true, None, None));
        let event = pod("a", "ready", Tone::Good);
        assert_eq!(
            line("pod/a", &event, 5, true),
            "\u{1b}[2m  1.2s\u{1b}[0m  pod/a  \u{1b}[32mready\u{1b}[0m"
        );
    }

    #[test]
    fn the_line_to_paste_holds_in_any_folder() {
        assert_eq!(
            export(Path::new("/a/kubewright.kubeconfig")),
            "export KUBECONFIG=/a/kubewright.kubeconfig"
        );
        assert_eq!(export(Path::new("/it's a/b")), r"export KUBECONFIG='/it'\''s a/b'");
        assert!(export(Path::new("k")).ends_with("/k"));
    }
}
