//! The `PROJECT` file: how a project was made.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    names::{Domain, Group, Kind, Plural, ProjectName, Version},
};

pub use crate::sdk::Sdk;

/// The name of the file.
pub const PROJECT: &str = "PROJECT";
/// The layout that this version of Kubewright writes and reads.
const LAYOUT: &str = "1";

/// How a project was made: what its `PROJECT` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Project {
    /// Of the layout.
    version: String,
    /// The version of the command that wrote it last.
    pub cli_version: String,
    /// Its name: that of the crate and of the operator.
    pub project_name: ProjectName,
    /// What its groups end with.
    pub domain: Domain,
    /// Whose it is, for the heads of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What others may do with it.
    pub license: License,
    /// The year in the heads of files.
    pub year: i16,
    /// Where the SDK comes from.
    pub sdk: Sdk,
    /// Its kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// What others may do with a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum License {
    /// The Apache License 2.0.
    Apache2,
    /// The MIT License.
    Mit,
    /// Nothing is said.
    None,
}

impl License {
    /// Its name in SPDX's list.
    #[must_use]
    pub fn spdx(self) -> Option<&'static str> {
        match self {
            Self::Apache2 => Some("Apache-2.0"),
            Self::Mit => Some("MIT"),
            Self::None => None,
        }
    }
}

/// A kind that the project is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    /// Its group, without the project's domain.
    pub group: Group,
    /// What it is called.
    pub kind: Kind,
    /// What many are called.
    pub plural: Plural,
    /// Whether its objects are in namespaces.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub namespaced: bool,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Origin::is_own")]
    pub origin: Origin,
    /// Whether it has a controller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
    /// What its controller began as.
    pub body: Body,
    /// Its versions, in the order in which they were made.
    pub versions: Vec<Version>,
    /// The version that is stored, and that code works with.
    pub hub: Version,
    /// The pairs of versions between which there is a conversion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<(Version, Version)>,
    /// Its webhooks.
    #[serde(default, skip_serializing_if = "Webhooks::is_none")]
    pub webhooks: Webhooks,
}

/// Whose a kind is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The project's: it is installed with the operator.
    #[default]
    Own,
    /// Kubernetes'.
    BuiltIn,
    /// Somebody else's, whose definition was imported.
    Imported,
}

impl Origin {
    /// Whether it is the project's.
    #[must_use]
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// What a controller began as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// The kind began without one.
    None,
    /// A place to begin.
    Empty,
    /// One owned Deployment that heals.
    Example,
    /// A Deployment of an image, of a size.
    Image(Image),
}

/// What a deploy-image scaffold runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// The image.
    pub image: String,
    /// The port of its container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The user that its container runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<u32>,
}

/// The webhooks of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhooks {
    /// One that fills in what is left out.
    #[serde(default)]
    pub defaulting: bool,
    /// One that refuses what must not be.
    #[serde(default)]
    pub validation: bool,
}

impl Webhooks {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Resource {
    /// Whether it is this kind of this group.
    #[must_use]
    pub fn is(&self, group: &Group, kind: &Kind) -> bool {
        (&self.group, &self.kind) == (group, kind)
    }

    /// All versions but the hub.
    pub fn spokes(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| **version != self.hub)
    }

    /// The name of its controller: that of the kind, and the group too where a kind before it is called alike.
    #[must_use]
    pub fn controller_name(&self, project: &Project) -> String {
        let lower = self.kind.lower();
        let mut before = project.resources.iter().take_while(|other| !other.is(&self.group, &self.kind));
        match before.find(|other| other.kind.lower() == lower) {
            None => lower,
            Some(_) => format!("{lower}.{}", self.group),
        }
    }

    /// Where its module is, in Rust: `police::whitelist`.
    #[must_use]
    pub fn module(&self) -> String {
        format!("{}::{}", self.group.module(), self.kind.module())
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("src/kinds/{}/{}", self.group.module(), self.kind.module())
    }

    /// What its files outside of that folder are called: `police_whitelist`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}_{}", self.group.module().trim_end_matches('_'), self.kind.lower())
    }
}

impl Project {
    /// A project that has no kinds yet.
    #[must_use]
    pub fn new(
        cli_version: &str,
        project_name: ProjectName,
        domain: Domain,
        license: License,
        year: i16,
        sdk: Sdk,
    ) -> Self {
        Self {
            version: LAYOUT.to_owned(),
            cli_version: cli_version.to_owned(),
            project_name,
            domain,
            owner: None,
            license,
            year,
            sdk,
            resources: Vec::new(),
        }
    }

