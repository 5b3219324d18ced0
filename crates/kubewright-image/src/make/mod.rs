//! Makes an image of one program, without a container engine: the program, a user, and what libraries look for in `/etc`.
//!
//! The same input gives the same bytes: entries are sorted and have one time, nothing says who made them or when.

mod export;
mod layer;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

pub use self::export::export;
use self::layer::Layer;
use crate::{
    Digest, Error, Program, Reference,
    oci::{
        CONFIG, Descriptor, IMAGE_NAME, INDEX_FILE, Index, LAYER, LAYOUT, LAYOUT_FILE, MANIFEST, Manifest,
        REF_NAME,
    },
};

/// The user that the program runs as, by number: `runAsNonRoot` knows no names (distroless has the same).
pub(crate) const USER: u64 = 65532;

/// What an image is made of.
#[derive(Clone, Debug)]
pub struct Recipe<'a> {
    /// The file of the program.
    pub program: &'a Path,
    /// What the program is called in the image: it is in [`Recipe::FOLDER`].
    pub name: &'a str,
    /// Labels, such as those of `org.opencontainers.image`.
    pub labels: BTreeMap<String, String>,
    /// A file of certificates (PEM) of the authorities that the program trusts when it calls others than its API server.
    pub authorities: Option<&'a Path>,
    /// The time of all that is in the image, in seconds since 1970 (`SOURCE_DATE_EPOCH`).
    pub time: u32,
}

/// An image that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its layout.
    pub layout: PathBuf,
    /// The digest of its manifest: what it is called by in registries.
    pub digest: Digest,
    /// The digest of its configuration.
    pub id: Digest,
    /// How many bytes it has: its configuration and its layer.
    pub size: u64,
}

impl Recipe<'_> {
    /// Where the program is in the image.
    pub const FOLDER: &'static str = "/usr/local/bin";

    /// Makes the image, as an OCI image layout where it has these names: a new folder below `layouts`, called by the digest of
    /// its `index.json`. It is made aside and moved to its place when it is whole, and never changes from then on: whoever is
    /// killed leaves what was there, and a folder whose name begins with a dot.
    ///
    /// # Errors
    /// When the program is none for Linux, or a file cannot be read or written.
    pub fn make(&self, layouts: &Path, names: &[Reference]) -> Result<Made, Error> {
        let program = Program::read(self.program)?;
        let new = Unfinished::new(layouts)?;
        let blobs = new.0.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(Error::io("make", &blobs))?;
        let layer = Layer::write(self, &blobs)?;
        let config = self.config(&layer, program.architecture);
        let config = blob(&blobs, CONFIG, config.to_string().as_bytes())?;
        let layers = vec![Descriptor::new(&format!("{LAYER}+gzip"), layer.digest, layer.size)];
        let size = config.size.saturating_add(layer.size);
        let (media_type, id) = (Some(MANIFEST.to_owned()), config.digest);
        let manifest = document(&Manifest { schema_version: 2, media_type, config, layers })?;
        let manifest = blob(&blobs, MANIFEST, &manifest)?;
        let index = write_index(&new.0, &manifest, names)?;
        let layout = new.finish(&layouts.join(index.hex()))?;
        Ok(Made { layout, digest: manifest.digest, id, size })
    }

    /// Where the program is in the image.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", Self::FOLDER, self.name)
    }

    fn config(&self, layer: &Layer, architecture: &str) -> Value {
        let created = jiff::Timestamp::from_second(self.time.into()).unwrap_or_default().to_string();
        let mut env = vec!["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
        env.extend(self.authorities.map(|_| format!("SSL_CERT_FILE=/{}", layer::AUTHORITIES)));
        json!({
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": {
                "User": format!("{USER}:{USER}"),
                "Env": env,
                "Entrypoint": [self.path()],
                "WorkingDir": "/",
                "Labels": self.labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
            "history": [{"created": created, "created_by": "kubewright build"}],
        })
    }
}

/// Writes the `oci-layout` and the `index.json` of a layout with one image, and gives the digest of the latter.
pub(crate) fn write_index(
    layout: &Path,
    manifest: &Descriptor,
    names: &[Reference],
) -> Result<Digest, Error> {
    let named = |name: &Reference| {
        let mut descriptor = manifest.clone();
        descriptor.annotations.insert(IMAGE_NAME.to_owned(), name.to_string());
        descriptor.annotations.extend(name.tag().map(|tag| (REF_NAME.to_owned(), tag.to_owned())));
        descriptor
    };
    let manifests = if names.is_empty() { vec![manifest.clone()] } else { names.iter().map(named).collect() };
    let index = document(&Index { manifests, ..Index::default() })?;
    for (name, content) in [(LAYOUT_FILE, LAYOUT.as_bytes()), (INDEX_FILE, &index)] {
        let path = layout.join(name);
        fs::write(&path, content).map_err(Error::io("write", &path))?;
    }
    Ok(Digest::of(&index))
}

/// Writes a blob into the folder of blobs, and points to it.
fn blob(blobs: &Path, media_type: &str, bytes: &[u8]) -> Result<Descriptor, Error> {
    let descriptor = Descriptor::new(media_type, Digest::of(bytes), bytes.len() as u64);
    let path = blobs.join(descriptor.digest.hex());
    fs::write(&path, bytes).map_err(Error::io("write", &path))?;
    Ok(descriptor)
}

fn document(value: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| Error::archive(error.to_string()))
}

/// A folder beside those that are whole; removed when it does not become one.
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(layouts: &Path) -> Result<Self, Error> {
        let new = layouts.join(format!(".{}", std::process::id()));
        fs::create_dir_all(&new).map_err(Error::io("make", &new))?;
        Ok(Self(new))
    }

    /// Moves it to its place, where there may be one like it.
    fn finish(self, place: &Path) -> Result<PathBuf, Error> {
        match fs::rename(&self.0, place) {
            Err(_) if place.join(INDEX_FILE).is_file() => {}
            moved => moved.map_err(Error::io("write", place))?,
        }
        Ok(place.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
