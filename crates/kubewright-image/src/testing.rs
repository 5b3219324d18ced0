//! Makes images for tests: of layers written by hand, as the layouts and archives that `kubewright image load` takes.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::{
    Digest,
    oci::{CONFIG, IMAGE_NAME, LAYER, MANIFEST},
    platform::Platform,
    store::removal,
};

/// A folder of its own for one test, removed at its end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one; the name is to tell whose it is.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(test: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "kubewright-image-{test}-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        let _ = removal::remove(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = removal::remove(&self.0);
    }
}

/// A layer: the files of an archive, in order.
#[derive(Clone, Debug, Default)]
pub struct TestLayer {
    entries: Vec<u8>,
    owner: (u32, u32),
}

impl TestLayer {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says to whom what is added from now on belongs: a user and a group. At first that is root.
    #[must_use]
    pub fn owned_by(self, uid: u32, gid: u32) -> Self {
        Self { owner: (uid, gid), ..self }
    }

    /// Adds a file.
    #[must_use]
    pub fn file(self, path: &str, mode: u32, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, path, mode, content)
    }

    /// Adds a folder.
    #[must_use]
    pub fn folder(self, path: &str, mode: u32) -> Self {
        self.entry(EntryType::Directory, path, mode, b"")
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.link(EntryType::Symlink, path, target)
    }

    /// Adds a further name of a file.
    #[must_use]
    pub fn hard_link(self, path: &str, target: &str) -> Self {
        self.link(EntryType::Link, path, target)
    }

    /// Adds a whiteout.
    #[must_use]
    pub fn whiteout(self, path: &str) -> Self {
        self.file(path, 0o644, b"")
    }

    /// Adds an entry of this kind. The path goes into the archive as it is, also when no honest archive would have it; it has
    /// at most 100 bytes.
    #[must_use]
    pub fn entry(mut self, kind: EntryType, path: &str, mode: u32, content: &[u8]) -> Self {
        let mut header = self.header(kind, path, mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.entries.extend(header.as_bytes());
        self.entries.extend(content);
        self.entries.resize(self.entries.len().next_multiple_of(512), 0);
        self
    }

    fn link(mut self, kind: EntryType, path: &str, target: &str) -> Self {
        let mut header = self.header(kind, path, 0o777);
        if let Some(gnu) = header.as_gnu_mut() {
            gnu.linkname[..target.len()].copy_from_slice(target.as_bytes());
        }
        header.set_cksum();
        self.entries.extend(header.as_bytes());
        self
    }

    fn header(&self, kind: EntryType, path: &str, mode: u32) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(self.owner.0.into());
        header.set_gid(self.owner.1.into());
        header.set_mtime(1_700_000_000);
        header.set_size(0);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header
    }

    /// The archive.
    #[must_use]
    pub fn archive(&self) -> Vec<u8> {
        [&self.entries[..], &[0; 1024]].concat()
    }
}

/// An image for this machine.
#[derive(Clone, Debug)]
pub struct TestImage {
    layers: Vec<Vec<u8>>,
    config: Value,
}

