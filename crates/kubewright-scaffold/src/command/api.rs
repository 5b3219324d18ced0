//! `create api`.

use clap::Args;

use super::{Ask, Environment, Names, Planned, WriteOptions, changed};
use crate::{
    Error, Folder, Project, built_in, kind,
    names::{Group, Kind, Plural, Version},
    project::{Body, Image, Origin, Resource, Webhooks},
};

/// What `create api` takes.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct CreateApi {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub names: Names,

    /// What many are called, under which it is served [default: as kubectl guesses it]
    #[arg(long)]
    pub plural: Option<String>,

    /// Whether its objects are in namespaces
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub namespaced: bool,

    /// Whether to write its types [default: asked for on a terminal, true elsewhere]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub resource: Option<bool>,

    /// Whether to write its controller [default: asked for on a terminal, true elsewhere]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub controller: Option<bool>,

    /// Whether the controller begins as an example: a Deployment that heals [default: true for kinds of its own]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          conflicts_with = "image")]
    pub example: Option<bool>,

    /// Let the kind run this image, in as many pods as it says
    #[arg(long)]
    pub image: Option<String>,

    /// The port that its containers listen at
    #[arg(long, value_name = "PORT", requires = "image", value_parser = clap::value_parser!(u16).range(1..))]
    pub image_port: Option<u16>,

    /// The user that its containers run as; root is refused
    #[arg(long, value_name = "UID", requires = "image", value_parser = clap::value_parser!(u32).range(1..))]
    pub run_as_user: Option<u32>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment would be shown as a heading of the help")]
    pub write_options: WriteOptions,
}

impl CreateApi {
    pub(super) fn plan(
        &self,
        folder: &Folder,
        around: &Environment,
        ask: &mut dyn Ask,
    ) -> Result<Planned, Error> {
        let old = folder.project(&around.version)?;
        let (group, version, kind) =
            (self.names.group(ask)?, self.names.version(ask)?, self.names.kind(ask)?);
        let known = old.find(&group, &kind);
        if let Some(known) = known
            && !known.versions.contains(&version)
        {
            let there: Vec<&str> = known.versions.iter().map(Version::as_str).collect();
            let remedy = "kubewright create version adds another version";
            return Err(Error::Refused(format!(
                "API resource already exists in {} ({remedy})",
                there.join(", ")
            )));
        }
        let resource = answer(self.resource, "Create Resource [y/n]", ask)?;
        let controller = answer(self.controller, "Create Controller [y/n]", ask)?;
        let mut new = old.clone();
        let files = match (known, resource, controller) {
            (_, false, false) => {
                return Err(Error::Usage("nothing to do: neither --resource nor --controller".to_owned()));
            }
            (Some(known), false, true) => self.add_controller(&mut new, known)?,
            (None, false, true) => self.watch(&mut new, &group, &version, &kind)?,
            (Some(known), true, _) if !known.origin.is_own() => {
                return Err(Error::Refused(format!(
                    "API resource already exists: {kind} is not this project's own"
                )));
            }
            (Some(known), true, controller) if self.write_options.force => {
                if version != known.hub {
                    let why = format!("its files work with the version that is stored, {}", known.hub);
                    return Err(Error::Refused(format!("{kind} {version} cannot be made anew: {why}")));
                }
                let resource = Resource {
                    versions: known.versions.clone(),
                    hub: known.hub.clone(),
                    conversions: known.conversions.clone(),
                    webhooks: known.webhooks,
                    ..self.own(group, version, kind, controller)?
                };
                replace(&mut new, known, &resource);
                kind::files(&new, &resource)
            }
            (_, true, controller) => add(&mut new, self.own(group, version, kind, controller)?)?,
        };
        let changes = changed(folder, &old, new, files, around, self.write_options.force)?;
        let next =
            "Next: implement your new API, and see that its tests pass with:\n$ cargo test\n".to_owned();
        Ok(Planned::new(changes, next))
    }

