//! What `docker save` writes (`github.com/moby/docker-image-spec`): `manifest.json` lists images, with the names of their
//! files.

use serde::Deserialize;

use super::{
    FoundImage,
    blobs::{Blobs, check_image},
    name,
};
use crate::{
    Error,
    oci::{CONFIG, ConfigFile, LAYER, MANIFEST, Manifest},
};

/// The file that lists the images.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// An image in [`MANIFEST_FILE`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Option<Vec<String>>,
}

/// All the images. They have no manifests, so each is given one: that of OCI.
pub(super) fn images(blobs: &mut Blobs<'_>) -> Result<Vec<FoundImage>, Error> {
    let items: Vec<Item> = blobs.named_document(MANIFEST_FILE)?;
    items.into_iter().map(|item| image(item, blobs)).collect()
}

fn image(item: Item, blobs: &mut Blobs<'_>) -> Result<FoundImage, Error> {
    let file: ConfigFile = blobs.named_document(&item.config)?;
    let config = blobs.take_named(CONFIG, &item.config)?;
    let layers = item.layers.unwrap_or_default();
    let layers = layers.iter().map(|layer| blobs.take_named(LAYER, layer)).collect::<Result<_, _>>()?;
    let manifest = Manifest { schema_version: 2, media_type: Some(MANIFEST.to_owned()), config, layers };
    check_image(&manifest, &file)?;
    let bytes = serde_json::to_vec(&manifest).map_err(|error| Error::archive(error.to_string()))?;
    let manifest = blobs.add(MANIFEST, &bytes)?;
    let names = item.repo_tags.unwrap_or_default().iter().map(|tag| name(tag)).collect::<Result<_, _>>()?;
    Ok(FoundImage { names, manifest, index: None })
}