impl TestImage {
    /// One of these layers, whose configuration has this `config` (OCI's `config.md`).
    #[must_use]
    pub fn new(layers: &[TestLayer], config: &Value) -> Self {
        let layers: Vec<Vec<u8>> = layers.iter().map(TestLayer::archive).collect();
        let here = Platform::here();
        let diff_ids: Vec<Digest> = layers.iter().map(|layer| Digest::of(layer)).collect();
        let config = json!({
            "architecture": here.architecture, "os": here.os, "created": "2026-01-02T03:04:05Z", "config": config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        Self { layers, config }
    }

    /// One of a static busybox, at `$BUSYBOX` or `/bin/busybox` if this machine has one: that program, and a link to it for
    /// each of these commands; the first of them is what it runs.
    #[must_use]
    pub fn busybox(commands: &[&str]) -> Option<Self> {
        let program = fs::read(std::env::var_os("BUSYBOX").unwrap_or_else(|| "/bin/busybox".into())).ok()?;
        let folders = TestLayer::new().folder("bin", 0o755).folder("tmp", 0o1777).folder("etc", 0o755);
        let users = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
        let base = folders.file("etc/passwd", 0o644, users).file("bin/busybox", 0o755, &program);
        let layer = commands
            .iter()
            .fold(base, |layer, command| layer.hard_link(&format!("bin/{command}"), "bin/busybox"));
        Some(Self::new(&[layer], &json!({"Cmd": commands.get(..1), "Env": ["PATH=/bin"]})))
    }

    /// Says that the image is for another machine.
    #[must_use]
    pub fn built_for(mut self, architecture: &str) -> Self {
        self.config["architecture"] = architecture.into();
        self
    }

    /// Compresses the layers.
    #[must_use]
    pub fn compressed(mut self, compress: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        self.layers = self.layers.iter().map(|layer| compress(layer)).collect();
        self
    }

    /// The digest of its configuration.
    #[must_use]
    pub fn id(&self) -> Digest {
        Digest::of(self.config.to_string().as_bytes())
    }

    /// Writes its blobs into an OCI image layout, and gives what points to its manifest.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn blobs(&self, layout: &Path) -> io::Result<Value> {
        let config = blob(layout, CONFIG, self.config.to_string().as_bytes())?;
        let layers = self.layers.iter().map(|layer| blob(layout, LAYER, layer));
        let layers = layers.collect::<io::Result<Vec<Value>>>()?;
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        blob(layout, MANIFEST, manifest.to_string().as_bytes())
    }

    /// Writes an OCI image layout with this image under these names; under none if there are none.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn layout(&self, layout: &Path, names: &[&str]) -> io::Result<()> {
        let plain = self.blobs(layout)?;
        let named = |name: &&str| {
            let mut descriptor = plain.clone();
            descriptor["annotations"] = json!({ IMAGE_NAME: name });
            descriptor
        };
        let manifests =
            if names.is_empty() { vec![plain.clone()] } else { names.iter().map(named).collect() };
        index(layout, &manifests)
    }

    /// What `docker save` writes of this image under these names.
    #[must_use]
    pub fn docker_save(&self, names: &[&str]) -> Vec<u8> {
        let config = format!("{}.json", self.id().hex());
        let layers: Vec<String> =
            self.layers.iter().map(|layer| format!("{}/layer.tar", Digest::of(layer).hex())).collect();
        let manifest = json!([{"Config": config, "RepoTags": names, "Layers": layers}]);
        let mut files = vec![(config, self.config.to_string().into_bytes())];
        files.extend(layers.into_iter().zip(self.layers.clone()));
        files.push(("manifest.json".to_owned(), manifest.to_string().into_bytes()));
        archive(&files)
    }
}

/// Writes the `index.json` of an OCI image layout.
///
/// # Errors
/// When the folder cannot be written to.
pub fn index(layout: &Path, manifests: &[Value]) -> io::Result<()> {
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    fs::write(layout.join("index.json"), json!({"schemaVersion": 2, "manifests": manifests}).to_string())
}

/// Writes a blob into an OCI image layout, and gives what points to it.
///
/// # Errors
/// When the folder cannot be written to.
pub fn blob(layout: &Path, media_type: &str, bytes: &[u8]) -> io::Result<Value> {
    let (folder, digest) = (layout.join("blobs/sha256"), Digest::of(bytes));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(digest.hex()), bytes)?;
    Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
}

/// An archive of these files, by name and content.
#[must_use]
pub fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        let added = builder.append_data(&mut header, name, &content[..]);
        added.expect("archives in memory take what they are given");
    }
    builder.into_inner().expect("archives in memory take what they are given")
}

/// An archive of a folder.
///
/// # Errors
/// When the folder cannot be read, or the file cannot be written.
pub fn archive_folder(folder: &Path, to: &Path) -> io::Result<()> {
    let mut builder = Builder::new(File::create(to)?);
    builder.append_dir_all("", folder)?;
    builder.into_inner()?.flush()
}

/// Compresses by gzip.
#[must_use]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    compressed.expect("memory takes what it is given")
}
