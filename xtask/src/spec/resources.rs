//! What a version serves, from its aggregated discovery: `resources.txt`.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

/// A resource or subresource.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// `apps/v1`.
    pub(super) version: String,
    /// `deployments` or `deployments/scale`.
    pub(super) name: String,
    /// Group, version and kind of its objects.
    pub(super) kind: [String; 3],
    namespaced: bool,
    singular: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
}

/// The versions of all groups, in the order of discovery.
pub(super) fn versions(core: &Value, groups: &Value) -> Vec<String> {
    entries(core).chain(entries(groups)).map(|(version, _)| version).collect()
}

fn entries(list: &Value) -> impl Iterator<Item = (String, &Value)> {
    let groups = list["items"].as_array().into_iter().flatten();
    groups.flat_map(|group| {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        let versions = group["versions"].as_array().into_iter().flatten();
        versions.map(move |one| {
            let version = one["version"].as_str().unwrap_or_default();
            (if name.is_empty() { version.to_owned() } else { format!("{name}/{version}") }, one)
        })
    })
}

/// What the two documents of discovery say.
///
/// # Errors
/// When a resource has no name or kind.
pub(super) fn read(core: &Value, groups: &Value) -> Result<Vec<Resource>> {
    let mut all = Vec::new();
    for (version, entry) in entries(core).chain(entries(groups)) {
        for one in entry["resources"].as_array().into_iter().flatten() {
            let parent = one["resource"].as_str().context("a resource has a name")?;
            let namespaced = one["scope"] == "Namespaced";
            all.push(resource(&version, parent.to_owned(), namespaced, one)?);
            for below in one["subresources"].as_array().into_iter().flatten() {
                let name = below["subresource"].as_str().context("a subresource has a name")?;
                all.push(resource(&version, format!("{parent}/{name}"), namespaced, below)?);
            }
        }
    }
    Ok(all)
}

fn resource(version: &str, name: String, namespaced: bool, one: &Value) -> Result<Resource> {
    let words = |key: &str| -> Vec<String> {
        let list = one[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let kind = &one["responseKind"];
    let text = |key: &str| kind[key].as_str().unwrap_or_default().to_owned();
    let (own_group, own_version) = version.rsplit_once('/').unwrap_or(("", version));
    let mut kind = [text("group"), text("version"), text("kind")];
    if kind[2].is_empty() {
        anyhow::bail!("{name} of {version} has no kind");
    }
    // Left empty where it is that of the resource.
    if kind[1].is_empty() {
        (kind[0], kind[1]) = (own_group.to_owned(), own_version.to_owned());
    }
    Ok(Resource {
        version: version.to_owned(),
        name,
        kind,
        namespaced,
        singular: one["singularResource"].as_str().unwrap_or_default().to_owned(),
        verbs: words("verbs"),
        short_names: words("shortNames"),
        categories: words("categories"),
    })
}

/// A section for each group and version, a line for each resource.
pub(super) fn write(all: &[Resource]) -> String {
    let mut text = String::from(
        "#\n# [group/version]\n# resource group/version/kind scope verbs singular=.. short=.. categories=..\n",
    );
    let mut section = "";
    for one in all {
        if one.version != section {
            section = &one.version;
            writeln!(text, "[{section}]").expect("a String takes it");
        }
        let scope = if one.namespaced { "namespaced" } else { "cluster" };
        let gvk = one.kind.join("/");
        write!(text, "{} {} {scope} {}", one.name, gvk.trim_start_matches('/'), one.verbs.join(","))
            .expect("a String takes it");
        for (key, words) in [
            ("singular", one.singular.clone()),
            ("short", one.short_names.join(",")),
            ("categories", one.categories.join(",")),
        ] {
            if !words.is_empty() {
                write!(text, " {key}={words}").expect("a String takes it");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_and_what_is_below_them_are_lines_of_their_version() {
        let scale = json!({"subresource": "scale", "verbs": ["get"],
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}});
        let groups = json!({"items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
            {"resource": "deployments", "singularResource": "deployment", "scope": "Namespaced", "shortNames": ["deploy"],
             "responseKind": {"group": "apps", "version": "", "kind": "Deployment"}, "verbs": ["get", "list"],
             "subresources": [scale]}]}]}]});
        let read = read(&json!({}), &groups).unwrap();
        let text = write(&read);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            lines,
            [
                "[apps/v1]",
                "deployments apps/v1/Deployment namespaced get,list singular=deployment short=deploy",
                "deployments/scale autoscaling/v1/Scale namespaced get",
            ]
        );
        assert_eq!(versions(&json!({}), &groups), ["apps/v1"]);
    }
}
