//! What an operator's author wants to be told: flags of the author's own, and a file.

use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeSet, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Arg, ArgMatches, Args, Command, CommandFactory, value_parser};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::{Logs, Operator, flags::Flags};
use crate::{Controller, Error, Manager};

/// The heading of the author's flags in `--help`.
const HEADING: &str = "Options of this operator";

/// The flag of the author's file.
const CONFIG: &str = "config";

type Value = Arc<dyn Any + Send + Sync>;

/// What the program was told beyond [`Run`](super::Run): the author's [flags](Operator::args) and [file](Operator::config).
#[derive(Clone, Default)]
pub struct Settings {
    values: HashMap<TypeId, Value>,
}

impl Settings {
    /// The author's flags.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the operator has no [`args`](Operator::args) of this type.
    pub fn args<A: Any + Send + Sync>(&self) -> Result<&A, Error> {
        self.get("args")
    }

    /// What the author's file says; its default without a file.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the operator has no [`config`](Operator::config) of this type.
    pub fn config<C: Any + Send + Sync>(&self) -> Result<&C, Error> {
        self.get("config")
    }

    fn get<T: Any>(&self, by: &str) -> Result<&T, Error> {
        let value = self.values.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref());
        value.ok_or_else(|| {
            let name = type_name::<T>();
            Error::Misconfigured(format!("the operator does not declare {by}::<{name}>()"))
        })
    }
}

impl fmt::Debug for Settings {
    /// Not what they say: flags may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// The flags of one type.
struct OwnArgs {
    kind: TypeId,
    augment: fn(Command) -> Command,
    read: fn(&ArgMatches) -> Result<Value, clap::Error>,
}

/// The file's type.
struct OwnConfig {
    kind: TypeId,
    read: fn(Option<&Path>) -> Result<Value, Error>,
}

/// What an author declares.
#[derive(Default)]
pub(super) struct Declared {
    args: Vec<OwnArgs>,
    config: Option<OwnConfig>,
}

impl Declared {
    fn is_empty(&self) -> bool {
        self.args.is_empty() && self.config.is_none()
    }

    /// The command line with what is declared: for `run`, named or not.
    pub(super) fn augment(&self, command: Command) -> Command {
        if self.is_empty() {
            return command;
        }
        let own = |command| self.own(command);
        // What is asked of a run is not asked of other commands.
        own(command).subcommand_negates_reqs(true).mut_subcommand("run", own)
    }

    fn own(&self, command: Command) -> Command {
        let command = command.next_help_heading(HEADING);
        let command = self.args.iter().fold(command, |command, args| (args.augment)(command));
        if self.config.is_none() {
            return command;
        }
        let file = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help_heading(HEADING)
            .help("The configuration of the operator, as YAML");
        command.arg(file)
    }

    /// What was told on a command line of this machine.
    pub(super) fn read(&self, matches: &ArgMatches) -> Result<Settings, clap::Error> {
        let file = self.config.as_ref().and_then(|_| matches.get_one::<PathBuf>(CONFIG));
        self.read_with(matches, file.map(PathBuf::as_path))
    }

    fn read_with(&self, matches: &ArgMatches, file: Option<&Path>) -> Result<Settings, clap::Error> {
        let mut settings = Settings::default();
        for args in &self.args {
            settings.values.insert(args.kind, (args.read)(matches)?);
        }
        if let Some(config) = &self.config {
            let value = (config.read)(file).map_err(|error| {
                clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{error}\n"))
            })?;
            settings.values.insert(config.kind, value);
        }
        Ok(settings)
    }

