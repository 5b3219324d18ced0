//! `kubewright image`: the images of this machine.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use kubewright_image::{Image, Loaded, Reference, Source, Store};

use crate::args::{ImageArgs, ImageCommand};

/// How much of an id is shown, as by crictl.
const SHORT_ID: usize = 13;

/// What stands where there is no name or no tag.
const NONE: &str = "<none>";

/// Does what was asked for.
///
/// # Errors
/// When there is no such image, something is no image, or the store cannot be had.
pub(crate) fn run(args: &ImageArgs) -> anyhow::Result<()> {
    let folder = match &args.image_store {
        Some(folder) => folder.clone(),
        None => Store::default_path()?,
    };
    let store = Store::open(&folder)
        .map_err(|error| anyhow!("{error}; name another place with --image-store or KUBEWRIGHT_IMAGES"))?;
    match &args.command {
        ImageCommand::Load { name, path } => load(&store, path, name.as_ref()),
        ImageCommand::List => tell(&table(&store.list()?)),
        ImageCommand::Remove { references } => references.iter().try_for_each(|text| remove(&store, text)),
        ImageCommand::Inspect { reference } => {
            let image = store.find(reference)?.ok_or_else(|| unknown(reference))?;
            tell(&format!("{}\n", serde_json::to_string_pretty(&image)?))
        }
    }
}

fn load(store: &Store, path: &Path, name: Option<&Reference>) -> anyhow::Result<()> {
    let loaded = match path.to_str() {
        Some("-") => {
            store.load(Source::Stream(&mut io::stdin().lock()), name).context("cannot load standard input")
        }
        _ => store.load(Source::Path(path), name).with_context(|| format!("cannot load {}", path.display())),
    }?;
    tell(&loaded.iter().map(told).collect::<String>())
}

/// What is said of an image that was loaded.
fn told(loaded: &Loaded) -> String {
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
    tell(&untagged.chain(deleted).collect::<String>())
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
fn size(bytes: u64) -> String {
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

/// Says something to whoever reads standard output; that may be nobody any more.
fn tell(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
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
