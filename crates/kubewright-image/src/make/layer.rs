//! The one layer of an image that is made here.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder, write::GzEncoder};
use tar::{Builder, EntryType, Header};

use super::{Recipe, USER};
use crate::{Digest, Error, digest::Hasher};

/// Where programs look for the certificates of authorities (Debian's place).
pub(super) const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n\
                      nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n";
/// Names of hosts: first those that the kubelet wrote down, then DNS.
const NSSWITCH: &str = "hosts: files dns\n";

/// A layer that was written.
pub(super) struct Layer {
    /// Of what was written, which is compressed.
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// Of it uncompressed.
    pub(super) diff_id: Digest,
}

/// What is in a layer.
enum Entry {
    Folder { mode: u32, owner: u64 },
    Text(&'static str),
    File { path: PathBuf, mode: u32 },
}

impl Layer {
    /// Writes it into a folder of blobs.
    pub(super) fn write(recipe: &Recipe<'_>, blobs: &Path) -> Result<Self, Error> {
        let temporary = blobs.join("layer");
        let file = File::create(&temporary).map_err(Error::io("write", &temporary))?;
        let compressed = GzBuilder::new().write(Counted::new(io::BufWriter::new(file)), Compression::new(6));
        let mut archive = Builder::new(Counted::new(compressed));
        for (name, entry) in entries(recipe) {
            append(&mut archive, &name, &entry, recipe.time)?;
        }
        let finished = archive.into_inner().and_then(finish);
        let layer = finished.map_err(Error::io("write", &temporary))?;
        let path = blobs.join(layer.digest.hex());
        fs::rename(&temporary, &path).map_err(Error::io("write", &path))?;
        Ok(layer)
    }
}

/// Its entries in the order of their names, each folder before what is in it.
fn entries(recipe: &Recipe<'_>) -> Vec<(String, Entry)> {
    let folder = || Entry::Folder { mode: 0o755, owner: 0 };
    let mut entries = vec![
        ("etc/".to_owned(), folder()),
        ("etc/group".to_owned(), Entry::Text(GROUP)),
        ("etc/nsswitch.conf".to_owned(), Entry::Text(NSSWITCH)),
        ("etc/passwd".to_owned(), Entry::Text(PASSWD)),
    ];
    if let Some(path) = recipe.authorities {
        entries.push(("etc/ssl/".to_owned(), folder()));
        entries.push(("etc/ssl/certs/".to_owned(), folder()));
        entries.push((AUTHORITIES.to_owned(), Entry::File { path: path.to_owned(), mode: 0o644 }));
    }
    entries.push(("home/".to_owned(), folder()));
    entries.push(("home/nonroot/".to_owned(), Entry::Folder { mode: 0o700, owner: USER }));
    entries.push(("tmp/".to_owned(), Entry::Folder { mode: 0o1777, owner: 0 }));
    for name in ["usr/", "usr/local/", "usr/local/bin/"] {
        entries.push((name.to_owned(), folder()));
    }
    let program = Entry::File { path: recipe.program.to_owned(), mode: 0o755 };
    entries.push((recipe.path().trim_start_matches('/').to_owned(), program));
    entries
}

fn append(archive: &mut Builder<impl Write>, name: &str, entry: &Entry, time: u32) -> Result<(), Error> {
    let mut header = Header::new_ustar();
    header.set_mtime(time.into());
    let (mode, owner) = match entry {
        Entry::Folder { mode, owner } => (*mode, *owner),
        Entry::Text(_) => (0o644, 0),
        Entry::File { mode, .. } => (*mode, 0),
    };
    header.set_mode(mode);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_entry_type(EntryType::Regular);
    header.set_size(0);
    let written = |result: io::Result<()>| result.map_err(Error::io("put into the image", Path::new(name)));
    match entry {
        Entry::Folder { .. } => {
            header.set_entry_type(EntryType::Directory);
            written(archive.append_data(&mut header, name, io::empty()))
        }
        Entry::Text(text) => {
            header.set_size(text.len() as u64);
            written(archive.append_data(&mut header, name, text.as_bytes()))
        }
        Entry::File { path, .. } => {
            let file = File::open(path).map_err(Error::io("read", path))?;
            header.set_size(file.metadata().map_err(Error::io("read", path))?.len());
            written(archive.append_data(&mut header, name, file))
        }
    }
}

fn finish<W: Write>(archive: Counted<GzEncoder<Counted<W>>>) -> io::Result<Layer> {
    let (diff_id, _, encoder) = archive.finish();
    let (digest, size, mut file) = encoder.finish()?.finish();
    file.flush()?;
    Ok(Layer { digest, size, diff_id })
}

/// A writer that keeps the digest and the size of what goes through it.
struct Counted<W> {
    hasher: Hasher,
    size: u64,
    inner: W,
}

impl<W> Counted<W> {
    fn new(inner: W) -> Self {
        Self { hasher: Hasher::new(), size: 0, inner }
    }

    fn finish(self) -> (Digest, u64, W) {
        (self.hasher.finish(), self.size, self.inner)
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