    /// A kind of the project's own.
    fn own(&self, group: Group, version: Version, kind: Kind, controller: bool) -> Result<Resource, Error> {
        kind.check_own()?;
        if !controller && (self.image.is_some() || self.example == Some(true)) {
            return Err(Error::Usage(
                "--image and --example are what a controller does: add --controller".to_owned(),
            ));
        }
        let body = match &self.image {
            Some(image) => Body::Image(self.image(image)?),
            None if !controller => Body::None,
            None if self.example.unwrap_or(true) => Body::Example,
            None => Body::Empty,
        };
        let plural = self.plural.as_deref().map_or_else(|| Ok(kind.plural()), Plural::new)?;
        Ok(Resource {
            group,
            kind,
            plural,
            namespaced: self.namespaced,
            origin: Origin::Own,
            controller,
            body,
            versions: vec![version.clone()],
            hub: version,
            conversions: Vec::new(),
            webhooks: Webhooks::default(),
        })
    }

    fn image(&self, image: &str) -> Result<Image, Error> {
        let bad = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '\\';
        if image.is_empty() || image.contains(bad) {
            return Err(Error::Usage(format!(
                "--image must be the name of an image, such as nginx:1.29 (was {image:?})"
            )));
        }
        Ok(Image { image: image.to_owned(), port: self.image_port, run_as_user: self.run_as_user })
    }

    /// A controller of a kind that the project has without one.
    fn add_controller(&self, project: &mut Project, known: &Resource) -> Result<Vec<crate::File>, Error> {
        if known.controller && !self.write_options.force {
            return Err(Error::Refused(format!("{} has a controller already", known.kind)));
        }
        let mut resource = known.clone();
        resource.controller = true;
        replace(project, known, &resource);
        let mut files = kind::files(project, &resource);
        files.retain(|file| file.path.ends_with("/controller.rs"));
        Ok(files)
    }

    /// A controller of a kind that is Kubernetes' own.
    fn watch(
        &self,
        project: &mut Project,
        group: &Group,
        version: &Version,
        kind: &Kind,
    ) -> Result<Vec<crate::File>, Error> {
        let Some((group, _)) = built_in::find(group, version, kind) else {
            let remedy = "with --resource it becomes a kind of this project";
            return Err(Error::Refused(format!(
                "there is no built-in kind {kind} in {group}/{version} ({remedy})"
            )));
        };
        if self.example == Some(true) || self.image.is_some() {
            let why = "a controller of Deployments, say, that makes one for each would never end";
            return Err(Error::Usage(format!("built-in kinds have no --example and no --image: {why}")));
        }
        let resource = Resource {
            group: Group::new(group)?,
            kind: kind.clone(),
            plural: kind.plural(),
            namespaced: true,
            origin: Origin::BuiltIn,
            controller: true,
            body: Body::Empty,
            versions: vec![version.clone()],
            hub: version.clone(),
            conversions: Vec::new(),
            webhooks: Webhooks::default(),
        };
        add(project, resource)
    }
}

/// Adds a kind, with its files.
fn add(project: &mut Project, resource: Resource) -> Result<Vec<crate::File>, Error> {
    let files = kind::files(project, &resource);
    project.add(resource)?;
    Ok(files)
}

/// Puts a kind into the place of what it was.
fn replace(project: &mut Project, known: &Resource, resource: &Resource) {
    if let Some(there) = project.resources.iter_mut().find(|other| *other == known) {
        there.clone_from(resource);
    }
}

/// What a flag says, or whoever can be asked, or yes.
fn answer(flag: Option<bool>, question: &str, ask: &mut dyn Ask) -> Result<bool, Error> {
    match flag {
        Some(said) => Ok(said),
        None => Ok(ask.yes(question).map_err(Error::io("ask at", "the terminal"))?.unwrap_or(true)),
    }
}
