//! `kubewright init`, `create`, `import` and `upgrade`.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
};

use jiff::{Timestamp, tz::TimeZone};
use kubewright_scaffold::{Ask, Command, Folder, Surroundings};
use kubewright_world::World;

use crate::complain;

/// Does it in the folder of the process; 2 when the command line has to say something else, 1 when it cannot be done.
pub(crate) fn run(command: &Command) -> ExitCode {
    let around = Surroundings { version: env!("CARGO_PKG_VERSION").to_owned(), year: year() };
    match command.run(&Folder::new("."), &around, &mut Terminal, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// The year, or that of `SOURCE_DATE_EPOCH` (<https://reproducible-builds.org/specs/source-date-epoch/>).
fn year() -> i16 {
    let said = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let then = said.and_then(|seconds| Timestamp::from_second(seconds).ok());
    then.unwrap_or_else(|| World::real().clock.now()).to_zoned(TimeZone::UTC).year()
}

/// Whoever sits at the terminal.
struct Terminal;

impl Ask for Terminal {
    fn yes(&mut self, question: &str) -> io::Result<Option<bool>> {
        let (input, mut output) = (io::stdin(), io::stderr());
        if !input.is_terminal() {
            return Ok(None);
        }
        loop {
            write!(output, "{question} ")?;
            output.flush()?;
            let mut line = String::new();
            if input.lock().read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(Some(true)),
                "n" | "no" => return Ok(Some(false)),
                _ => {}
            }
        }
    }
}
