//! OCI image layouts (`image-layout.md`): `index.json` points to manifests, or to lists of the builds of an image.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    FoundImage,
    blobs::{Blobs, check_image},
    name,
};
use crate::{
    Digest, Error, Reference,
    oci::{ConfigFile, Descriptor, IMAGE_NAME, INDEX_FILE, Index, Manifest, REF_NAME},
    platform::Platform,
};

/// How deep lists may be in lists.
const MAX_DEPTH: usize = 4;

/// The images of a layout: of each that there are several builds of, the one for this machine.
pub(super) fn images(blobs: &mut Blobs<'_>) -> Result<Vec<FoundImage>, Error> {
    let index: Index = blobs.named_document(INDEX_FILE)?;
    let mut images = BTreeMap::<Digest, FoundImage>::new();
    for Named { names, builds } in by_name(index.manifests)? {
        let (manifest, index) = choose(builds, blobs)?;
        take(&manifest, blobs)?;
        let image = FoundImage { names: Vec::new(), manifest, index };
        images.entry(image.manifest.digest).or_insert(image).names.extend(names);
    }
    Ok(images.into_values().collect())
}

/// An image of an `index.json`.
struct Named {
    names: BTreeSet<Reference>,
    /// What there is of it, for one machine or several.
    builds: Vec<Descriptor>,
}

impl Named {
    /// Whether a descriptor with these names is of the same image: it has the same names, or neither has a name and both are
    /// for a machine.
    fn has(&self, names: &BTreeSet<Reference>, descriptor: &Descriptor) -> bool {
        let for_machines =
            || descriptor.platform.is_some() && self.builds.iter().all(|build| build.platform.is_some());
        self.names == *names && (!names.is_empty() || for_machines())
    }
}

/// The images of an `index.json`, each with its names and builds.
fn by_name(descriptors: Vec<Descriptor>) -> Result<Vec<Named>, Error> {
    let mut images = Vec::<Named>::new();
    for descriptor in descriptors {
        let names = names(&descriptor)?;
        match images.iter_mut().find(|image| image.has(&names, &descriptor)) {
            Some(image) => image.builds.push(descriptor),
            None => images.push(Named { names, builds: vec![descriptor] }),
        }
    }
    Ok(images)
}

/// What a layout calls an image. Just a tag names nothing.
fn names(descriptor: &Descriptor) -> Result<BTreeSet<Reference>, Error> {
    let annotation = |key| descriptor.annotations.get(key);
    let reference = annotation(REF_NAME).filter(|text| text.contains(['/', ':', '@']));
    annotation(IMAGE_NAME).or(reference).into_iter().map(|text| name(text)).collect()
}

/// The manifest for this machine among several builds, and the list that it was found in.
fn choose(mut builds: Vec<Descriptor>, blobs: &Blobs<'_>) -> Result<(Descriptor, Option<Digest>), Error> {
    let mut list = None;
    for _ in 0..MAX_DEPTH {
        let build = best(builds)?;
        if !build.is_index() {
            return Ok((build, list));
        }
        list.get_or_insert(build.digest);
        builds = blobs.document::<Index>(&build)?.manifests;
    }
    Err(Error::archive(format!("its index.json has more than {MAX_DEPTH} lists in lists")))
}

/// The build for this machine; one that says nothing of machines if there is no other.
pub(crate) fn best(mut builds: Vec<Descriptor>) -> Result<Descriptor, Error> {
    let here = Platform::here();
    let ranked = builds.iter().enumerate().filter_map(|(at, build)| match &build.platform {
        Some(platform) => Some((here.rank(platform)?, at)),
        None => Some((usize::MAX, at)),
    });
    if let Some((_, at)) = ranked.min() {
        return Ok(builds.swap_remove(at));
    }
    let there = builds.iter().filter_map(|build| Some(build.platform.as_ref()?.to_string()));
    let there: Vec<String> = there.collect::<BTreeSet<_>>().into_iter().take(20).collect();
    let only = if there.is_empty() { String::new() } else { format!(", only for {}", there.join(", ")) };
    Err(Error::archive(format!("it has no image for {here}{only}")))
}

/// Takes all that a manifest speaks of.
fn take(descriptor: &Descriptor, blobs: &mut Blobs<'_>) -> Result<(), Error> {
    if !descriptor.is_manifest() {
        let told = format!("it holds {:?}, which is no image", descriptor.media_type);
        return Err(Error::archive(told));
    }
    let manifest: Manifest = blobs.document(descriptor)?;
    let config: ConfigFile = blobs.document(&manifest.config)?;
    check_image(&manifest, &config)?;
    blobs.take(descriptor)?;
    blobs.take(&manifest.config)?;
    manifest.layers.iter().try_for_each(|layer| blobs.take(layer))
}
