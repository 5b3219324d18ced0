//! `kubewright image`: the images of this machine.

use std::{io, path::Path};

use anyhow::{Context, anyhow};
use clap::Args;
use kubewright_image::{
    Digest, Image, Loaded, Reference, Source, Store,
    registry::{Client, Credentials, Event},
};

use crate::{
    args::{ImageArgs, ImageCommand},
    output::print,
};

/// How much of an id is shown, as by crictl.
const SHORT_ID: usize = 13;

/// What stands where there is no name or no tag.
const NONE: &str = "<none>";

/// Does what was asked for.
///
/// # Errors
/// When there is no such image, something is no image, or the store cannot be had.
pub(crate) async fn run(args: &ImageArgs) -> anyhow::Result<()> {
    let store = store(args.image_store.as_deref())?;
    match &args.command {
        ImageCommand::Load { name, path } => load(&store, path, name.as_ref()),
        ImageCommand::Push { reference, registry } => push(&store, reference, *registry).await,
        ImageCommand::Pull { reference, registry } => pull(&store, reference, *registry).await,
        ImageCommand::List => print(&table(&store.list()?)),
        ImageCommand::Remove { references } => references.iter().try_for_each(|text| remove(&store, text)),
        ImageCommand::Inspect { reference } => {
            let image = store.find(reference)?.ok_or_else(|| unknown(reference))?;
            print(&format!("{}\n", serde_json::to_string_pretty(&image)?))
        }
    }
}

/// The images of this machine, in this folder or where the environment says.
///
/// # Errors
/// When the folder cannot be had.
pub(crate) fn store(folder: Option<&Path>) -> anyhow::Result<Store> {
    let folder = folder.map_or_else(Store::default_path, |folder| Ok(folder.to_owned()))?;
    Store::open(&folder)
        .map_err(|error| anyhow!("{error}; name another place with --image-store or KUBEWRIGHT_IMAGES"))
}

/// How registries are talked to.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct RegistryArgs {
    /// Talk to the registry without TLS if it has none; those on this machine need no permission
    #[arg(long)]
    insecure: bool,
}

impl RegistryArgs {
    fn client(self) -> anyhow::Result<Client> {
        Ok(Client::new(Credentials::of_user(), self.insecure)?)
    }
}

/// Pushes an image of an OCI image layout to where its name says.
///
/// # Errors
/// When the registry refuses.
pub(crate) async fn push_layout(
    registry: RegistryArgs,
    layout: &Path,
    manifest: Digest,
    name: &Reference,
) -> anyhow::Result<()> {
    let pushed = registry.client()?.push(layout, manifest, name, transferred).await;
    pushed.with_context(|| format!("cannot push {}", name.familiar()))?;
    print(&format!("Pushed   {}@{manifest}\n", name.familiar()))
}

async fn push(store: &Store, text: &str, registry: RegistryArgs) -> anyhow::Result<()> {
    let name = crate::args::tagged_reference(text).map_err(|reason| {
        anyhow!("cannot push {text:?}: {reason}; `kubewright image load --name` gives an image a name")
    })?;
    let manifest = store.manifest(&name)?.ok_or_else(|| unknown(text))?;
    push_layout(registry, store.folder(), manifest, &name).await
}

async fn pull(store: &Store, name: &Reference, registry: RegistryArgs) -> anyhow::Result<()> {
    let pulled = registry.client()?.pull(name, store, transferred).await;
    let loaded = pulled.with_context(|| format!("cannot pull {}", name.familiar()))?;
    let digests = loaded.image.repo_digests.iter().filter(|digest| digest.name() == name.name());
    let digests: String = digests.map(|digest| format!("Digest   {digest}\n")).collect();
    print(&(digests + &describe(&loaded)))
}

/// Says what happens to the pieces of an image.
fn transferred(event: Event) {
    let _ = match event {
        Event::Exists(digest) => print(&format!("{}: is there\n", &digest.hex()[..SHORT_ID])),
        Event::Begins(digest, bytes) => print(&format!("{}: {}\n", &digest.hex()[..SHORT_ID], size(bytes))),
        Event::Done(_) => Ok(()),
    };
}

fn load(store: &Store, path: &Path, name: Option<&Reference>) -> anyhow::Result<()> {
    let loaded = match path.to_str() {
        Some("-") => {
            store.load(Source::Stream(&mut io::stdin().lock()), name).context("cannot load standard input")
        }
        _ => store.load(Source::Path(path), name).with_context(|| format!("cannot load {}", path.display())),
    }?;
    print(&loaded.iter().map(describe).collect::<String>())
}

/// What is said of an image that was loaded.
fn describe(loaded: &Loaded) -> String {
    let id = loaded.image.id;
    if loaded.names.is_empty() {
        return format!("Loaded {id}, which has no name; load it again with --name to give it one\n");
    }
    loaded.names.iter().map(|name| format!("Loaded {name} ({id})\n")).collect()
}

fn remove(store: &Store, text: &str) -> anyhow::Result<()> {
    let removed = store.remove(text)?.ok_or_else(|| unknown(text))?;
    let untagged = removed.names.iter().map(|name| format!("Untagged {name}\n"));
    let deleted = removed.image.iter().map(|id| format!("Deleted {id}\n"));
    print(&untagged.chain(deleted).collect::<String>())
}

fn unknown(text: &str) -> anyhow::Error {
    anyhow!("there is no image {text:?}; `kubewright image list` shows those that are there")
}

/// The images as crictl lists them: a line for each name.
fn table(images: &[Image]) -> String {
    let mut rows = vec![["IMAGE", "TAG", "IMAGE ID", "SIZE"].map(str::to_owned)];
    for image in images {
        let (id, size) = (image.id.hex()[..SHORT_ID].to_owned(), size(image.size));
        let row = |name: String, tag: &str| [name, tag.to_owned(), id.clone(), size.clone()];
        match &image.references[..] {
            [] => rows
                .push(row(image.repo_digests.first().map_or_else(|| NONE.to_owned(), Reference::name), NONE)),
            names => rows.extend(names.iter().map(|name| row(name.name(), name.tag().unwrap_or(NONE)))),
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths = [0, 1, 2].map(width);
    let line = |[image, tag, id, size]: &[String; 4]| {
        let [first, second, third] = widths;
        format!("{image:first$}   {tag:second$}   {id:third$}   {size}\n")
    };
    rows.iter().map(line).collect()
}

/// A size with three digits, as Docker's go-units writes it.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut unit = 0;
    // Only how it looks is at stake.
    #[allow(clippy::cast_precision_loss)]
    let mut value = bytes as f64;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, expected) in [
            (0, "0B"),
            (999, "999B"),
            (1_000, "1.00kB"),
            (2_230_000, "2.23MB"),
            (23_456_789, "23.5MB"),
            (734_567_890, "735MB"),
            (u64::MAX, "18.4EB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
