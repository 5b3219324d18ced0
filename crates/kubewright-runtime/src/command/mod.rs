//! The command line of an operator's program: `run` (the default), `manifests`, `version`.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::{Controller, command::Operator};
//! # use kubewright_runtime::{Context, Error, Key, Outcome, Reconciler};
//! # struct Greeter;
//! # impl Reconciler for Greeter {
//! #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
//! # }
//!
//! #[tokio::main]
//! async fn main() -> ExitCode {
//!     Operator::new("greeter", env!("CARGO_PKG_VERSION"))
//!         .controller(|| Controller::new("greeter", Greeter).for_kind::<ConfigMap>())
//!         .main()
//!         .await
//! }
//! ```
//!
//! - `greeter` finds its API server ([`Connect`](crate::Connect)), elects a leader and serves metrics and health if it is
//!   told to, and runs its controllers until SIGTERM or SIGINT. Each flag has a variable of the environment too (`--help`
//!   names them).
//! - `greeter manifests --image registry.example/greeter:1.0 | kubectl apply -f -` installs it: the definitions of its kinds,
//!   a namespace, a service account with the [least rights](crate::Controller::rights) that its controllers work with, and a
//!   Deployment.
//! - `greeter version` says which it is.
//!
//! An operator declares its [webhooks](Operator::webhooks) too: `run` serves them, `manifests` has what leads to them. What a
//! test needs of it is there as values: [`Operator::prepare`], [`Operator::manager`], [`Operator::webhooks_in_process`],
//! [`Operator::rights`].

#[cfg(feature = "webhook")]
mod admission;
mod flags;
mod manifests;
mod nowhere;
mod prepare;
mod run;
#[cfg(feature = "webhook")]
mod selector;
mod settings;
#[cfg(feature = "otel")]
mod telemetry;
#[cfg(test)]
mod tests;
mod versions;
#[cfg(feature = "webhook")]
mod webhooks;
#[cfg(all(test, feature = "webhook"))]
mod webhooks_tests;

use std::{
    ffi::OsString,
    fmt,
    io::{self, Write},
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use clap::{CommandFactory, FromArgMatches};
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, api::DynamicObject};
use serde::Serialize;

use self::flags::{Action, Flags};
#[cfg(feature = "webhook")]
pub use self::{
    admission::AdmissionFlags,
    manifests::WebhookCertificate,
    webhooks::{WebhookFlags, WebhookRegistration},
};
pub use self::{
    flags::Run,
    manifests::{Installation, PodShape},
    settings::Settings,
};
pub use crate::logging::LogFormat;
use crate::{
    Controller, Defaults, Error, Manager, Namespaces,
    logging::{self, OwnLayer},
    rbac::Rights,
    signals,
};

/// Who writes the logs of a program.
enum Logs {
    /// We, beside these layers.
    Ours(Vec<OwnLayer>),
    /// A subscriber that the author installs.
    Theirs,
}

impl Default for Logs {
    fn default() -> Self {
        Self::Ours(Vec::new())
    }
}

/// A function that makes a controller.
type Make = Box<dyn Fn() -> Controller + Send + Sync>;

/// A function that makes a controller of what the program was told.
type MakeWith = Box<dyn Fn(&Settings) -> Result<Controller, Error> + Send + Sync>;

/// A function that makes a controller for a manager.
type MakeIn = Box<dyn Fn(&Manager) -> Controller + Send + Sync>;

/// A function that puts more into a manager before it runs.
type Setup = Box<dyn Fn(&mut Manager, &Settings) -> Result<(), Error> + Send + Sync>;

/// The same, which waits for something.
type LateSetup =
    Arc<dyn for<'a> Fn(&'a mut Manager, &'a Settings) -> BoxFuture<'a, Result<(), Error>> + Send + Sync>;

/// An operator as a program: what it is made of, for all that its command line does.
pub struct Operator {
    name: String,
    version: String,
    definitions: Vec<CustomResourceDefinition>,
    controllers: Vec<Make>,
    controllers_with: Vec<MakeWith>,
    controllers_in: Vec<MakeIn>,
    setups: Vec<Setup>,
    late_setups: Vec<LateSetup>,
    /// What its author wants to be told by the command line and a file.
    own: settings::Declared,
    /// What it was told.
    told: OnceLock<Result<Settings, String>>,
    /// The arguments of an installed program.
    deployed_with: Vec<String>,
    shapes: Vec<manifests::Shape>,
    sharded: bool,
    logs: Logs,
    defaults: Defaults,
    namespaces: Option<Namespaces>,
    rights: Rights,
    objects: Vec<DynamicObject>,
    #[cfg(feature = "webhook")]
    webhooks: Option<crate::webhook::Webhooks>,
    mistakes: Vec<String>,
}

