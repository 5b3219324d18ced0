//! The terminal: it is taken, and given back as it was, whatever happens.

use std::{
    env,
    io::{self, IsTerminal, Write},
    panic,
    sync::Once,
};

use anyhow::{Context, bail};
use crossterm::{
    cursor::Show,
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};

/// Whether this can be drawn on.
///
/// # Errors
/// When it cannot, with what can be done instead.
pub(super) fn needed() -> anyhow::Result<()> {
    let missing = if !io::stdin().is_terminal() {
        "standard input is none"
    } else if !io::stdout().is_terminal() {
        "standard output is none"
    } else if env::var_os("TERM").is_some_and(|term| term == "dumb") {
        "TERM=dumb says that this one cannot be drawn on"
    } else {
        return Ok(());
    };
    bail!(
        "top draws on a terminal, and {missing}: `kubewright view FILE` shows a recording in a browser, `kubewright up --ui` a cluster"
    )
}

/// The whole screen, and every key. It ends with this: at the end, after an error, and before a panic says why.
pub(super) struct FullScreen(());

impl FullScreen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it does not do what it is asked to.
    pub(super) fn enter() -> anyhow::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                leave(&mut io::stdout());
                before(panicked);
            }));
        });
        enable_raw_mode().context("the terminal")?;
        let entered = Self(());
        execute!(io::stdout(), EnterAlternateScreen).context("the terminal")?;
        Ok(entered)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave(&mut io::stdout());
    }
}

/// There is nobody to complain to when this fails.
fn leave(output: &mut impl Write) {
    let _ = disable_raw_mode();
    let _ = execute!(output, LeaveAlternateScreen, Show);
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs::OpenOptions,
        io::{Read, Write},
        process::{Command, Stdio},
    };

    use rustix::{
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
        termios::tcgetattr,
    };

    use super::*;

    #[test]
    #[ignore = "is run by the test below, in a process of its own"]
    fn panics_on_a_full_screen() {
        let _full_screen = FullScreen::enter().expect("a terminal");
        write!(io::stdout(), "taken").expect("written");
        panic!("on purpose");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_says_why() {
        let Ok(mut hand) = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).map(std::fs::File::from) else {
            eprintln!("skipped: this machine has no pseudo-terminals");
            return;
        };
        grantpt(&hand).expect("granted");
        unlockpt(&hand).expect("unlocked");
        let name = ptsname(&hand, Vec::new()).expect("a name");
        let terminal = OpenOptions::new().read(true).write(true).open(name.to_string_lossy().as_ref());
        let terminal = terminal.expect("a terminal");
        let before = tcgetattr(&terminal).expect("its modes").local_modes;
        let side = || Stdio::from(terminal.try_clone().expect("a file"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([
            "--exact",
            "--ignored",
            "--nocapture",
            "top::terminal::tests::panics_on_a_full_screen",
        ]);
        let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("it runs");
        assert!(!child.wait().expect("it ends").success());
        assert_eq!(tcgetattr(&terminal).expect("its modes").local_modes, before);
        drop((command, terminal));
        let (mut shown, mut some) = (Vec::new(), [0; 1024]);
        while let Ok(read @ 1..) = hand.read(&mut some) {
            shown.extend_from_slice(&some[..read]);
        }
        let shown = String::from_utf8_lossy(&shown);
        let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text:?} is not in {shown:?}"));
        let order = [place("\u{1b}[?1049h"), place("taken"), place("\u{1b}[?1049l"), place("on purpose")];
        assert!(order.is_sorted(), "{shown:?}");
    }
}
