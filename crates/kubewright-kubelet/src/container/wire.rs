//! What the runtime and the processes that it starts say to each other: JSON over a socket pair, with open files beside it.
//!
//! Nothing of a container is told by arguments or environment variables of the helpers: those, everybody on the machine
//! can read.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Identity, Mount, Root};

/// The longest message that is taken: an environment and arguments are less (the kernel takes no more than 6 MiB).
const LONGEST: usize = 16 << 20;

/// The most open files that come with one message.
pub(super) const MOST_FILES: usize = 4;

/// Bytes before a message: its length.
pub(super) const HEAD: usize = 4;

/// The namespaces that a container has of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Namespaces {
    pub(super) user: bool,
    pub(super) mount: bool,
    pub(super) pid: bool,
    pub(super) uts: bool,
    pub(super) ipc: bool,
}

/// Which users and groups of the machine those of the container are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mapping {
    /// All are who they are; the runtime writes that down, because a namespace's own process may not.
    Same,
    /// There is one, the user of the runtime, by this name.
    Single {
        /// What the user is called inside.
        uid: u32,
        /// What its group is called inside.
        gid: u32,
    },
}

/// The program of a container, or of a command in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) working_directory: PathBuf,
    pub(super) identity: Identity,
    /// Whether it may become any user, or is whom it was started as.
    pub(super) any_user: bool,
    pub(super) tty: bool,
}

/// The files of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    pub(super) root: Root,
    pub(super) read_only_root: bool,
    pub(super) mounts: Vec<Mount>,
    /// Where the runtime keeps what belongs to this container alone; gone with it.
    pub(super) directory: PathBuf,
}

/// What a helper is started for: the first message to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Try what the machine allows.
    Probe {
        /// An empty directory for trials.
        directory: PathBuf,
        mapping: Mapping,
    },
    /// Be the shim of a container. With it come its standard input, output and error, unless it has a terminal.
    Run {
        namespaces: Namespaces,
        mapping: Mapping,
        sysctls: BTreeMap<String, String>,
        files: Files,
        hostname: String,
        program: Program,
    },
    /// Be the shim of a command in a container. With it come the container's first process, where it has namespaces, and
    /// the command's standard input, output and error, unless it has a terminal.
    Exec { namespaces: Namespaces, program: Program },
    /// Become the program (the second helper, which a shim starts): in a mount namespace of its own with these files, or
    /// in that of the process that comes with it, or in the machine's.
    Become { mounts: Mounts, hostname: Option<String>, program: Program },
    /// Try to build a root file system from this directory, as the second helper of a probe.
    Build { directory: PathBuf },
}

/// In which mount namespace a program runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mounts {
    /// The machine's.
    Machine,
    /// One of its own, with these files.
    Own(Files),
    /// That of a running container.
    Joined,
}

/// What the runtime tells a shim later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// Users and groups are mapped.
    Mapped,
    /// Send this signal to the program; 9 ends all processes of the container.
    Signal(i32),
}

/// What a helper reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// It has a user namespace: the runtime is to map users and groups.
    Separate,
    /// The program's terminal, which comes with it.
    Terminal,
    /// All that is left is to become the program.
    Ready,
    /// The program runs. Its process comes with it where the machine can tell.
    Started,
    /// It could not be prepared, or not be started.
    Failed(Failure),
    /// The program ended, and all its processes.
    Ended { code: i32, signal: Option<i32> },
    /// What the machine allows.
    Probed(Probed),
}

/// Why a program was not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure(pub(super) String);

/// What a trial showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Probed {
    pub(super) namespaces: Namespaces,
    /// Whether a root file system can lie over another, so that it need not be copied.
    pub(super) overlay: bool,
    /// What is not possible, each with the machine's reason.
    pub(super) missing: Vec<String>,
}

/// Reads and writes messages, waiting for both.
#[derive(Debug)]
pub(super) struct Wire(UnixStream);

impl Wire {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self(socket)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Sends a message, with open files beside it: at most [`MOST_FILES`].
    pub(super) fn send<M: Serialize>(&self, message: &M, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = encode(message)?;
        let sent = send_some(&self.0, &bytes, files)?;
        let mut rest = &bytes[sent..];
        while !rest.is_empty() {
            let sent = send_some(&self.0, rest, &[])?;
            rest = &rest[sent..];
        }
        Ok(())
    }

    /// The next message, and what came with it. `None` when the other side has gone.
    pub(super) fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        let mut files = Vec::new();
        let mut head = [0; HEAD];
        if !self.fill(&mut head, &mut files)? {
            return Ok(None);
        }
        let mut body = vec![0; length(head)?];
        if !self.fill(&mut body, &mut files)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some((decode(&body)?, files)))
    }

    /// What the runtime says next; `None` once it has gone.
    pub(super) fn next_word(&self) -> Option<Word> {
        self.receive().ok().flatten().map(|(word, _)| word)
    }

    /// Whether there was something before the end.
    fn fill(&self, buffer: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match receive_some(&self.0, &mut buffer[filled..], files)? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => filled += more,
            }
        }
        Ok(true)
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A message as it is sent.
pub(super) fn encode<M: Serialize>(message: &M) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - HEAD;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "command and environment are too long"));
    }
    let head = u32::try_from(length).map_err(io::Error::other)?.to_be_bytes();
    bytes[..HEAD].copy_from_slice(&head);
    Ok(bytes)
}

/// A message from what was sent.
pub(super) fn decode<M: DeserializeOwned>(body: &[u8]) -> io::Result<M> {
    Ok(serde_json::from_slice(body)?)
}

/// How long the message after this head is.
pub(super) fn length(head: [u8; HEAD]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_be_bytes(head)).map_err(io::Error::other)?;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no message is that long"));
    }
    Ok(length)
}

/// Sends what fits, and the files with it.
pub(super) fn send_some(socket: impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many files for one message"));
    }
    #[cfg(target_os = "linux")]
    let flags = SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::empty();
    let sent = rustix::io::retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut beside, flags))?;
    Ok(sent)
}

/// Receives what is there, 0 at the end, and adds the files that came with it. They are closed on exec.
pub(super) fn receive_some(
    socket: impl AsFd,
    buffer: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    let received =
        rustix::io::retry_on_intr(|| recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut beside, flags))?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    #[cfg(not(target_os = "linux"))]
    for file in files.iter() {
        rustix::io::fcntl_setfd(file, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_with_their_files() {
        let (left, right) = UnixStream::pair().unwrap();
        let (left, right) = (Wire::new(left), Wire::new(right));
        let long = Report::Failed(Failure("x".repeat(1 << 20)));
        let sent = long.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                left.send(&sent, &[]).unwrap();
                left.send(&Report::Terminal, &[io::stdin().as_fd(), io::stdout().as_fd()]).unwrap();
                drop(left);
            });
            assert_eq!(right.receive::<Report>().unwrap().unwrap().0, long);
            let (report, files) = right.receive::<Report>().unwrap().unwrap();
            assert_eq!((report, files.len()), (Report::Terminal, 2));
            assert!(right.receive::<Report>().unwrap().is_none());
        });
    }

    #[test]
    fn a_length_that_no_message_has_is_an_error() {
        assert!(length([0xff; HEAD]).is_err());
    }
}