impl Operator {
    /// An operator without controllers. Its name is a DNS label: what is installed is called like it.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            definitions: Vec::new(),
            controllers: Vec::new(),
            controllers_with: Vec::new(),
            controllers_in: Vec::new(),
            setups: Vec::new(),
            late_setups: Vec::new(),
            own: settings::Declared::default(),
            told: OnceLock::new(),
            deployed_with: Vec::new(),
            shapes: Vec::new(),
            sharded: false,
            logs: Logs::default(),
            defaults: Defaults::new(),
            namespaces: None,
            rights: Rights::default(),
            objects: Vec::new(),
            #[cfg(feature = "webhook")]
            webhooks: None,
            mistakes: Vec::new(),
        }
    }

    /// A kind of its own, which is installed with it. Of a kind that is named in several versions there is one definition with
    /// all of them: objects are stored in the one that is named first.
    #[must_use]
    pub fn definition<K: CustomResourceExt>(mut self) -> Self {
        let definition = K::crd();
        let known = self.definitions.iter_mut().find(|known| known.metadata.name == definition.metadata.name);
        match known {
            None => self.definitions.push(definition),
            Some(known) => self.mistakes.extend(versions::add(known, definition).err()),
        }
        self
    }

    /// A controller, made when it is to run or when its rights are asked for.
    #[must_use]
    pub fn controller(mut self, make: impl Fn() -> Controller + Send + Sync + 'static) -> Self {
        self.controllers.push(Box::new(make));
        self
    }

    /// A controller that needs something of the manager, such as its client or its clock: `make` gives it for each manager that the operator
    /// is put into. Where its rights are asked for, as by `manifests`, it is made for a manager that has no API server and never runs; so
    /// `make` does nothing else.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator};
    /// # struct Maps { client: kube::Client }
    /// # impl Reconciler for Maps {
    /// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
    /// # }
    /// Operator::new("maps", "1.0.0").controller_in(|manager| {
    ///     Controller::new("maps", Maps { client: manager.client().clone() }).for_kind::<ConfigMap>()
    /// });
    /// ```
    #[must_use]
    pub fn controller_in(mut self, make: impl Fn(&Manager) -> Controller + Send + Sync + 'static) -> Self {
        self.controllers_in.push(Box::new(make));
        self
    }

    /// Its webhooks: `run` serves them, and `manifests` has all that leads to them. Their configurations are called like the
    /// operator, whatever name these have.
    #[cfg(feature = "webhook")]
    #[must_use]
    pub fn webhooks(mut self, webhooks: crate::webhook::Webhooks) -> Self {
        if self.webhooks.is_some() {
            self.mistakes.push("webhooks() is called twice: add all of them to one Webhooks".to_owned());
        }
        self.webhooks = Some(webhooks.of_operator(&self.name));
        self
    }

    /// Something else to do with a manager before it runs: runnables, checks, metrics, further clusters. It is done for each
    /// [manager](Operator::manager) that the operator is put into, as when a process starts anew.
    /// Rights of what it adds are told by [`may`](Operator::may): `manifests` does not do it. A controller is better made by
    /// [`controller_in`](Operator::controller_in), whose rights are known.
    #[must_use]
    pub fn setup(
        mut self,
        setup: impl Fn(&mut Manager) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.setups.push(Box::new(move |manager, _| setup(manager)));
        self
    }

    /// Shapes the pod of the Deployment that [`manifests`](Operator::manifests) has, and with it those of `deploy`, of kustomize's
    /// files, the Helm chart and the OLM bundle: variables, Secrets, volumes, resources, further containers, annotations.
    ///
    /// ```
    /// # use kubewright_runtime::command::Operator;
    /// use k8s_openapi::{api::core::v1::{EnvFromSource, SecretEnvSource}, apimachinery::pkg::api::resource::Quantity};
    ///
    /// Operator::new("clouds", "1.0.0").pod(|pod| {
    ///     let secret = SecretEnvSource { name: "clouds".into(), ..SecretEnvSource::default() };
    ///     let source = EnvFromSource { secret_ref: Some(secret), ..EnvFromSource::default() };
    ///     pod.container.env_from.get_or_insert_default().push(source);
    ///     let resources = pod.container.resources.get_or_insert_default();
    ///     resources.limits.get_or_insert_default().insert("memory".into(), Quantity("512Mi".into()));
    /// });
    /// ```
    ///
    /// What the operator counts on stays: its account, labels, security context, ports, probes (their delays and periods are
    /// free), arguments, variables and mounts. A shape that changes or removes it makes `manifests` fail with the field's path.
    #[must_use]
    pub fn pod(mut self, shape: impl Fn(&mut PodShape) + Send + Sync + 'static) -> Self {
        self.shapes.push(Box::new(shape));
        self
    }

    /// Its installed replicas share the keys of its controllers ([`shard`](crate::shard)) in place of electing a leader: the
    /// Deployment says `--shard`, and the account has the rights to the Leases of a ring.
    #[must_use]
    pub fn sharded(mut self) -> Self {
        self.sharded = true;
        self
    }

    /// Settings of its controllers, as far as they do not say otherwise themselves.
    #[must_use]
    pub fn defaults(mut self, defaults: Defaults) -> Self {
        self.defaults = defaults;
        self
    }

    /// Looks only at the namespaces that are in this set at the time: see [`Manager::follow_namespaces`]. Its rights, as in `manifests`, are
    /// cluster-wide, as nobody knows which there will be; `--namespaces` is refused.
    #[must_use]
    pub fn follow_namespaces(mut self, namespaces: &Namespaces) -> Self {
        self.namespaces = Some(namespaces.clone());
        self
    }

    /// Rights that no controller declares.
    #[must_use]
    pub fn may(mut self, rights: Rights) -> Self {
        self.rights.merge(rights);
        self
    }

    /// Something else that is installed with it, in front of its Deployment: a default object, say.
    #[must_use]
    pub fn install(mut self, object: &impl Serialize) -> Self {
        match manifests::dynamic(object) {
            Ok(object) => self.objects.push(object),
            Err(error) => self.mistakes.push(format!("install: {error}")),
        }
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definitions of its kinds.
    #[must_use]
    pub fn definitions(&self) -> &[CustomResourceDefinition] {
        &self.definitions
    }

    /// Its controllers, each made anew. Those of [`Operator::controller_with`] that cannot be made are not among them: to
    /// [run](Operator::manager) or [install](Operator::manifests) the operator tells why.
    #[must_use]
    pub fn controllers(&self) -> Vec<Controller> {
        let mut controllers: Vec<Controller> = self.controllers.iter().map(|make| make()).collect();
        controllers.extend(self.made_with_settings().into_iter().filter_map(Result::ok));
        controllers.extend(self.made_nowhere().unwrap_or_default());
        controllers
    }

    /// An error if it is told which namespaces to look at and follows some itself.
    fn check_namespaces(&self, told: &[String]) -> Result<(), Error> {
        if told.is_empty() || self.namespaces.is_none() {
            return Ok(());
        }
        Err(Error::Misconfigured(format!(
            "{} follows namespaces that come and go by itself: leave --namespaces out",
            self.name
        )))
    }

    /// The controllers that are made for a manager, as for one that never runs.
    fn made_nowhere(&self) -> Result<Vec<Controller>, Error> {
        if self.controllers_in.is_empty() {
            return Ok(Vec::new());
        }
        nowhere::nowhere(&self.name, |manager| self.controllers_in.iter().map(|make| make(manager)).collect())
    }

    /// The controllers that need to be told something.
    fn made_with_settings(&self) -> Vec<Result<Controller, Error>> {
        if self.controllers_with.is_empty() {
            return Vec::new();
        }
        match self.settings() {
            Ok(settings) => self.controllers_with.iter().map(|make| make(settings)).collect(),
            Err(error) => vec![Err(error)],
        }
    }

    /// What is wrong with it.
    fn check(&self) -> Result<(), Error> {
        let mut mistakes = self.mistakes.clone();
        match self.own.clash() {
            Some(clash) => mistakes.push(clash),
            None => {
                let made = self.made_with_settings().into_iter();
                mistakes.extend(made.filter_map(Result::err).map(|error| error.to_string()));
            }
        }
        mistakes.extend(self.made_nowhere().err().map(|error| error.to_string()));
        mistakes.extend(self.controllers().into_iter().flat_map(|controller| controller.mistakes));
        #[cfg(feature = "webhook")]
        if let Some(Err(mistake)) = self.webhooks.as_ref().map(crate::webhook::Webhooks::check) {
            mistakes.push(mistake.to_string());
        }
        if mistakes.is_empty() { Ok(()) } else { Err(Error::Misconfigured(mistakes.join("; "))) }
    }

    /// What it calls itself in requests: `<name>/<version>`.
    #[must_use]
    pub fn user_agent(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }

    /// The rights that it works with, those for its command line's own needs (leases, reviews of who reads metrics) not
    /// among them.
    #[must_use]
    pub fn rights(&self) -> Rights {
        let mut rights = self.rights.clone();
        for controller in self.controllers() {
            rights.merge(controller.rights());
        }
        rights
    }

    /// The rights that its controllers work with in each [further cluster](crate::Clusters).
    #[must_use]
    pub fn rights_in_clusters(&self) -> Rights {
        let mut rights = Rights::default();
        for controller in self.controllers() {
            rights.merge(controller.rights_in_clusters());
        }
        rights
    }

    /// Does what the program's arguments say. What goes wrong is told on standard error, and by a status of 1 (2 for
    /// arguments that make no sense).
    pub async fn main(self) -> ExitCode {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        if let Some(clash) = self.own.clash() {
            let _ = writeln!(io::stderr(), "error: {clash}");
            return ExitCode::FAILURE;
        }
        let flags = match self.parse(arguments) {
            Ok(flags) => flags,
            Err(error) => {
                // Nothing is left to be done where even this cannot be told.
                let _ = error.print();
                return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
            }
        };
        match self.act(flags, &mut io::stdout()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(io::stderr(), "error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn parse(&self, arguments: Vec<OsString>) -> Result<Flags, clap::Error> {
        let name = self.name.clone();
        let command = self.own.augment(Flags::command()).display_name(name.clone()).bin_name(name);
        let matches = command.try_get_matches_from(arguments)?;
        let run = match matches.subcommand() {
            None => Some(&matches),
            Some(("run", run)) => Some(run),
            Some(_) => None,
        };
        if let Some(run) = run {
            let _ = self.told.set(Ok(self.own.read(run)?));
        }
        Flags::from_arg_matches(&matches)
    }

    async fn act(self, flags: Flags, out: &mut (impl Write + Send)) -> Result<(), Error> {
        match flags.action {
            Some(Action::Version) => writeln!(out, "{} {}", self.name, self.version).map_err(Error::new),
            Some(Action::Manifests(installation)) => {
                let text = self.yaml(&installation)?;
                out.write_all(text.as_bytes()).map_err(Error::new)
            }
            Some(Action::Run(run)) => self.run_until_asked(&run).await,
            None => self.run_until_asked(&flags.run).await,
        }
    }

    async fn run_until_asked(mut self, run: &Run) -> Result<(), Error> {
        #[cfg(feature = "otel")]
        let traces = match &self.logs {
            Logs::Ours(_) => self.collector(run)?.map(|collector| collector.traces()).transpose(),
            Logs::Theirs => Ok(None),
        };
        #[cfg(feature = "otel")]
        let traces = traces.map_err(|error| Error::Misconfigured(error.to_string()))?;
        match std::mem::take(&mut self.logs) {
            #[cfg_attr(not(feature = "otel"), expect(unused_mut, reason = "traces are one more"))]
            Logs::Ours(mut layers) => {
                #[cfg(feature = "otel")]
                layers.extend(traces.iter().map(kubewright_telemetry::Traces::layer));
                logging::init_beside(layers, run.log_format, &run.log_level)?;
            }
            Logs::Theirs => {}
        }
        let stop = signals::shutdown().map_err(Error::new)?;
        let ended = self.run(run, stop).await;
        #[cfg(feature = "otel")]
        if let Some(traces) = traces {
            traces.shutdown().await;
        }
        ended
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
