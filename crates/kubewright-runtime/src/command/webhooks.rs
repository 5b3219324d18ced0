//! The webhooks of an operator as a program.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};

use super::{AdmissionFlags, Installation, Operator, run::is_off};
use crate::{
    Error,
    webhook::{Certificates, Reach, Registration, Server},
};

/// How an operator's webhooks are served: what the flags of `run` say. The defaults are for an operator on the machine of its
/// API server.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct WebhookFlags {
    /// Where webhooks are served, if there are any (`:9443` for every address); 0 for nowhere
    #[arg(long, value_name = "ADDRESS", env = "WEBHOOK_BIND_ADDRESS", default_value = "127.0.0.1:9443")]
    pub webhook_bind_address: String,
    /// The Service behind which the API server finds them
    #[arg(long, value_name = "NAMESPACE/NAME", env = "WEBHOOK_SERVICE", conflicts_with = "webhook_url")]
    pub webhook_service: Option<String>,
    /// The URL at which the API server finds them (`https://10.0.0.5:9443`), outside of the cluster; where they are served
    /// if not told
    #[arg(long, value_name = "URL", env = "WEBHOOK_URL")]
    pub webhook_url: Option<String>,
    /// Keep an authority in this Secret, for all replicas; without, it is in memory
    #[arg(long, value_name = "NAMESPACE/NAME", env = "WEBHOOK_SECRET", conflicts_with = "webhook_cert_path")]
    pub webhook_secret: Option<String>,
    /// The folder of a certificate that somebody else renews (cert-manager, a mounted Secret), with its `ca.crt`
    #[arg(long, value_name = "FOLDER", env = "WEBHOOK_CERT_PATH")]
    pub webhook_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    pub webhook_cert_name: String,
    /// The file of its key in that folder
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    pub webhook_cert_key: String,
    /// Serve only API servers that show a certificate of the authority in this file
    #[arg(long, value_name = "FILE", env = "WEBHOOK_CLIENT_CA")]
    pub webhook_client_ca: Option<PathBuf>,
    /// What is written into the cluster
    #[arg(long, value_enum, env = "WEBHOOK_REGISTRATION", default_value_t = WebhookRegistration::Apply)]
    pub webhook_registration: WebhookRegistration,
    /// What they are asked about, where all of their configurations are written.
    #[command(flatten)]
    pub admission: AdmissionFlags,
}

/// [`Registration`] as a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum WebhookRegistration {
    /// The configurations, and the conversion of definitions that are there.
    Apply,
    /// The `caBundle` in what `manifests` has installed.
    CaBundle,
    /// Nothing.
    Nothing,
}

impl Default for WebhookFlags {
    /// What an empty command line says, whatever the environment.
    fn default() -> Self {
        Self {
            webhook_bind_address: "127.0.0.1:9443".to_owned(),
            webhook_service: None,
            webhook_url: None,
            webhook_secret: None,
            webhook_cert_path: None,
            webhook_cert_name: "tls.crt".to_owned(),
            webhook_cert_key: "tls.key".to_owned(),
            webhook_client_ca: None,
            webhook_registration: WebhookRegistration::Apply,
            admission: AdmissionFlags::default(),
        }
    }
}

impl WebhookFlags {
    /// Sets up a server as they say.
    fn apply(&self, server: Server) -> Result<Server, Error> {
        let address = address(&self.webhook_bind_address)?;
        let mut server = server.bind(address).registration(match self.webhook_registration {
            WebhookRegistration::Apply => Registration::Apply,
            WebhookRegistration::CaBundle => Registration::CaBundle,
            WebhookRegistration::Nothing => Registration::Nothing,
        });
        if let Some(file) = &self.webhook_client_ca {
            server = server.client_ca(file);
        }
        if let Some(url) = &self.webhook_url {
            server = server.reached_at(Reach::Url(url.clone()));
        } else if let Some(service) = &self.webhook_service {
            let (namespace, name) = namespaced("--webhook-service", service)?;
            server = server.reached_at(Reach::service(namespace, name));
        } else if address.ip().is_unspecified() && self.webhook_registration != WebhookRegistration::Nothing {
            return Err(Error::Misconfigured(format!(
                "--webhook-bind-address={} is every address of the machine: say where the API server finds the webhooks, by \
                 --webhook-service or --webhook-url",
                self.webhook_bind_address
            )));
        }
        if let Some(secret) = &self.webhook_secret {
            let (namespace, name) = namespaced("--webhook-secret", secret)?;
            server = server.certificates(Certificates::in_secret(namespace, name));
        } else if let Some(folder) = &self.webhook_cert_path {
            let file = |name: &str| folder.join(name);
            let (certificate, key) = (file(&self.webhook_cert_name), file(&self.webhook_cert_key));
            server = server.certificates(Certificates::in_files(certificate, key, file("ca.crt")));
        }
        Ok(server)
    }
}

impl Operator {
    /// The server of its webhooks, as flags say; `None` where there are none, or they are not to be served.
    pub(super) fn webhook_server(&self, flags: &WebhookFlags) -> Result<Option<Server>, Error> {
        let served = self.webhooks.clone().filter(|_| !is_off(&flags.webhook_bind_address));
        served.map(|webhooks| flags.apply(Server::new(flags.admission.apply(webhooks)?))).transpose()
    }

    /// Its webhooks for an API server in this process, without a socket: under which name that calls them, and what is to be
    /// handed to [`Manager::serve`](crate::Manager::serve). `None` when it has none. What leads to them are the
    /// configurations and definitions of its [prerequisites](Operator::prerequisites).
    ///
    /// ```no_run
    /// # use kubewright_runtime::{Error, Manager, command::{Installation, Operator, Run}};
    /// # fn example(operator: &Operator, manager: Manager) -> Result<Manager, Error> {
    /// let mut manager = operator.manager(manager, &Run::default())?;
    /// if let Some((host, server)) = operator.webhooks_in_process(&Installation::default()) {
    ///     // cluster.mount_webhooks(host, server.service());
    ///     manager.serve(server);
    /// }
    /// # Ok(manager) }
    /// ```
    #[must_use]
    pub fn webhooks_in_process(&self, installation: &Installation) -> Option<(String, Server)> {
        let webhooks = self.webhooks.clone()?;
        let (namespace, name) = (self.home(installation), format!("{}-webhook", self.name));
        let host = format!("{name}.{namespace}.svc");
        let server = Server::new(webhooks).in_process(Reach::service(namespace, name));
        Some((host, server.registration(Registration::Nothing)))
    }
}

/// `127.0.0.1:9443`, or `:9443` for every address that the program has.
fn address(text: &str) -> Result<SocketAddr, Error> {
    crate::serving::whole(text).parse().map_err(|_| {
        Error::Misconfigured(format!(
            "--webhook-bind-address={text:?} is no address: write :9443 or 127.0.0.1:9443"
        ))
    })
}

fn namespaced<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), Error> {
    let both = text.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
    both.ok_or_else(|| Error::Misconfigured(format!("{flag}={text:?}: write namespace/name")))
}
