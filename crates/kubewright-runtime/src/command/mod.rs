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
mod prepare;
mod run;
#[cfg(feature = "webhook")]
mod selector;
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
};

use clap::{CommandFactory, FromArgMatches};
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
    flags::{LogFormat, Run},
    manifests::Installation,
};
use crate::{Controller, Error, Manager, rbac::Rights, signals};

/// A function that makes a controller.
type Make = Box<dyn Fn() -> Controller + Send + Sync>;

/// A function that puts more into a manager before it runs.
type Setup = Box<dyn Fn(&mut Manager) -> Result<(), Error> + Send + Sync>;

/// An operator as a program: what it is made of, for all that its command line does.
pub struct Operator {
    name: String,
    version: String,
    definitions: Vec<CustomResourceDefinition>,
    controllers: Vec<Make>,
    setups: Vec<Setup>,
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
            setups: Vec::new(),
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

    /// Its webhooks: `run` serves them, and `manifests` has all that leads to them. Their configurations are called like the
    /// operator, whatever name these have.
    #[cfg(feature = "webhook")]
    #[must_use]
    pub fn webhooks(mut self, webhooks: crate::webhook::Webhooks) -> Self {
        if self.webhooks.is_some() {
            self.mistakes.push("webhooks() is called twice: add all of them to one Webhooks".to_owned());
        }
        self.webhooks = Some(crate::webhook::Webhooks { operator: self.name.clone(), ..webhooks });
        self
    }

    /// Something else to do with a manager before it runs: runnables, checks, metrics, further clusters. It is done for each
    /// [manager](Operator::manager) that the operator is put into, as when a process starts anew.
    #[must_use]
    pub fn setup(
        mut self,
        setup: impl Fn(&mut Manager) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        self.setups.push(Box::new(setup));
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

    /// Its controllers, each made anew.
    #[must_use]
    pub fn controllers(&self) -> Vec<Controller> {
        self.controllers.iter().map(|make| make()).collect()
    }

    /// What is wrong with it.
    fn check(&self) -> Result<(), Error> {
        let mut mistakes = self.mistakes.clone();
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
        for make in &self.controllers {
            rights.merge(make().rights());
        }
        rights
    }

    /// Does what the program's arguments say. What goes wrong is told on standard error, and by a status of 1 (2 for
    /// arguments that make no sense).
    pub async fn main(self) -> ExitCode {
        let arguments: Vec<OsString> = std::env::args_os().collect();
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
        let command = Flags::command().display_name(name.clone()).bin_name(name);
        Flags::from_arg_matches(&command.try_get_matches_from(arguments)?)
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

    async fn run_until_asked(self, run: &Run) -> Result<(), Error> {
        run.log()?;
        let stop = signals::shutdown().map_err(Error::new)?;
        self.run(run, stop).await
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