    /// Reads a `PROJECT`.
    ///
    /// # Errors
    /// When it is none of Kubewright's, of another layout, or says what cannot be.
    pub fn parse(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Layout {
            version: String,
        }
        let layout: Layout = serde_saphyr::from_str(text)
            .map_err(|_| Error::Project("it has no version of a layout: is it another tool's?".to_owned()))?;
        let project: Self = serde_saphyr::from_str(text).map_err(|error| {
            let other = "Kubebuilder's projects, say, are made anew with kubewright init";
            if layout.version == LAYOUT {
                Error::Project(first_line(&error.to_string()))
            } else {
                Error::Project(format!(
                    "its layout is {:?}, and this kubewright knows {LAYOUT:?} ({other})",
                    layout.version
                ))
            }
        })?;
        if project.version != LAYOUT {
            return Err(Error::Project(format!(
                "its layout is {:?}, and this kubewright knows {LAYOUT:?}",
                project.version
            )));
        }
        project.check()?;
        Ok(project)
    }

    /// What holds between its parts.
    fn check(&self) -> Result<(), Error> {
        for (index, resource) in self.resources.iter().enumerate() {
            let called = format!("{} of group {}", resource.kind, resource.group);
            if self.resources[..index].iter().any(|other| other.is(&resource.group, &resource.kind)) {
                return Err(Error::Project(format!("{called} is there twice")));
            }
            if !resource.versions.contains(&resource.hub) {
                return Err(Error::Project(format!(
                    "{called}: its hub {} is none of its versions",
                    resource.hub
                )));
            }
        }
        Ok(())
    }

    /// The file's text.
    ///
    /// # Errors
    /// When it cannot be written as YAML, which no project brings about.
    pub fn text(&self) -> Result<String, Error> {
        let body = serde_saphyr::to_string(self).map_err(|error| Error::Project(error.to_string()))?;
        Ok(format!("# How this project was made. Kept by `kubewright create`.\n{}\n", body.trim_end()))
    }

    /// The whole group of a kind: with the domain if it is the project's own.
    #[must_use]
    pub fn api_group(&self, resource: &Resource) -> String {
        if resource.origin.is_own() {
            format!("{}.{}", resource.group, self.domain)
        } else {
            resource.group.to_string()
        }
    }

    /// Adds a kind.
    ///
    /// # Errors
    /// When it would be the same as another to Kubernetes, or its files would.
    pub fn add(&mut self, new: Resource) -> Result<(), Error> {
        for other in &self.resources {
            let called = format!("{} of group {}", other.kind, other.group);
            if other.group != new.group {
                if other.group.module() == new.group.module() {
                    let why = format!("its module would be that of group {} too", other.group);
                    return Err(Error::Refused(format!("group {} cannot be added: {why}", new.group)));
                }
            } else if other.kind.lower() == new.kind.lower() {
                let remedy = "kubewright create version adds a version to it, create webhook a webhook";
                return Err(Error::Refused(format!("API resource already exists: {called} ({remedy})")));
            } else if other.plural == new.plural {
                let remedy = "say another with --plural";
                return Err(Error::Refused(format!(
                    "{called} has the plural {} already ({remedy})",
                    new.plural
                )));
            }
        }
        self.resources.push(new);
        Ok(())
    }

    /// The kind, if the project has it.
    #[must_use]
    pub fn find(&self, group: &Group, kind: &Kind) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.is(group, kind))
    }
}

/// Refuses the text of a `PROJECT` that was written by a later version than `version`: what it says may not be known here.
///
/// # Errors
/// Then, with the remedy.
pub(crate) fn check_age(text: &str, version: &str) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Written {
        cli_version: String,
    }
    // What is no PROJECT is told of with more words when it is read whole.
    let Ok(Written { cli_version }) = serde_saphyr::from_str(text) else { return Ok(()) };
    let parsed = |version: &str| semver::Version::parse(version);
    let (wrote, ours) = match (parsed(&cli_version), parsed(version)) {
        (Ok(wrote), Ok(ours)) => (wrote, ours),
        (Err(error), _) => {
            return Err(Error::Project(format!("its cliVersion {cli_version:?} is no version ({error})")));
        }
        (_, Err(_)) => return Ok(()),
    };
    if wrote > ours {
        let remedy = "take that version of the command";
        return Err(Error::Refused(format!(
            "the project was written by kubewright {wrote}, and this is {ours}: {remedy}; nothing was changed"
        )));
    }
    Ok(())
}

fn yes() -> bool {
    true
}

/// What of an error with several lines is told in one.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
