//! What is asked on a terminal: a pseudo-terminal, whose other side is the test.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    process::{Command, ExitStatus, Stdio},
};

use kubewright_recording::{Author, Did, Header, Record, Write as Written, Writer};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcgetattr, tcsetwinsize},
};

use super::{API, INIT, files, kubewright};
use crate::Folder;

/// Ctrl-D, at the beginning of a line: nobody will say more.
const END: &str = "\u{4}";

/// Runs a command on a terminal at which somebody types `answers`. Gives what the terminal showed, and how it ended; nothing
/// where there are no terminals.
fn typed(folder: &Folder, line: &str, answers: &str) -> Option<(String, ExitStatus)> {
    let (mut hand, terminal) = match terminal() {
        Ok(both) => both,
        Err(error) => {
            eprintln!("skipped: this machine has no pseudo-terminals ({error})");
            return None;
        }
    };
    let side = || Stdio::from(terminal.try_clone().expect("a file"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.args(line.split_whitespace()).current_dir(&folder.0);
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("kubewright runs");
    // Nobody else has the terminal: reading ends when the command does.
    drop((command, terminal));
    // An answer is typed when its question is there: the terminal shows what is typed at once, in the middle of a question too.
    let mut answers = answers.split_inclusive('\n');
    let (mut shown, mut some) = (Vec::new(), [0; 1024]);
    while let Ok(read @ 1..) = hand.read(&mut some) {
        shown.extend_from_slice(&some[..read]);
        if (shown.ends_with(b"] ") || shown.ends_with(b": "))
            && let Some(answer) = answers.next()
        {
            hand.write_all(answer.as_bytes()).expect("typed");
        }
    }
    let status = child.wait().expect("it ends");
    Some((String::from_utf8_lossy(&shown).replace("\r\n", "\n"), status))
}

/// Both sides of a new terminal.
fn terminal() -> std::io::Result<(File, File)> {
    let hand = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&hand)?;
    unlockpt(&hand)?;
    let name = ptsname(&hand, Vec::new())?;
    let terminal = OpenOptions::new().read(true).write(true).open(name.to_string_lossy().as_ref())?;
    Ok((hand.into(), terminal))
}

#[test]
fn kb_08_a_terminal_is_asked_whether_to_write_types_and_controller() {
    let folder = Folder::new("terminal-api");
    assert!(kubewright(&folder, INIT).status.success());
    let Some((shown, status)) = typed(&folder, API, "maybe\nY\nno\n") else { return };
    assert!(status.success(), "{shown}");
    // What is no answer is asked again.
    assert_eq!(shown.matches("Create Resource [y/n] ").count(), 2, "{shown}");
    assert_eq!(shown.matches("Create Controller [y/n] ").count(), 1, "{shown}");
    let files = files(&folder.0);
    assert!(files.contains_key("src/kinds/police/whitelist/v1beta1.rs"));
    assert!(!files.contains_key("src/kinds/police/whitelist/controller.rs"));
}

#[test]
fn what_is_left_out_is_asked_and_what_is_wrong_is_refused() {
    let folder = Folder::new("terminal-names");
    assert!(kubewright(&folder, INIT).status.success());
    let Some((shown, status)) = typed(&folder, "create api", "\npolice\nv1\nWhiteList\ny\ny\n") else {
        return;
    };
    assert!(status.success(), "{shown}");
    assert_eq!(shown.matches("Group: ").count(), 2, "{shown}");
    assert!(shown.contains("Version: ") && shown.contains("Kind: "), "{shown}");
    assert!(files(&folder.0).contains_key("src/kinds/police/whitelist/v1.rs"));

    let before = files(&folder.0);
    let (shown, status) = typed(&folder, "create api --group police", "one\n").expect("a terminal");
    assert_eq!(status.code(), Some(2), "{shown}");
    assert!(shown.contains("error: ") && shown.contains("v1alpha1"), "{shown}");
    assert_eq!(files(&folder.0), before);
}

#[test]
fn who_leaves_while_asked_changes_nothing() {
    let folder = Folder::new("terminal-end");
    assert!(kubewright(&folder, INIT).status.success());
    let before = files(&folder.0);
    let Some((shown, status)) = typed(&folder, API, &format!("y\n{END}")) else { return };
    assert_eq!(status.code(), Some(1), "{shown}");
    assert!(shown.contains("error: cannot ask at the terminal"), "{shown}");
    assert_eq!(files(&folder.0), before);
}

#[test]
fn flags_answer_on_a_terminal_too() {
    let folder = Folder::new("terminal-flags");
    assert!(kubewright(&folder, INIT).status.success());
    let Some((shown, status)) = typed(&folder, &format!("{API} --resource --controller=false"), "") else {
        return;
    };
    assert!(status.success() && !shown.contains("[y/n]"), "{shown}");
}

/// A recording of one ConfigMap.
fn recording(folder: &Folder) {
    let file = File::create(folder.0.join("one.kwrec")).expect("a file");
    let mut writer = Writer::create(file, &Header::default()).expect("a recording");
    let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop","uid":"1"},"data":{"colour":"green"}}"#;
    let write = Written {
        revision: 1,
        time: jiff::Timestamp::UNIX_EPOCH,
        by: Author::default(),
        did: Did::Create,
        inferred: false,
        collection: "/configmaps".to_owned(),
        key: "shop/settings".to_owned(),
        object: serde_json::from_str(object).expect("JSON"),
    };
    writer.push(&Record::Write(write)).expect("written");
    writer.flush().expect("written");
}

#[test]
fn top_shows_a_recording_by_keyboard_and_gives_the_terminal_back() {
    let folder = Folder::new("terminal-top");
    recording(&folder);
    let Ok((mut hand, terminal)) = terminal() else {
        eprintln!("skipped: this machine has no pseudo-terminals");
        return;
    };
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
    let before = tcgetattr(&hand).expect("its modes").local_modes;
    let side = || Stdio::from(terminal.try_clone().expect("a file"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.args(["top", "one.kwrec"]).current_dir(&folder.0).env("TERM", "xterm");
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("kubewright runs");
    drop((command, terminal));
    // Each key is typed when what the one before it shows is there: words of what is drawn anew, as nothing else is sent.
    let mut steps =
        [("settings", "\u{1b}[B"), ("settings", "\r"), ("colour:", "q"), ("[Tree]", "q")].into_iter();
    let (mut shown, mut seen, mut some) = (String::new(), 0, [0; 4096]);
    let mut step = steps.next();
    while !shown.contains("\u{1b}[?1049l") {
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        let is_there = poll(&mut [PollFd::new(&hand, PollFlags::IN)], Some(&patience)).expect("it waits") > 0;
        let read = if is_there { hand.read(&mut some).unwrap_or(0) } else { 0 };
        if read == 0 {
            let _ = child.kill();
            panic!("{step:?} is missing: {shown:?}");
        }
        shown += &String::from_utf8_lossy(&some[..read]);
        while let Some((text, key)) = step
            && let Some(place) = shown[seen..].find(text)
        {
            seen += place + text.len();
            hand.write_all(key.as_bytes()).expect("typed");
            step = steps.next();
        }
    }
    assert!(child.wait().expect("it ends").success(), "{shown:?}");
    assert_eq!(step, None, "{shown:?}");
    assert_eq!(tcgetattr(&hand).expect("its modes").local_modes, before);
}

#[test]
fn top_without_a_terminal_says_what_to_do_instead() {
    let folder = Folder::new("terminal-none");
    recording(&folder);
    let output = kubewright(&folder, "top one.kwrec");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("top draws on a terminal") && said.contains("kubewright view"), "{said}");
    assert!(output.stdout.is_empty());
}
