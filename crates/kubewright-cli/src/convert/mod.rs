//! `kubewright convert`: manifests of yesterday in the words of today.
//!
//! What is converted is a pure function from an object to an object and notes ([`object::convert`]); here it is read and written.

mod definition;
mod object;
mod schema;
mod third_party;
mod workload;

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use serde_json::Value;

use self::object::{Converted, Note};
use crate::args::ConvertArgs;

/// The exit status when something could not be carried over.
const LOSSY: u8 = 3;

/// Converts what is named, all of it or nothing; 3 when something could not be carried over.
///
/// # Errors
/// When something cannot be read, is no manifest, or is of a version that is not known.
pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    let mut lossy = false;
    for source in sources(&args.paths)? {
        for converted in documents(&source)? {
            for note in &converted.notes {
                let _ = writeln!(io::stderr(), "{}: {}: {note}", source.name, converted.what);
            }
            lossy |= converted.notes.iter().any(Note::is_loss);
            text += &written(&converted)?;
        }
    }
    match &args.output {
        Some(path) => fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?,
        None => io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")?,
    }
    Ok(if lossy { ExitCode::from(LOSSY) } else { ExitCode::SUCCESS })
}

/// A file, or what came in.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What the paths name: files, standard input (`-`), and the manifests of folders in the order of their names.
///
/// # Errors
/// When one cannot be read, or a folder has none.
pub(crate) fn sources(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            sources.push(Source { name: "-".to_owned(), text });
        } else if path.is_dir() {
            let found = manifests(path).with_context(|| format!("cannot read {}", path.display()))?;
            if found.is_empty() {
                bail!("there is no .yaml, .yml or .json in {}", path.display());
            }
            for file in found {
                sources.push(read(&file)?);
            }
        } else {
            sources.push(read(path)?);
        }
    }
    Ok(sources)
}

fn read(path: &Path) -> anyhow::Result<Source> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Source { name: path.display().to_string(), text })
}

fn manifests(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_manifest = |path: &Path| {
            path.extension()
                .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        };
        if path.is_file() && is_manifest(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The objects of a text, converted. Lists are taken apart, empty documents left out.
fn documents(source: &Source) -> anyhow::Result<Vec<Converted>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&source.text)
        .map_err(|error| anyhow::anyhow!("{}: no YAML: {error}", source.name))?;
    let mut converted = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        for object in items(document) {
            converted.push(object::convert(object).with_context(|| source.name.clone())?);
        }
    }
    if converted.is_empty() {
        bail!("{}: there is no object in it", source.name);
    }
    Ok(converted)
}

/// The items of a `v1 List`, or the object itself.
pub(crate) fn items(mut document: Value) -> Vec<Value> {
    // As Quarkus writes `target/kubernetes/kubernetes.json`.
    if let Value::Array(objects) = document {
        return objects;
    }
    let says = |field: &str, wanted: &str| document.get(field).and_then(Value::as_str) == Some(wanted);
    let is_list = says("apiVersion", "v1") && says("kind", "List");
    match document.get_mut("items") {
        Some(Value::Array(items)) if is_list => std::mem::take(items),
        _ => vec![document],
    }
}

/// A document, with what there is to say of it in front.
fn written(converted: &Converted) -> anyhow::Result<String> {
    let mut text = "---\n".to_owned();
    for note in &converted.notes {
        text += &format!("# {note}\n");
    }
    text += serde_saphyr::to_string(&converted.object)?.trim_end();
    text += "\n";
    Ok(text)
}

#[cfg(test)]
mod tests;
