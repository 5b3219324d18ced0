//! What is asked on a terminal: a pseudo-terminal, whose other side is the test.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    process::{Command, ExitStatus, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

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