    /// A flag that is somebody else's already: clap would panic.
    pub(super) fn clash(&self) -> Option<String> {
        let mut taken = Names::of(&Flags::command());
        taken.0.extend(["--help", "-h", "--version", "-V", "help", "version"].map(str::to_owned));
        let file = self.config.as_ref().map(|_| Command::new("").arg(Arg::new(CONFIG).long(CONFIG)));
        let own = self.args.iter().map(|args| (args.augment)(Command::new("")));
        own.chain(file).find_map(|own| {
            let own = Names::of(&own);
            let clash = own.0.intersection(&taken.0).next().cloned();
            taken.0.extend(own.0);
            clash.map(|name| {
                format!("{name}, of the operator's own flags, is a flag, field or type of flags that is there already: rename it")
            })
        })
    }
}

/// What a command's flags are called: on the command line, and for clap (the names of fields and of the types that have them).
struct Names(BTreeSet<String>);

impl Names {
    fn of(command: &Command) -> Self {
        let arguments = command.get_arguments();
        let flags = arguments.flat_map(|argument| {
            let long = argument.get_long_and_visible_aliases().unwrap_or_default();
            let short = argument.get_short_and_visible_aliases().unwrap_or_default();
            let long = long.into_iter().map(|name| format!("--{name}"));
            let short = short.into_iter().map(|name| format!("-{name}"));
            long.chain(short).chain([argument.get_id().to_string()])
        });
        let groups = command.get_groups().map(|group| group.get_id().to_string());
        Self(flags.chain(groups).collect())
    }
}

impl Operator {
    /// Flags of its own, beside ours in `run` and `--help`; `#[arg(env = ..)]` works as everywhere in clap. They are told to
    /// [`setup_with`](Operator::setup_with), [`setup_async`](Operator::setup_async) and [`controller_with`](Operator::controller_with).
    ///
    /// ```no_run
    /// # use kubewright_runtime::command::Operator;
    /// #[derive(clap::Args)]
    /// struct Cloud {
    ///     /// The region to work in
    ///     #[arg(long, env = "CLOUD_REGION", default_value = "eu")]
    ///     region: String,
    /// }
    ///
    /// Operator::new("clouds", "1.0.0").args::<Cloud>().deployed_with(["--region=us"]).setup_with(|manager, settings| {
    ///     let cloud: &Cloud = settings.args()?;
    ///     # let _ = (manager, &cloud.region);
    ///     Ok(())
    /// });
    /// ```
    ///
    /// A name that is one of ours (of a flag, of a field, or of the type) is an error of every command and of `manifests`.
    #[must_use]
    pub fn args<A: Args + Send + Sync + 'static>(mut self) -> Self {
        self.own.args.push(OwnArgs {
            kind: TypeId::of::<A>(),
            augment: A::augment_args,
            read: |matches| Ok(Arc::new(A::from_arg_matches(matches)?)),
        });
        self
    }

