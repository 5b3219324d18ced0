//! The commands: what is asked for, and what becomes of it.

mod api;
mod delete;
mod import;
mod init;
#[cfg(test)]
mod tests;
mod upgrade;
mod version;
mod webhook;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};

pub use self::{
    api::CreateApi, delete::DeleteApi, import::ImportCrd, init::Init, upgrade::Upgrade,
    version::CreateVersion, webhook::CreateWebhook,
};
use crate::{
    ChangeSet, Error, Folder, Project, apply::Locked, change::File, names, project::PROJECT, record::Record,
    registry, rustfmt::Rustfmt,
};

/// What to do with a project.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Begin a project of an operator in this folder
    Init(Init),
    /// Add a kind, a version or a webhook to the project of this folder
    #[command(subcommand)]
    Create(Create),
    /// Take a kind out of the project of this folder
    #[command(subcommand)]
    Delete(Delete),
    /// Take types for the project of this folder from elsewhere
    #[command(subcommand)]
    Import(Import),
    /// Bring what this version scaffolds differently into the project of this folder, and raise its SDK
    Upgrade(Upgrade),
}

/// What to take from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Import {
    /// Make types of a CustomResourceDefinition that is somebody else's
    Crd(ImportCrd),
}

/// What to take out of a project.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Delete {
    /// Remove a kind, with its files, as long as they are as they were scaffolded
    Api(DeleteApi),
}

/// What to add to a project.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Create {
    /// Add a kind: its types, a controller, a sample and tests
    Api(CreateApi),
    /// Add webhooks to a kind: they fill in what is left out, or refuse what must not be
    Webhook(CreateWebhook),
    /// Add a version to a kind, with conversions between it and the others
    Version(CreateVersion),
}

/// Options of a command that writes files.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Change nothing; print what would change, and the diff
    #[arg(long)]
    pub dry_run: bool,

    /// Overwrite files that are there; what they had is printed
    #[arg(long)]
    pub force: bool,
}

/// Environment of a command: its version, the year, the SDK and rustfmt.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The version of the command.
    pub version: String,
    /// The year, for the heads of files.
    pub year: i16,
    /// Where the SDK of this version is.
    pub sdk: Source,
    /// The program rustfmt; without, Rust is written as the templates have it.
    pub rustfmt: Option<PathBuf>,
}

impl Environment {
    /// What formats the Rust of a project in this folder.
    fn formatter(&self, folder: &Folder) -> Rustfmt {
        Rustfmt::new(self.rustfmt.as_deref(), folder.path())
    }
}

/// Where the SDK of a version is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was released: cargo finds it by its version.
    Registry,
    /// It was not; the command was built in this checkout of Kubewright.
    Checkout(PathBuf),
    /// It was not, and nobody here knows where it is.
    Unknown,
}

/// Whom a command may ask.
pub trait Ask {
    /// The answer to a question; nothing when nobody is there to answer.
    ///
    /// # Errors
    /// When the terminal fails.
    fn yes(&mut self, question: &str) -> io::Result<Option<bool>>;

    /// What somebody says in a line; nothing when nobody is there.
    ///
    /// # Errors
    /// When the terminal fails.
    fn line(&mut self, question: &str) -> io::Result<Option<String>>;
}

/// What a command is about to do.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What is done.
    pub head: String,
    /// Files that change.
    pub changes: ChangeSet,
    /// What the user may do next.
    pub next: String,
    /// Files that the user has to settle conflicts in.
    pub conflicts: Vec<String>,
    /// Whether files that go are what it is about.
    pub(crate) is_removal: bool,
}

impl Planned {
    /// Files that the user goes on with.
    fn new(changes: ChangeSet, next: String) -> Self {
        let head = "Writing scaffold for you to edit...\n".to_owned();
        Self { head, changes, next, conflicts: Vec::new(), is_removal: false }
    }

    /// Whether the user has something to settle.
    fn settled(&self) -> Result<(), Error> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let remedy = "choose between the lines at the marks, and remove the marks";
        Err(Error::Refused(format!("there are conflicts in {} ({remedy})", self.conflicts.join(", "))))
    }
}

impl Command {
    /// Does it, and tells of it.
    ///
    /// # Errors
    /// When it makes no sense, cannot be done, or the machine fails. Then nothing is changed.
    pub fn run(
        &self,
        folder: &Folder,
        around: &Environment,
        ask: &mut dyn Ask,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let write_options = self.write_options();
        if write_options.dry_run {
            if folder.is_unfinished() {
                let remedy = "run it, or any other, without --dry-run first";
                return Err(Error::Refused(format!("a command was interrupted in this project: {remedy}")));
            }
            let planned = self.plan(folder, around, ask)?;
            print(out, &dry(&planned))?;
            return planned.settled();
        }
        let (locked, mended) = Locked::take(folder.path())?;
        if let Some(mended) = mended {
            print(out, &format!("{mended}\n"))?;
        }
        let planned = self.plan(folder, around, ask)?;
        locked.apply(&planned.changes)?;
        print(out, &done(&planned, write_options.force))?;
        planned.settled()
    }

