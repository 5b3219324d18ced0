//! The list of images of a store. It is that of an OCI image layout, and so is the store: others can read it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use crate::{
    Digest, Error, Reference,
    oci::{Descriptor, IMAGE_NAME, INDEX_FILE, Index, LAYOUT, LAYOUT_FILE, REF_NAME},
};

/// The list of builds that a name stood for where it came from.
const LIST: &str = "kubewright.dev/index";

/// An image in the list: under one name, or under none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// What it is called.
    pub(super) name: Option<Reference>,
    /// Its manifest, or the list of builds that it was chosen from: what its name stands for in registries.
    pub(super) target: Digest,
    /// Its manifest.
    pub(super) manifest: Descriptor,
}

/// The list of images of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries(pub(super) Vec<Entry>);

impl Entries {
    /// The list in this folder; an empty one where there is none yet.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(INDEX_FILE);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(Error::io("read", &path))?,
        };
        let index: Index = serde_json::from_slice(&bytes)
            .map_err(|error| Error::Damaged(format!("{}: {error}", path.display())))?;
        index.manifests.into_iter().map(Entry::of).collect::<Result<_, _>>().map(Self)
    }

    /// Replaces the list in this folder, in one step; it is on the disk when this returns.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let index = Index { manifests: self.0.iter().map(Entry::descriptor).collect(), ..Index::default() };
        let bytes = serde_json::to_vec_pretty(&index).unwrap_or_default();
        let layout = folder.join(LAYOUT_FILE);
        if !layout.exists() {
            fs::write(&layout, LAYOUT).map_err(Error::io("write", &layout))?;
        }
        let (path, new) = (folder.join(INDEX_FILE), folder.join("index.json.new"));
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(folder)?.sync_all()
        });
        written.map_err(Error::io("write", &path))
    }

    /// Gives an image its names, which others lose; what has no other is not in the list any more.
    pub(super) fn insert(&mut self, names: &BTreeSet<Reference>, target: Digest, manifest: &Descriptor) {
        let replaced = |entry: &Entry| entry.name.as_ref().is_some_and(|name| names.contains(name));
        self.0.retain(|entry| !replaced(entry));
        let entry = |name| Entry { name, target, manifest: manifest.clone() };
        if names.is_empty() && !self.0.iter().any(|entry| entry.manifest.digest == manifest.digest) {
            self.0.push(entry(None));
        }
        if !names.is_empty() {
            self.0.retain(|entry| entry.name.is_some() || entry.manifest.digest != manifest.digest);
            self.0.extend(names.iter().cloned().map(|name| entry(Some(name))));
        }
    }

    /// The manifests, each once, in the order of the images' names.
    pub(super) fn manifests(&self) -> Vec<&Descriptor> {
        let mut entries: Vec<&Entry> = self.0.iter().collect();
        entries.sort_by_key(|entry| (entry.name.is_none(), &entry.name, entry.manifest.digest));
        let mut seen = BTreeSet::new();
        let manifests = entries.into_iter().map(|entry| &entry.manifest);
        manifests.filter(|manifest| seen.insert(manifest.digest)).collect()
    }
}

impl Entry {
    fn of(mut descriptor: Descriptor) -> Result<Self, Error> {
        let annotations = std::mem::take(&mut descriptor.annotations);
        let damaged = |error: &dyn std::fmt::Display| Error::Damaged(format!("{INDEX_FILE}: {error}"));
        let name =
            annotations.get(IMAGE_NAME).map(|name| Reference::parse(name).map_err(|error| damaged(&error)));
        let list = annotations.get(LIST).map(|list| list.parse::<Digest>().map_err(|error| damaged(&error)));
        Ok(Self {
            name: name.transpose()?,
            target: list.transpose()?.unwrap_or(descriptor.digest),
            manifest: descriptor,
        })
    }

    fn descriptor(&self) -> Descriptor {
        let mut descriptor = self.manifest.clone();
        let mut annotate = |key: &str, value: String| descriptor.annotations.insert(key.to_owned(), value);
        if let Some(name) = &self.name {
            annotate(IMAGE_NAME, name.to_string());
            name.tag().map(|tag| annotate(REF_NAME, tag.to_owned()));
        }
        if self.target != self.manifest.digest {
            annotate(LIST, self.target.to_string());
        }
        descriptor
    }
}
