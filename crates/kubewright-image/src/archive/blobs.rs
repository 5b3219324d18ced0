//! What images consist of, found by digest or by name, checked and taken out of a source.

use std::{collections::BTreeMap, path::PathBuf};

use serde::de::DeserializeOwned;

use super::files::Files;
use crate::{
    Digest, Error,
    oci::{ConfigFile, Descriptor, Manifest},
    platform::Platform,
    store::Workspace,
};

/// What images consist of, as it is taken out of a source.
pub(super) struct Blobs<'a> {
    files: &'a Files,
    workspace: &'a Workspace,
    taken: BTreeMap<Digest, (PathBuf, u64)>,
}

impl<'a> Blobs<'a> {
    pub(super) fn new(files: &'a Files, workspace: &'a Workspace) -> Self {
        Self { files, workspace, taken: BTreeMap::new() }
    }

    /// The files of what was taken.
    pub(super) fn taken(self) -> BTreeMap<Digest, PathBuf> {
        self.taken.into_iter().map(|(digest, (path, _))| (digest, path)).collect()
    }

    /// A document of this name, which nothing has the digest of.
    pub(super) fn named_document<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        parse(name, &self.files.document(name)?)
    }

    /// A document that a descriptor points to, checked; it is not taken.
    pub(super) fn document<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, Error> {
        let name = name(descriptor);
        let bytes = self.files.document(&name)?;
        check(&name, descriptor, Digest::of(&bytes), bytes.len() as u64)?;
        parse(&name, &bytes)
    }

    /// Takes what a descriptor points to.
    pub(super) fn take(&mut self, descriptor: &Descriptor) -> Result<(), Error> {
        let name = name(descriptor);
        if let Some((_, size)) = self.taken.get(&descriptor.digest) {
            return check(&name, descriptor, descriptor.digest, *size);
        }
        let taken = self.files.take(&name, self.workspace)?;
        check(&name, descriptor, taken.digest, taken.size)?;
        self.taken.insert(taken.digest, (taken.path, taken.size));
        Ok(())
    }

    /// Takes the file of this name, and points to it.
    pub(super) fn take_named(&mut self, media_type: &str, name: &str) -> Result<Descriptor, Error> {
        let taken = self.files.take(name, self.workspace)?;
        let descriptor = Descriptor::new(media_type, taken.digest, taken.size);
        self.taken.entry(taken.digest).or_insert((taken.path, taken.size));
        Ok(descriptor)
    }

    /// Takes what was made here, and points to it.
    pub(super) fn add(&mut self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, Error> {
        let path = self.workspace.path();
        std::fs::write(&path, bytes).map_err(Error::io("write", &path))?;
        let descriptor = Descriptor::new(media_type, Digest::of(bytes), bytes.len() as u64);
        self.taken.entry(descriptor.digest).or_insert((path, descriptor.size));
        Ok(descriptor)
    }
}

/// Where OCI's layout keeps what a descriptor points to.
fn name(descriptor: &Descriptor) -> String {
    format!("blobs/sha256/{}", descriptor.digest.hex())
}

/// Checks that a file is what a descriptor says.
fn check(name: &str, descriptor: &Descriptor, digest: Digest, size: u64) -> Result<(), Error> {
    if size != descriptor.size {
        let expected = descriptor.size;
        return Err(Error::archive(format!(
            "it is damaged: {name} has {size} bytes and should have {expected}"
        )));
    }
    if digest != descriptor.digest {
        return Err(Error::archive(format!("it is damaged: the content of {name} is {digest}")));
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::archive(format!("{name} is not as it should be: {error}")))
}

/// Checks that manifest and configuration are those of a container image for this machine.
pub(super) fn check_image(manifest: &Manifest, config: &ConfigFile) -> Result<(), Error> {
    let other = |what: &str, media_type: &str| {
        Err(Error::archive(format!(
            "it is no container image that can be run here: its {what} is {media_type:?}"
        )))
    };
    if !manifest.config.is_config() {
        return other("configuration", &manifest.config.media_type);
    }
    if let Some(layer) = manifest.layers.iter().find(|layer| !layer.is_layer()) {
        return other("layer", &layer.media_type);
    }
    let (layers, diff_ids) = (manifest.layers.len(), config.diff_ids().len());
    if layers != diff_ids {
        let told =
            format!("it is damaged: it has {layers} layers, and its configuration speaks of {diff_ids}");
        return Err(Error::archive(told));
    }
    let (here, built) = (Platform::here(), config.platform());
    if !built.architecture.is_empty() && here.rank(built).is_none() {
        return Err(Error::archive(format!(
            "it is built for {built}, and this machine runs what is built for {here}"
        )));
    }
    Ok(())
}
