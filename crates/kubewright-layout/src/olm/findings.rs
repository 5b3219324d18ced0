//! What is wrong with a bundle, or could be better: what `operator-sdk bundle validate` looks at, in its words where it has
//! some (github.com/operator-framework/api, pkg/validation).

use std::{collections::BTreeSet, fmt};

use semver::Version;
use serde_json::Value;

use crate::inventory::{Inventory, Part, group_version, name};

const CAPABILITIES: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
const CATEGORIES: [&str; 16] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Developer Tools",
    "Drivers and plugins",
    "Database",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
];

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// OLM does not take it.
    Error,
    /// A catalog may not take it, or users miss something.
    Warning,
}

/// Something that is wrong with a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What it is, and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        write!(f, "{level}: {}", self.message)
    }
}

/// All there is to say, errors first.
pub(super) fn findings(csv: &Value, inventory: &Inventory<'_>) -> Vec<Finding> {
    let mut found = Found::default();
    found.names(csv);
    found.words(csv);
    found.kinds(csv, inventory);
    found.program(csv);
    found.0.sort_by_key(|finding| finding.level);
    found.0
}

#[derive(Default)]
struct Found(Vec<Finding>);

impl Found {
    fn error(&mut self, message: impl Into<String>) {
        self.0.push(Finding { level: Level::Error, message: message.into() });
    }

    fn warning(&mut self, message: impl Into<String>) {
        self.0.push(Finding { level: Level::Warning, message: message.into() });
    }

    fn names(&mut self, csv: &Value) {
        let spec = &csv["spec"];
        for (key, value) in [("version", &spec["version"]), ("minKubeVersion", &spec["minKubeVersion"])] {
            match value.as_str() {
                Some(version) if Version::parse(version).is_err() => {
                    self.error(format!(
                        "csv.spec.{key} {version:?} is no version: it has three numbers, such as 1.2.3"
                    ));
                }
                None if key == "minKubeVersion" => self.warning(
                    "csv.spec.minKubeVersion is not informed. It is recommended you provide this information. Otherwise, it \
                     would mean that your operator project can be distributed and installed in any cluster version available, \
                     which is not necessarily the case for all projects. (olm.min-kube-version)",
                ),
                _ => {}
            }
        }
        if let Some(replaced) = spec["replaces"].as_str()
            && Some(replaced) == csv["metadata"]["name"].as_str()
        {
            self.error(format!(
                "csv.spec.replaces is {replaced}, which is this version itself (olm.replaces)"
            ));
        }
    }

    fn words(&mut self, csv: &Value) {
        let spec = &csv["spec"];
        let empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        for (value, key, source) in [
            (&spec["description"], "description", "`description` in Cargo.toml"),
            (&spec["provider"]["name"], "provider.name", "olm.provider"),
            (&spec["maintainers"], "maintainers", "`authors` in Cargo.toml"),
            (&spec["keywords"], "keywords", "`keywords` in Cargo.toml"),
            (&spec["links"], "links", "`homepage` or `repository` in Cargo.toml"),
            (&spec["icon"], "icon", "olm.icon"),
        ] {
            if empty(value) {
                self.warning(format!("csv.Spec.{key} not specified ({source})"));
            }
        }
        for maintainer in spec["maintainers"].as_array().into_iter().flatten() {
            let address = maintainer["email"].as_str().unwrap_or_default();
            if !address.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.')) {
                let name = &maintainer["name"];
                self.error(format!(
                    "csv.Spec.Maintainers email {address:?} of {name} is invalid (`authors` in Cargo.toml: Name <address>)"
                ));
            }
        }
        let annotations = &csv["metadata"]["annotations"];
        let capabilities = annotations["capabilities"].as_str().unwrap_or_default();
        if !CAPABILITIES.contains(&capabilities) {
            self.error(format!(
                "csv.Metadata.Annotations.Capabilities {capabilities:?} is not a valid capabilities level: one of {} \
                 (olm.capabilities)",
                CAPABILITIES.join(", ")
            ));
        }
        let categories = annotations["categories"].as_str().unwrap_or_default();
        for category in categories.split(", ").filter(|category| !category.is_empty()) {
            if !CATEGORIES.contains(&category) {
                self.error(format!(
                    "csv.Metadata.Annotations.Categories {category:?} is not a valid category: one of {} (olm.categories)",
                    CATEGORIES.join(", ")
                ));
            }
        }
    }

    /// Each kind has a description and an example; each example is of a kind.
    fn kinds(&mut self, csv: &Value, inventory: &Inventory<'_>) {
        let examples = csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap_or("[]");
        let examples: Vec<Value> = serde_json::from_str(examples).unwrap_or_default();
        let key =
            |group: &str, kind: &Value| (group.to_owned(), kind.as_str().unwrap_or_default().to_owned());
        let mut shown = BTreeSet::new();
        for example in &examples {
            let (group, _) = group_version(example["apiVersion"].as_str().unwrap_or_default());
            shown.insert(key(group, &example["kind"]));
        }
        for definition in inventory.all(&Part::Definition) {
            let spec = &definition["spec"];
            let group = spec["group"].as_str().unwrap_or_default();
            if !shown.contains(&key(group, &spec["names"]["kind"])) {
                self.warning(format!(
                    "{}: provided API should have an example annotation: put a sample into config/samples",
                    name(definition)
                ));
            }
            for version in spec["versions"].as_array().into_iter().flatten() {
                let schema = &version["schema"]["openAPIV3Schema"];
                let (of, version) = (name(definition), version["name"].as_str().unwrap_or_default());
                if schema["description"].as_str().unwrap_or_default().is_empty() {
                    self.warning(format!(
                        "{of}, version {version}, has no description: write a documentation comment on its type"
                    ));
                }
                if schema["properties"].as_object().is_none_or(serde_json::Map::is_empty) {
                    self.warning(format!("{of}, version {version}, has no validation: its schema is empty"));
                }
            }
        }
    }

    fn program(&mut self, csv: &Value) {
        let deployments = &csv["spec"]["install"]["spec"]["deployments"];
        let containers = &deployments[0]["spec"]["template"]["spec"]["containers"];
        for container in containers.as_array().into_iter().flatten() {
            if container["resources"]["requests"].is_null() {
                self.warning(format!(
                    "unable to find the resource requests for the container: ({}). It is recommended to ensure the resource \
                     request for CPU and Memory. Be aware that for some clusters configurations it is required to specify \
                     requests or limits for those values. Otherwise, the system or quotas may reject Pod creation.",
                    container["name"].as_str().unwrap_or_default()
                ));
            }
        }
    }
}
