//! Types of Rust from a CustomResourceDefinition that is somebody else's.

mod literal;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::schema::Structs;
use crate::{
    Error,
    names::{Group, Kind, Plural, Version},
    project::first_line,
};

/// A kind that a definition defines, in one of its versions.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) group: Group,
    pub(crate) version: Version,
    /// What its type is called, which is the kind where that is a name of Rust.
    pub(crate) kind: Kind,
    pub(crate) plural: Plural,
    pub(crate) namespaced: bool,
    /// The file of its types.
    pub(crate) text: String,
}

/// Reads a definition: that of `version`, or of the one that is stored.
///
/// # Errors
/// When the text is no definition of `apiextensions.k8s.io/v1`, has no such version, or has a schema that no type is made of.
pub(crate) fn read(text: &str, version: Option<&Version>) -> Result<Imported, Error> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| Error::Refused(format!("no YAML: {}", first_line(&error.to_string()))))?;
    let is_definition = |document: &&Value| document["kind"] == "CustomResourceDefinition";
    let mut found = documents.iter().filter(is_definition);
    let (Some(definition), None) = (found.next(), found.next()) else {
        return Err(Error::Refused("it must have one CustomResourceDefinition".to_owned()));
    };
    if definition["apiVersion"] != "apiextensions.k8s.io/v1" {
        let remedy = "kubewright convert makes v1 of older ones";
        return Err(Error::Refused(format!(
            "its apiVersion is {}, not apiextensions.k8s.io/v1 ({remedy})",
            definition["apiVersion"]
        )));
    }
    let spec = &definition["spec"];
    let chosen = choose(spec, version)?;
    let kind = text_of(spec, "/names/kind")?;
    let mut imported = Imported {
        group: Group::new(text_of(spec, "/group")?)?,
        version: Version::new(text_of(chosen, "/name")?)?,
        plural: Plural::new(text_of(spec, "/names/plural")?)?,
        namespaced: text_of(spec, "/scope")? == "Namespaced",
        kind: Kind::for_foreign(kind)?,
        text: String::new(),
    };
    imported.text = written(&imported, kind, &chosen["schema"]["openAPIV3Schema"])?;
    Ok(imported)
}

/// The version that is asked for, or that is stored.
fn choose<'a>(spec: &'a Value, version: Option<&Version>) -> Result<&'a Value, Error> {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_it = |candidate: &&Value| match version {
        Some(version) => candidate["name"] == version.as_str(),
        None => candidate["storage"] == true,
    };
    versions.iter().find(is_it).ok_or_else(|| {
        let names: Vec<&str> = versions.iter().filter_map(|version| version["name"].as_str()).collect();
        Error::Refused(format!("it has no such version; its versions are: {}", names.join(", ")))
    })
}

fn text_of<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, Error> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.ok_or_else(|| {
        Error::Refused(format!("the definition has no {}", pointer.trim_start_matches('/').replace('/', ".")))
    })
}

fn written(imported: &Imported, called: &str, schema: &Value) -> Result<String, Error> {
    let (kind, version, group) = (&imported.kind, &imported.version, &imported.group);
    let mut structs = Structs::default();
    let spec = schema.pointer("/properties/spec").filter(|spec| spec["properties"].is_object());
    let Some(spec) = spec else {
        return Err(Error::Refused(format!(
            "{called} has no spec with properties in {version}: no type can be made of it"
        )));
    };
    structs.add(&format!("{kind}Spec"), spec)?;
    let status = schema.pointer("/properties/status").filter(|status| status["properties"].is_object());
    if let Some(status) = status {
        structs.add(&format!("{kind}Status"), status)?;
    }
    let mut says = vec![
        format!("group = \"{group}\""),
        format!("version = \"{version}\""),
        format!("kind = \"{called}\""),
    ];
    says.extend((called != kind.as_str()).then(|| format!("root = \"{kind}\"")));
    says.push(format!("plural = \"{}\"", imported.plural));
    says.extend(imported.namespaced.then(|| "namespaced".to_owned()));
    says.extend(status.map(|_| format!("status = \"{kind}Status\"")));
    let attribute = format!(
        "#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]\n#[kube(\n    {}\n)]\n",
        says.join(",\n    ")
    );
    let head = format!("//! The kind {called} in {version} of {group}, imported from its definition.\n\n");
    Ok(head + &structs.text(&attribute))
}
