//! Reads a log back, and waits for what is not written yet.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use futures::Stream;
use tokio::sync::watch;

use super::filter::Filter;
use super::write::Growing;
use super::{Options, tail};

const BLOCK: usize = 64 << 10;

/// What a log says. `growing` is the log of a container that may still write: without it there is nothing to follow.
/// Of a log that was rotated only the newest file is read, as the kubelet does; a follower goes on with the next.
///
/// # Errors
/// There is no such log, or it cannot be read.
pub fn read(
    path: &Path,
    options: Options,
    growing: Option<Growing>,
) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
    let growing = growing.filter(|_| options.follow);
    let (mut file, rotations) = match &growing {
        Some(growing) => growing.newest()?,
        None => (File::open(path)?, 0),
    };
    if let Some(lines) = options.tail {
        let start = tail::start(&mut file, lines)?;
        file.seek(SeekFrom::Start(start))?;
    }
    let changes = growing.as_ref().map(Growing::changes);
    let follow = growing.zip(changes).map(|(growing, changes)| Follow { growing, changes, rotations });
    let reader = Reader { file, filter: Filter::new(options), follow, ended: false };
    Ok(futures::stream::try_unfold(reader, Reader::next))
}

struct Reader {
    file: File,
    filter: Filter,
    follow: Option<Follow>,
    ended: bool,
}

struct Follow {
    growing: Growing,
    changes: watch::Receiver<()>,
    /// How many files were before the one that is read.
    rotations: u64,
}

impl Reader {
    /// The next piece that is not empty.
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        let mut shown = Vec::new();
        let mut block = vec![0; BLOCK];
        while shown.is_empty() {
            if self.ended || self.filter.is_done() {
                return Ok(None);
            }
            // What is known before the end of the file is seen holds of all that is in it.
            let (rotations, whole) = match &mut self.follow {
                Some(follow) => {
                    follow.changes.mark_unchanged();
                    follow.growing.state()
                }
                None => (0, true),
            };
            let length = self.file.read(&mut block)?;
            if length > 0 {
                self.filter.feed(&block[..length], &mut shown)?;
                continue;
            }
            match &mut self.follow {
                Some(follow) if rotations > follow.rotations => {
                    (self.file, follow.rotations) = follow.growing.after(follow.rotations)?;
                }
                Some(follow) if !whole => {
                    // Its writer lets go of it only once it is whole, which the next round sees.
                    let _ = follow.changes.changed().await;
                }
                _ => {
                    self.filter.finish(&mut shown);
                    self.ended = true;
                }
            }
        }
        Ok(Some((Bytes::from(shown), self)))
    }
}
