//! The standard streams of a program: the machine's ends and the runtime's.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::net::unix::pipe;

use crate::container::Streams;

/// The program's ends.
#[derive(Debug)]
pub(super) struct Theirs {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// The runtime's ends of those that are wanted.
#[derive(Debug)]
pub(super) struct Ours {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
}

/// Pipes for what is wanted; the rest is empty, or lost.
pub(super) fn pipes(wanted: Streams) -> io::Result<(Theirs, Ours)> {
    let nothing =
        || -> io::Result<OwnedFd> { Ok(File::options().read(true).write(true).open("/dev/null")?.into()) };
    let (stdin, our_stdin) = match wanted.stdin {
        true => {
            let (reader, writer) = io::pipe()?;
            (reader.into(), Some(pipe::Sender::from_owned_fd(writer.into())?))
        }
        false => (nothing()?, None),
    };
    let output = |wanted: bool| -> io::Result<(OwnedFd, Option<pipe::Receiver>)> {
        if !wanted {
            return Ok((nothing()?, None));
        }
        let (reader, writer) = io::pipe()?;
        Ok((writer.into(), Some(pipe::Receiver::from_owned_fd(reader.into())?)))
    };
    let (stdout, our_stdout) = output(wanted.stdout)?;
    let (stderr, our_stderr) = output(wanted.stderr)?;
    let ours = Ours { stdin: our_stdin, stdout: our_stdout, stderr: our_stderr };
    Ok((Theirs { stdin, stdout, stderr }, ours))
}

impl Theirs {
    pub(super) fn files(&self) -> [BorrowedFd<'_>; 3] {
        [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()]
    }
}
