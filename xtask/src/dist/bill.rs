//! The bill of materials of programs: the crates in them (CycloneDX 1.6, <https://cyclonedx.org/docs/1.6/json/>).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::run::{cargo, workspace};

/// Writes that of some packages of the workspace for a target.
pub(super) fn write(triple: &str, packages: &[&str], path: &Path) -> Result<()> {
    let metadata =
        cargo(["metadata", "--locked", "--format-version", "1", "--filter-platform", triple]).output()?;
    ensure!(metadata.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let lock = fs::read_to_string(workspace().join("Cargo.lock"))?;
    let bill = bill(&metadata, &checksums(&lock)?, packages)?;
    Ok(fs::write(path, serde_json::to_string_pretty(&bill)? + "\n")?)
}

/// The checksums that a lock file has, by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml_edit::DocumentMut = lock.parse()?;
    let packages = lock["package"].as_array_of_tables().context("a lock file without packages")?;
    let text = |package: &toml_edit::Table, key: &str| package.get(key)?.as_str().map(str::to_owned);
    Ok(packages
        .iter()
        .filter_map(|one| Some(((text(one, "name")?, text(one, "version")?), text(one, "checksum")?)))
        .collect())
}

fn bill(metadata: &Value, checksums: &BTreeMap<(String, String), String>, roots: &[&str]) -> Result<Value> {
    let all = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let by_id: BTreeMap<&str, &Value> =
        all.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo metadata resolves nothing")?;
    let needs: BTreeMap<&str, BTreeSet<&str>> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, compiled(node)))).collect();
    let is_root = |id: &&str| roots.iter().any(|root| by_id[id]["name"] == **root);
    let mut next: Vec<&str> = by_id.keys().copied().filter(is_root).collect();
    ensure!(next.len() == roots.len(), "not all of {roots:?} are packages");
    let mut inside = BTreeSet::new();
    while let Some(id) = next.pop() {
        if inside.insert(id) {
            next.extend(needs.get(id).into_iter().flatten().copied());
        }
    }
    let version = inside.iter().find(|id| is_root(id)).map(|id| &by_id[id]["version"]);
    let components = inside.iter().map(|id| component(by_id[id], checksums));
    let dependencies = inside.iter().map(|id| {
        let needs: Vec<String> = needs.get(id).into_iter().flatten().map(|need| purl(by_id[need])).collect();
        json!({"ref": purl(by_id[id]), "dependsOn": needs})
    });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "kubewright", "version": version}},
        "components": components.collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    }))
}

/// What of a package's dependencies is in the program, or makes code of it; not what its tests need.
fn compiled(node: &Value) -> BTreeSet<&str> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    let is_compiled = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"] != "dev")
    };
    dependencies.filter(is_compiled).filter_map(|dependency| dependency["pkg"].as_str()).collect()
}

/// A package's URL (<https://github.com/package-url/purl-spec>).
fn purl(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version").replace('+', "%2B"))
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "purl": purl(package),
        "name": text("name"),
        "version": text("version"),
        "licenses": [{"expression": text("license").replace('/', " OR ")}],
    });
    if let Some(checksum) = checksums.get(&(text("name"), text("version"))) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_what_a_program_is_made_of_and_not_what_its_tests_need() {
        let package =
            |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let need = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("a"), package("b"), package("c"), package("d"), package("e")],
            "resolve": {"nodes": [
                {"id": "a", "deps": [need("b", Value::Null), need("c", json!("dev"))]},
                {"id": "b", "deps": [need("d", json!("build"))]},
                {"id": "e", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"b\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let bill = bill(&metadata, &checksums(lock).expect("a lock file"), &["a"]).expect("a bill");
        let components = bill["components"].as_array().expect("components");
        let names: Vec<&Value> = components.iter().map(|component| &component["name"]).collect();
        assert_eq!(names, ["a", "b", "d"]);
        assert_eq!(components[1]["hashes"][0]["content"], "abc");
        assert_eq!(components[1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            bill["dependencies"][0],
            json!({"ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@1.0.0"]})
        );
    }
}