    /// What it would do.
    ///
    /// # Errors
    /// When it makes no sense, or cannot be done with what is there.
    pub fn plan(&self, folder: &Folder, around: &Environment, ask: &mut dyn Ask) -> Result<Planned, Error> {
        match self {
            Self::Init(init) => init.plan(folder, around),
            Self::Create(Create::Api(create)) => create.plan(folder, around, ask),
            Self::Create(Create::Webhook(create)) => create.plan(folder, around, ask),
            Self::Create(Create::Version(create)) => create.plan(folder, around, ask),
            Self::Delete(Delete::Api(delete)) => delete.plan(folder, around, ask),
            Self::Import(Import::Crd(import)) => import.plan(folder, around),
            Self::Upgrade(upgrade) => upgrade.plan(folder, around),
        }
    }

    fn write_options(&self) -> WriteOptions {
        match self {
            Self::Init(init) => init.write_options,
            Self::Create(Create::Api(create)) => create.write_options,
            Self::Create(Create::Webhook(create)) => create.write_options,
            Self::Create(Create::Version(create)) => create.write_options,
            Self::Delete(Delete::Api(delete)) => delete.write_options(),
            Self::Import(Import::Crd(import)) => import.write_options,
            Self::Upgrade(upgrade) => WriteOptions { dry_run: upgrade.dry_run, force: false },
        }
    }
}

/// The kind that a command is about.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The group, without the project's domain, such as `police`
    #[arg(long)]
    pub group: Option<String>,

    /// The version, such as `v1alpha1`
    #[arg(long)]
    pub version: Option<String>,

    /// The kind, such as `WhiteList`
    #[arg(long)]
    pub kind: Option<String>,
}

impl Names {
    fn group(&self, ask: &mut dyn Ask) -> Result<names::Group, Error> {
        names::Group::new(&specified("group", "Group", self.group.as_deref(), ask)?)
    }

    fn version(&self, ask: &mut dyn Ask) -> Result<names::Version, Error> {
        names::Version::new(&specified("version", "Version", self.version.as_deref(), ask)?)
    }

    fn kind(&self, ask: &mut dyn Ask) -> Result<names::Kind, Error> {
        names::Kind::new(&specified("kind", "Kind", self.kind.as_deref(), ask)?)
    }
}

/// What a flag says, or whoever can be asked.
fn specified(flag: &str, question: &str, value: Option<&str>, ask: &mut dyn Ask) -> Result<String, Error> {
    match value {
        Some(value) => Ok(value.to_owned()),
        None => {
            let said = ask.line(question).map_err(Error::io("ask at", "the terminal"))?;
            said.ok_or_else(|| Error::Usage(format!("Must specify --{flag}")))
        }
    }
}

/// The change from one project to another, with `files` that come besides.
fn changed(
    folder: &Folder,
    old: &Project,
    mut new: Project,
    files: Vec<File>,
    around: &Environment,
    force: bool,
) -> Result<ChangeSet, Error> {
    new.cli_version.clone_from(&around.version);
    let mut all = vec![
        File::kept(PROJECT, new.text()?),
        File::kept(registry::KINDS, registry::kinds(&new)),
        File::kept(registry::TESTS, registry::tests(&new)),
    ];
    all.extend(files);
    planned(folder, all, Record::of(folder, old, &around.version)?, &around.formatter(folder), force)
}

fn planned(
    folder: &Folder,
    files: Vec<File>,
    record: Record,
    rustfmt: &Rustfmt,
    force: bool,
) -> Result<ChangeSet, Error> {
    let found = folder.found(files.iter().map(|file| file.path.as_str()))?;
    ChangeSet::plan(files, &found, record, rustfmt, force)
}

fn dry(planned: &Planned) -> String {
    let mut text = String::new();
    for change in &planned.changes.changes {
        let what = match (&change.before, &change.after) {
            (_, None) => "would remove",
            (Some(_), _) => "would change",
            (None, _) => "would create",
        };
        text += &format!("{what} {}\n", change.path);
    }
    if text.is_empty() {
        return "nothing would change\n".to_owned();
    }
    text += &unformatted(&planned.changes);
    format!("{text}\n{}", planned.changes.diff())
}

fn done(planned: &Planned, force: bool) -> String {
    let mut text = planned.head.clone();
    for change in &planned.changes.changes {
        let gone = match (&change.after, planned.is_removal) {
            (Some(_), _) => "",
            (None, true) => " removed",
            (None, false) => " is no longer needed, and was removed",
        };
        text += &format!("{}{gone}\n", change.path);
    }
    for path in &planned.changes.untouched {
        text += &format!("{path} was there and stays as it is\n");
    }
    text += &unformatted(&planned.changes);
    let replaced = planned.changes.clone().replaced();
    if force && !replaced.changes.is_empty() {
        text += &format!("Overwritten:\n{}", replaced.diff());
    }
    text + &planned.next
}

/// Why what is written in Rust is not formatted, and what to do about it.
fn unformatted(changes: &ChangeSet) -> String {
    let is_rust = |change: &crate::Change| change.path.ends_with(".rs");
    match &changes.unformatted {
        Some(why) if changes.changes.iter().any(is_rust) => {
            format!("What is new is not formatted: {why} (rustup component add rustfmt; then cargo fmt)\n")
        }
        _ => String::new(),
    }
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever listened has left; what was to be done is done.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::io("write to", "standard output")),
    }
}
