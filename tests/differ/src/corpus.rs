//! Objects that a real API server took, by kind: those of the recorded conversations, and a few of kinds that these have not.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Kinds that no recording creates.
const MORE: &str = include_str!("corpus.json");

/// Objects by `(group/version, kind)`, and values by the name of the field that they stood in.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    objects: BTreeMap<(String, String), Vec<Value>>,
    values: BTreeMap<String, Vec<Value>>,
}

impl Corpus {
    /// Reads folders of recordings.
    ///
    /// # Errors
    /// Where a file cannot be read, or is no recording.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut corpus = Self::default();
        for object in serde_json::from_str::<Vec<Value>>(MORE)? {
            corpus.take(&object);
        }
        corpus.read_folder(folder)?;
        Ok(corpus)
    }

    /// These objects.
    pub(crate) fn of(objects: &[Value]) -> Self {
        let mut corpus = Self::default();
        objects.iter().for_each(|object| corpus.take(object));
        corpus
    }

    fn read_folder(&mut self, folder: &Path) -> Result<()> {
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .with_context(|| format!("reading {}", folder.display()))?
            .collect::<Result<_, _>>()?;
        files.sort_by_key(std::fs::DirEntry::path);
        for file in files {
            let path = file.path();
            if path.is_dir() {
                self.read_folder(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read_to_string(&path)?;
                let recording: Value =
                    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
                for step in recording["steps"].as_array().into_iter().flatten() {
                    if step["method"] == "POST" && step["expect"]["status"] == 201 {
                        self.take(&step["body"]);
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, object: &Value) {
        let (Some(version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str()) else {
            return;
        };
        let text = object.to_string();
        if version.contains('$') || text.replace("${run}", "").replace("${ns}", "").contains("${") {
            return;
        }
        let (version, kind) = (version.to_owned(), kind.to_owned());
        let Ok(object) = serde_json::from_str::<Value>(&text.replace("${run}", "run").replace("${ns}", "ns"))
        else {
            return;
        };
        self.remember("", &object);
        let known = self.objects.entry((version, kind)).or_default();
        if !known.contains(&object) {
            known.push(object);
        }
    }

    fn remember(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    self.remember(key, value);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.remember(name, item);
                }
            }
            _ => {}
        }
        let known = self.values.entry(name.to_owned()).or_default();
        if known.len() < 40 && !known.contains(value) {
            known.push(value.clone());
        }
    }

    /// The objects of a kind.
    pub(crate) fn objects(&self, version: &str, kind: &str) -> &[Value] {
        self.objects.get(&(version.to_owned(), kind.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// What stood in fields of a name.
    pub(crate) fn values(&self, field: &str) -> &[Value] {
        self.values.get(field).map_or(&[], Vec::as_slice)
    }
}
