//! Whether the objects that are stored can live with definitions that are about to be applied. An API server does not ask: it
//! takes a stricter schema, drops what that does not know, and refuses what is not valid when it is written the next time.

use std::fmt::Write;

use anyhow::{anyhow, bail};
use clap::Args;
use kube::{Client, ResourceExt, api::DynamicObject};
use kubewright_schema::{Candidate, Extent, Schema};
use serde_json::Value;

use super::{
    Objects, refused,
    stored::{Pages, placed, resource, resource_in},
};

/// How many objects of a version are told.
const TOLD: usize = 10;

/// What becomes of objects that are stored.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct StoredArgs {
    /// Apply definitions without looking whether the objects that are stored are valid under them
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// A version of a definition.
struct Version<'a> {
    name: &'a str,
    served: bool,
    schema: &'a Value,
}

/// What is to be looked at: objects as they are read in a version, and the schemas of before and after.
struct SchemaChange<'a> {
    through: &'a str,
    version: &'a str,
    before: Schema,
    after: Schema,
}

/// Refuses definitions under which objects that are stored would no longer be valid, or could no longer be read. Definitions
/// that are new, or have the schemas that they had, ask for nothing.
///
/// # Errors
/// When there are such objects: how many, and the first of them, each with what the API server would say; or when nobody can
/// tell.
pub(crate) async fn check(
    objects: &mut Objects,
    definitions: &[DynamicObject],
    args: StoredArgs,
) -> anyhow::Result<()> {
    if args.yes {
        return Ok(());
    }
    let mut found = String::new();
    for after in definitions {
        let name = after.name_any();
        let there = objects.api(after).await?.get_opt(&name).await;
        let there = there.map_err(|error| refused(&format!("{name} cannot be read"), &error))?;
        let Some(before) = there else { continue };
        let findings = findings(objects.client(), &before, after).await.map_err(|error| {
            let what = format!("cannot tell whether the stored objects of {name} would still be valid");
            anyhow!("{:#}; --yes applies it without looking", refused(&what, &error))
        })?;
        found += &findings;
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "objects that are stored are in the way:\n{found}nothing was applied. Have the new schema take them (a default, an optional \
         field), or change them first; --yes applies it all the same"
    )
}

/// What stands in the way of a definition, a line for each.
async fn findings(client: &Client, before: &DynamicObject, after: &DynamicObject) -> kube::Result<String> {
    let mut found = String::new();
    for version in lost_versions(before, after) {
        if has_objects(client, before).await? {
            let _ = writeln!(found, "{}: {version}", after.name_any());
        }
    }
    for change in schema_changes(before, after) {
        found += &change.findings(client, before).await?;
    }
    Ok(found)
}

/// Versions that objects may be stored in, and that nobody could read any more. One that is merely not served can be: that is how
/// a version is retired.
fn lost_versions(before: &DynamicObject, after: &DynamicObject) -> Vec<String> {
    let stored = before.data["status"]["storedVersions"].as_array().into_iter().flatten();
    let lost =
        stored.filter_map(Value::as_str).filter(|name| !versions(after).any(|version| version.name == *name));
    let findings = lost.map(|name| {
        format!(
            "version {name} would go away, and objects may be stored in it; keep it until all were written in another one, and it \
             is no longer in status.storedVersions"
        )
    });
    findings.collect()
}

async fn has_objects(client: &Client, definition: &DynamicObject) -> kube::Result<bool> {
    let Some(resource) = resource(definition) else { return Ok(false) };
    Ok(Pages::of(client, &resource).next().await?.is_some_and(|objects| !objects.is_empty()))
}

/// The versions whose objects a definition has another schema for: those that stay, and new ones that nobody converts for.
fn schema_changes<'a>(before: &'a DynamicObject, after: &'a DynamicObject) -> Vec<SchemaChange<'a>> {
    let is_converted = after.data["spec"]["conversion"]["strategy"] == "Webhook";
    let readable = resource(before).map(|resource| resource.version);
    let same = |name: &str| versions(before).find(|old| old.served && old.name == name);
    let read = || versions(before).find(|old| !is_converted && readable.as_deref() == Some(old.name));
    let changes = versions(after).filter(|version| version.served).filter_map(|version| {
        let old = same(version.name).or_else(read)?;
        (old.schema != version.schema).then(|| SchemaChange {
            through: old.name,
            version: version.name,
            before: Schema::custom(old.schema),
            after: Schema::custom(version.schema),
        })
    });
    changes.collect()
}

fn versions(definition: &DynamicObject) -> impl Iterator<Item = Version<'_>> {
    let versions = definition.data["spec"]["versions"].as_array().into_iter().flatten();
    versions.map(|version| Version {
        name: version["name"].as_str().unwrap_or_default(),
        served: version["served"] == true,
        schema: &version["schema"]["openAPIV3Schema"],
    })
}

impl SchemaChange<'_> {
    /// The objects that would not be valid, told.
    async fn findings(&self, client: &Client, definition: &DynamicObject) -> kube::Result<String> {
        let Some(resource) = resource_in(definition, self.through) else { return Ok(String::new()) };
        let (mut all, mut wrong, mut lines) = (0_usize, 0_usize, String::new());
        let mut pages = Pages::of(client, &resource);
        while let Some(objects) = pages.next().await? {
            all += objects.len();
            for object in &objects {
                let Some(why) = self.refusal(object) else { continue };
                if wrong < TOLD {
                    let _ = writeln!(lines, "  {}: {why}", placed(object));
                }
                wrong += 1;
            }
        }
        if wrong == 0 {
            return Ok(String::new());
        }
        if wrong > TOLD {
            let _ = writeln!(lines, "  and {} more", wrong - TOLD);
        }
        let (name, version) = (definition.name_any(), self.version);
        Ok(format!("{name}: {wrong} of {all} objects would not be valid in {version}:\n{lines}"))
    }

    /// What the API server would say against an object, but for what it would have said before.
    fn refusal(&self, object: &DynamicObject) -> Option<String> {
        let object = kubewright_objects::to_value(object).ok()?;
        let mut findings = against(&self.after, object.clone());
        if findings.is_empty() {
            return None;
        }
        let known = against(&self.before, object);
        findings.retain(|what| !known.contains(what));
        (!findings.is_empty()).then(|| findings.join(", "))
    }
}

/// What the API server says against an object under a schema: fields that it does not know and would drop, then what is not
/// valid.
fn against(schema: &Schema, mut object: Value) -> Vec<String> {
    let mut findings = match schema.decode(&mut object) {
        Ok(unknown) => unknown.into_iter().map(|field| format!("unknown field {field:?}")).collect(),
        Err(why) => vec![why],
    };
    schema.default(&mut object);
    let version = kubewright_spec::Version::DEFAULT;
    let candidate = Candidate { object: &object, old: None, part: Extent::Whole, version };
    let mut errors = schema.value_errors(candidate);
    errors.extend(schema.structure_errors(candidate));
    let (broken, _) = schema.rule_errors(candidate, &errors);
    errors.extend(broken);
    findings.extend(errors.iter().map(ToString::to_string));
    findings
}

#[cfg(test)]
mod tests;
