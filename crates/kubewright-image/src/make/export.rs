//! Writes a layout as one file.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::{
    Error,
    oci::{IMAGE_NAME, INDEX_FILE, Index, LAYOUT, LAYOUT_FILE, Manifest},
};

/// Writes the image of a [layout that was made here](super::Recipe::make) as an archive that is both an OCI image layout and
/// what `docker save` writes (as Docker's own is since its version 25): `docker load`, `podman load`, `ctr images import` and
/// `kubewright image load` read it. The same image gives the same bytes. A file that is there is replaced when the new one is
/// whole.
///
/// # Errors
/// When the layout cannot be read, or the file cannot be written.
pub fn export(layout: &Path, to: &Path) -> Result<(), Error> {
    let read = |path: &Path| fs::read(path).map_err(Error::io("read", path));
    let index_file = read(&layout.join(INDEX_FILE))?;
    let damaged = |error: serde_json::Error| Error::Damaged(format!("{}: {error}", layout.display()));
    let index: Index = serde_json::from_slice(&index_file).map_err(damaged)?;
    let Some(image) = index.manifests.first() else {
        return Err(Error::Damaged(format!("{} has no image", layout.display())));
    };
    let blob = |digest: crate::Digest| format!("blobs/sha256/{}", digest.hex());
    let manifest: Manifest =
        serde_json::from_slice(&read(&layout.join(blob(image.digest)))?).map_err(damaged)?;
    let tags = index.manifests.iter().filter_map(|image| image.annotations.get(IMAGE_NAME));
    let layers: Vec<String> = manifest.layers.iter().map(|layer| blob(layer.digest)).collect();
    let config = blob(manifest.config.digest);
    let tags: Vec<String> = tags.map(|tag| familiar(tag)).collect();
    let docker: Value = json!([{"Config": config, "RepoTags": tags, "Layers": layers}]);
    let mut blobs: Vec<String> = layers;
    blobs.extend([config, blob(image.digest)]);
    blobs.sort();
    blobs.dedup();
    // Into a pipe or a terminal it is written as it comes.
    let aside = match fs::metadata(to) {
        Ok(there) if !there.is_file() => to.to_owned(),
        _ => beside(to),
    };
    let written = File::create(&aside).and_then(|file| {
        let mut archive = Builder::new(io::BufWriter::new(file));
        for name in ["blobs/", "blobs/sha256/"] {
            append(&mut archive, name, EntryType::Directory, 0, io::empty())?;
        }
        for name in &blobs {
            let file = File::open(layout.join(name))?;
            let size = file.metadata()?.len();
            append(&mut archive, name, EntryType::Regular, size, file)?;
        }
        let docker = docker.to_string();
        for (name, content) in [
            (INDEX_FILE, &index_file[..]),
            ("manifest.json", docker.as_bytes()),
            (LAYOUT_FILE, LAYOUT.as_bytes()),
        ] {
            append(&mut archive, name, EntryType::Regular, content.len() as u64, content)?;
        }
        archive.into_inner()?.flush()?;
        if aside == to { Ok(()) } else { fs::rename(&aside, to) }
    });
    if written.is_err() && aside != to {
        let _ = fs::remove_file(&aside);
    }
    written.map_err(Error::io("write", to))
}

/// Where a file is made that is to have this name.
fn beside(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    to.with_file_name(format!(".{name}.{}", std::process::id()))
}

/// A name as `docker save` writes it.
fn familiar(name: &str) -> String {
    crate::Reference::parse(name).map_or_else(|_| name.to_owned(), |reference| reference.familiar())
}

fn append(
    archive: &mut Builder<impl Write>,
    name: &str,
    kind: EntryType,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory { 0o755 } else { 0o644 });
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    archive.append_data(&mut header, name, content)
}