    /// A configuration file of its own: `--config FILE`, YAML, its default without the flag. A type with
    /// `#[serde(deny_unknown_fields)]` refuses what it does not know. It is told as [flags](Operator::args) are.
    #[must_use]
    pub fn config<C: DeserializeOwned + Default + Send + Sync + 'static>(mut self) -> Self {
        if self.own.config.is_some() {
            self.mistakes.push("config() is called twice: a program has one file".to_owned());
        }
        self.own.config = Some(OwnConfig {
            kind: TypeId::of::<C>(),
            read: |file| {
                Ok(match file {
                    None => Arc::new(C::default()),
                    Some(file) => Arc::new(read_config::<C>(file)?),
                })
            },
        });
        self
    }

    /// Tells it flags or configuration as values, in place of a command line: for tests. All that it declares has to be told
    /// then.
    #[must_use]
    pub fn with_settings<T: Any + Send + Sync>(mut self, value: T) -> Self {
        let mut settings = self.told.take().and_then(Result::ok).unwrap_or_default();
        settings.values.insert(TypeId::of::<T>(), Arc::new(value));
        self.told = Ok(settings).into();
        self
    }

    /// Flags that the Deployment of [`manifests`](Operator::manifests) passes, after ours. Where there is no command line of a
    /// run, they are it: [`controller_with`](Operator::controller_with) is told them when `manifests` asks for its rights.
    #[must_use]
    pub fn deployed_with<F: Into<String>>(mut self, arguments: impl IntoIterator<Item = F>) -> Self {
        self.deployed_with.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// A controller that is made of what the program was told. Its rights are in `manifests`: there it is made of the flags
    /// [that are deployed](Operator::deployed_with), of the variables that are set and of the default of the
    /// [file](Operator::config), without a cluster.
    #[must_use]
    pub fn controller_with(
        mut self,
        make: impl Fn(&Settings) -> Result<Controller, Error> + Send + Sync + 'static,
    ) -> Self {
        self.controllers_with.push(Box::new(make));
        self
    }

    /// As [`setup`](Operator::setup), with what the program was told. Rights of what it adds are to be told by
    /// [`may`](Operator::may): it is not called for `manifests`.
    #[must_use]
    pub fn setup_with(
        mut self,
        setup: impl Fn(&mut Manager, &Settings) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.setups.push(Box::new(setup));
        self
    }

    /// As [`setup_with`](Operator::setup_with), for what waits: it is done [first of all](Manager::before_run) when the manager
    /// runs, with its client and cache at hand (the cache is not filled yet). Rights of what it adds are told by [`may`](Operator::may):
    /// `manifests` does not know them.
    ///
    /// ```no_run
    /// # use kubewright_runtime::command::Operator;
    /// Operator::new("clouds", "1.0.0").setup_async(|manager, _| Box::pin(async move {
    ///     let version = manager.client().apiserver_version().await?;
    ///     tracing::info!(version = version.git_version, "the API server");
    ///     Ok(())
    /// }));
    /// ```
    #[must_use]
    pub fn setup_async<F>(mut self, setup: F) -> Self
    where
        F: for<'a> Fn(&'a mut Manager, &'a Settings) -> BoxFuture<'a, Result<(), Error>>
            + Send
            + Sync
            + 'static,
    {
        self.late_setups.push(Arc::new(setup));
        self
    }

    /// A layer beside the one that writes logs: it gets everything, whatever `--log-level` says, unless it has a filter.
    #[must_use]
    pub fn log_layer(
        mut self,
        layer: impl tracing_subscriber::Layer<tracing_subscriber::Registry> + Send + Sync + 'static,
    ) -> Self {
        match &mut self.logs {
            Logs::Ours(layers) => layers.push(Box::new(layer)),
            Logs::Theirs => {
                self.mistakes.push("log_layer() comes with own_subscriber(): put it there".to_owned());
            }
        }
        self
    }

    /// The program installs a subscriber of its own, before [`main`](Operator::main): ours is not, and `--log-level` and
    /// `--log-format` say nothing.
    #[must_use]
    pub fn own_subscriber(mut self) -> Self {
        if matches!(&self.logs, Logs::Ours(layers) if !layers.is_empty()) {
            self.mistakes.push("own_subscriber() comes with log_layer(): put that layer there".to_owned());
        }
        self.logs = Logs::Theirs;
        self
    }

    /// What it was told: by the command line, by [`with_settings`](Operator::with_settings), or as [deployed](Operator::deployed_with).
    pub(super) fn settings(&self) -> Result<&Settings, Error> {
        let told = self.told.get_or_init(|| {
            if self.own.is_empty() {
                return Ok(Settings::default());
            }
            if let Some(clash) = self.own.clash() {
                return Err(clash);
            }
            let arguments = std::iter::once(&self.name).chain(&self.deployed_with);
            let matches = self.own.augment(Flags::command()).try_get_matches_from(arguments);
            // A file that the pod has is not on this machine.
            let settings = matches.and_then(|matches| self.own.read_with(&matches, None));
            settings.map_err(|error| {
                format!("the flags that it is deployed with: {}", error.to_string().trim_end())
            })
        });
        told.as_ref().map_err(|why| Error::Misconfigured(why.clone()))
    }
}

fn read_config<C: DeserializeOwned>(file: &Path) -> Result<C, Error> {
    let refused = |why: String| Error::Misconfigured(format!("--config {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|error| refused(error.to_string()))
}
