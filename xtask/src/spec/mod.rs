//! `cargo xtask spec`: what Kubewright knows of a version of Kubernetes, made from what is published of it. The programs are
//! built from their Go modules, a kube-apiserver is started on loopback and asked, and the Go types are read by reflection
//! (`xtask/spec-go`). Nothing is written by hand: what a version changes is read with `--diff`.

mod columns;
mod diff;
mod gates;
mod reference;
mod resources;
mod roles;
mod table;
mod types;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::run::{find, workspace};
use reference::Asked;

/// Where the tables of all versions stand.
const FOLDER: &str = "crates/kubewright-spec/spec";

/// The releases that the tables are of.
pub(crate) const RELEASES: [&str; 3] = ["1.35.4", "1.36.3", "1.37.2"];

/// What `cargo xtask spec` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these versions: 1.36, or 1.38.0 for a release that has no tables yet
    #[arg(value_name = "VERSION")]
    versions: Vec<String>,
    /// Compare with the tables that are there, and write nothing
    #[arg(long)]
    check: bool,
    /// Print what the tables of the second version have that the first lacks, and the reverse
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["versions", "check"])]
    diff: Option<Vec<String>>,
}

/// The files of one version, by their names.
type Tables = BTreeMap<&'static str, String>;

/// Writes the tables, or compares them.
///
/// # Errors
/// When the programs cannot be built or started, an answer is not understood, or with `--check` a table differs.
pub(crate) fn spec(options: &Options) -> Result<()> {
    if let Some([old, new]) = options.diff.as_deref() {
        return diff::print(&folder(old), &folder(new));
    }
    let mut differing = Vec::new();
    for release in chosen(&options.versions)? {
        if options.check {
            differing.extend(different(&release)?);
            continue;
        }
        let folder = folder(minor(&release));
        for (name, text) in &make(&reference::ask(&release)?)? {
            let path = folder.join(name);
            fs::create_dir_all(&folder)?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    as_kubernetes_says(&differing)
}

/// Compares the tables of a release with a running server of it.
///
/// # Errors
/// When it cannot be asked, or a table differs.
pub(crate) fn check(release: &str) -> Result<()> {
    as_kubernetes_says(&different(release)?)
}

/// Whether a server of the release can be asked without building anything of Kubernetes; if not, why.
///
/// # Errors
/// The reason.
pub(crate) fn can_be_asked(release: &str) -> Result<(), String> {
    if find("go").is_none() {
        return Err("there is no Go".to_owned());
    }
    match reference::is_built(release) {
        true => Ok(()),
        false => Err(format!(
            "its kube-apiserver and etcd are neither in KUBE_REFERENCE nor in ~/.cache/kube-reference-{release}"
        )),
    }
}

/// The tables of a release that are not what a running server of it says.
fn different(release: &str) -> Result<Vec<String>> {
    let folder = folder(minor(release));
    let tables = make(&reference::ask(release)?)?;
    let paths = tables.iter().map(|(name, text)| (folder.join(name), text));
    let differing = paths.filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text));
    Ok(differing.map(|(path, _)| path.display().to_string()).collect())
}

fn as_kubernetes_says(differing: &[String]) -> Result<()> {
    if !differing.is_empty() {
        bail!("not what Kubernetes says: {}; write them with `cargo xtask spec`", differing.join(", "));
    }
    Ok(())
}

/// The releases that are meant: all that there are tables of, if none is named.
fn chosen(versions: &[String]) -> Result<Vec<String>> {
    if versions.is_empty() {
        return Ok(RELEASES.map(str::to_owned).to_vec());
    }
    let release = |version: &String| {
        if version.matches('.').count() == 2 {
            return Ok(version.clone());
        }
        let known = RELEASES.iter().find(|release| minor(release) == version);
        known
            .map(|release| (*release).to_owned())
            .with_context(|| format!("of {version} no release is known: name one, such as {version}.0"))
    };
    versions.iter().map(release).collect()
}

/// `1.36` of `1.36.3`.
pub(crate) fn minor(release: &str) -> &str {
    match release.match_indices('.').nth(1) {
        Some((end, _)) => &release[..end],
        None => release,
    }
}

fn folder(minor: &str) -> PathBuf {
    workspace().join(FOLDER).join(format!("v{minor}"))
}

/// All tables of a version.
fn make(asked: &Asked) -> Result<Tables> {
    let release = &asked.release;
    let head = |about: &str| format!("# Kubernetes v{release}: {about} Made by `cargo xtask spec`.\n");
    let resources = resources::read(&asked.json("api.json")?, &asked.json("apis.json")?)?;
    let types = types::read(&asked.json("openapi-v2.json")?, &asked.schemas()?, &resources)?;
    let answers = asked.tables()?;
    let roles = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]
        .map(|kind| asked.json(&format!("{kind}.json")).map(|list| (kind, list)));
    let roles: Vec<(&str, Value)> = roles.into_iter().collect::<Result<_>>()?;
    Ok([
        (
            "resources.txt",
            head("what is served by default, in the order of discovery.") + &resources::write(&resources),
        ),
        ("definitions.txt", head("the types of OpenAPI, without what facts.txt says.") + &types.definitions),
        ("facts.txt", head("how lists and maps merge, enumerations, defaults.") + &types.facts),
        ("fields.txt", head("the fields of the Go types.") + FIELDS_HEAD + &asked.text("fields.txt")?),
        (
            "structs.txt",
            head("internal structs that messages show.") + STRUCTS_HEAD + &asked.text("structs.txt")?,
        ),
        ("tags.txt", head("the tags of declarative validation.") + &asked.text("tags.txt")?),
        ("columns.txt", head("the columns of tables.") + &columns::write(&answers)?),
        ("roles.txt", head("the roles and bindings of a new cluster.") + &roles::write(&roles)?),
        (
            "gates.txt",
            head("feature gates, their stage and default.") + &gates::write(&asked.text("metrics.txt")?),
        ),
    ]
    .into())
}

const FIELDS_HEAD: &str = "\
#
# [package/version.Type]
# number name type [name of the type]   in the order of the type: number on the wire (0: protobuf does not know it); name in JSON, or \".\" where the type is inlined
#
# Types: string, bool, int32, int64, double, bytes; a type (of the same package when it has no dot); []T a list,
#   {}T a map from strings; strings, a message that is a plain list in JSON (ExtraValue);
#   time, microtime, quantity, intstr, json, schema-or-bool, schema-or-list, schema-or-strings.
# Then \"?\" a pointer; \"!\" written although it is empty (no `omitempty`, or a struct, which that does not omit).
# Last, where the type is no struct and has a name in Go, or is made of such: that name, as Go's messages tell it.
";

const STRUCTS_HEAD: &str = "\
#
# [group.Type]
# Name name type   in the order of the type: its name in Go, or \".\" where the type is inlined; its name in JSON of the published type
#
# Types: those of fields.txt, all with the group or package before the name; \"*\" a pointer.
";

/// Reads one file of a folder of tables.
fn read_table(folder: &Path, name: &str) -> Result<String> {
    let path = folder.join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stands_for_its_release() {
        let chosen =
            |versions: &[&str]| chosen(&versions.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(chosen(&["1.36", "1.38.1"]).unwrap(), ["1.36.3", "1.38.1"]);
        assert_eq!(chosen(&[]).unwrap(), RELEASES);
        assert!(chosen(&["1.34"]).unwrap_err().to_string().contains("name one, such as 1.34.0"));
        assert_eq!((minor("1.36.3"), minor("1.36")), ("1.36", "1.36"));
    }
}
