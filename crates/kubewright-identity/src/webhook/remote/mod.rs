//! A server that a kubeconfig leads to: the files of `--authentication-token-webhook-config-file` and
//! `--authorization-webhook-config-file` (`k8s.io/apiserver/pkg/util/webhook`, `LoadKubeconfig`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;

use super::client::{Client, Failure};
use super::service::{Place, Resolve};
use super::target::{Access, Credentials, Target};
use kubewright_serve::tls::ServingCertificate;

/// How often is asked, and how long is waited before the second time and, half as long again, before each further one
/// (`k8s.io/apiserver/pkg/server/options`, `DefaultAuthWebhookRetryBackoff`, without its jitter).
const ATTEMPTS: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// A server, and what is shown to it.
#[derive(Clone, Debug)]
pub struct Remote {
    target: Target,
}

/// Reads a file that a kubeconfig names.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

/// Why a kubeconfig leads nowhere, in client-go's words (`k8s.io/client-go/tools/clientcmd/validation.go`).
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// No kubeconfig at all.
    #[error("cannot read the kubeconfig: {0}")]
    Syntax(String),
    /// It speaks of something that is not in it, or not complete.
    #[error("invalid configuration: {0}")]
    Invalid(String),
    /// A file that it names cannot be read.
    #[error("invalid configuration: unable to read {member} {path} for {of} due to {source}")]
    File {
        /// Such as `client-key`.
        member: &'static str,
        /// The file.
        path: String,
        /// The name of the cluster or the user.
        of: String,
        /// What the system said.
        source: io::Error,
    },
    /// A way to prove who one is that is not there.
    #[error(
        "users[{0:?}]: {1} is not supported for webhooks here; use a client certificate, a token or a password"
    )]
    Unsupported(String, &'static str),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: String,
    clusters: Vec<Named<Entry>>,
    users: Vec<Named<Entry>>,
    contexts: Vec<Named<Entry>>,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(flatten)]
    entry: T,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    cluster: Cluster,
    user: User,
    context: Context,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    tls_server_name: String,
    insecure_skip_tls_verify: bool,
    certificate_authority: String,
    certificate_authority_data: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: String,
    client_certificate_data: String,
    client_key: String,
    client_key_data: String,
    token: String,
    #[serde(rename = "tokenFile")]
    token_file: String,
    username: String,
    password: String,
    exec: Option<serde_json::Value>,
    auth_provider: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

impl Remote {
    /// The server of the current context in a kubeconfig (YAML or JSON). Files that it names are read by `read`, at once.
    ///
    /// # Errors
    /// [`KubeconfigError`].
    pub fn of_kubeconfig(text: &str, read: ReadFile<'_>) -> Result<Self, KubeconfigError> {
        let config: Kubeconfig =
            serde_saphyr::from_str(text).map_err(|error| KubeconfigError::Syntax(error.to_string()))?;
        let invalid = |why: String| Err(KubeconfigError::Invalid(why));
        let name = &config.current_context;
        let Some(context) = find(&config.contexts, name).map(|entry| &entry.context) else {
            return invalid(format!("context was not found for specified context: {name}"));
        };
        let (of_user, of_cluster) = (&context.user, &context.cluster);
        let Some(user) = find(&config.users, of_user).map(|entry| &entry.user) else {
            return invalid(format!("user {of_user:?} was not found for context {name:?}"));
        };
        let Some(cluster) = find(&config.clusters, of_cluster).map(|entry| &entry.cluster) else {
            return invalid(format!("cluster {of_cluster:?} was not found for context {name:?}"));
        };
        if cluster.server.is_empty() {
            return invalid(format!("no server found for cluster {of_cluster:?}"));
        }
        let access = Access {
            insecure: cluster.insecure_skip_tls_verify,
            server_name: Some(cluster.tls_server_name.clone()).filter(|name| !name.is_empty()),
            authorization: user.authorization(of_user, read)?,
            credentials: user.credentials(of_user, read)?,
        };
        let bundle = content(
            ("certificate-authority", of_cluster),
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
            read,
        )?;
        if access.insecure && bundle.is_some() {
            let why = "specifying a root certificates file with the insecure flag is not allowed";
            return invalid(why.to_owned());
        }
        let target = Target::of_server(&cluster.server, bundle.unwrap_or_default().into(), Arc::new(access))
            .map_err(KubeconfigError::Invalid)?;
        Ok(Self { target })
    }

    /// Sends `body` (JSON) and gives back the body of the answer (JSON); tries again where that may help.
    ///
    /// # Errors
    /// When there is no good answer within `timeout` each.
    pub async fn post(&self, client: &Client, body: Bytes, timeout: Duration) -> Result<Bytes, Failure> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..ATTEMPTS {
            match client.post(&self.target, &Nowhere, body.clone(), timeout).await {
                Err(Failure::Later(why)) => tracing::debug!(%why, "trying again"),
                answered => return answered,
            }
            tokio::time::sleep(pause).await;
            pause = pause * 3 / 2;
        }
        client.post(&self.target, &Nowhere, body, timeout).await
    }
}

/// No remote server is a service of the cluster.
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<Place, String> {
        Err(format!("service {name:?} not found"))
    }
}

impl User {
    fn authorization(&self, name: &str, read: ReadFile<'_>) -> Result<Option<String>, KubeconfigError> {
        for (there, what) in [(&self.exec, "exec"), (&self.auth_provider, "auth-provider")] {
            if there.is_some() {
                return Err(KubeconfigError::Unsupported(name.to_owned(), what));
            }
        }
        if !self.token_file.is_empty() {
            let token = file(("tokenFile", name), &self.token_file, read)?;
            return Ok(Some(format!("Bearer {}", String::from_utf8_lossy(&token).trim())));
        }
        if !self.token.is_empty() {
            return Ok(Some(format!("Bearer {}", self.token)));
        }
        let both = || STANDARD.encode(format!("{}:{}", self.username, self.password));
        Ok((!self.username.is_empty()).then(|| format!("Basic {}", both())))
    }

    fn credentials(&self, name: &str, read: ReadFile<'_>) -> Result<Option<Credentials>, KubeconfigError> {
        let chain =
            content(("client-cert", name), &self.client_certificate_data, &self.client_certificate, read)?;
        let key = content(("client-key", name), &self.client_key_data, &self.client_key, read)?;
        let (chain, key) = match (chain, key) {
            (None, None) => return Ok(None),
            (Some(chain), Some(key)) => (chain, key),
            _ => {
                let why = format!("both client-certificate and client-key must be specified for {name}");
                return Err(KubeconfigError::Invalid(why));
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (chain, key) = (text(&chain), text(&key));
        ServingCertificate::of_pem(&chain, &key).map_err(|why| KubeconfigError::Invalid(why.to_string()))?;
        Ok(Some(Credentials { chain, key }))
    }
}

fn find<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a T> {
    entries.iter().find(|named| named.name == name).map(|named| &named.entry)
}

/// What stands in a kubeconfig itself, else in the file that it names.
fn content(
    (member, of): (&'static str, &str),
    data: &str,
    path: &str,
    read: ReadFile<'_>,
) -> Result<Option<Vec<u8>>, KubeconfigError> {
    if !data.is_empty() {
        let decoded = STANDARD.decode(data.trim());
        let why = |error| KubeconfigError::Syntax(format!("{member}-data of {of:?}: {error}"));
        return decoded.map(Some).map_err(why);
    }
    if path.is_empty() {
        return Ok(None);
    }
    file((member, of), path, read).map(Some)
}

fn file(
    (member, of): (&'static str, &str),
    path: &str,
    read: ReadFile<'_>,
) -> Result<Vec<u8>, KubeconfigError> {
    read(path).map_err(|source| KubeconfigError::File {
        member,
        path: path.to_owned(),
        of: of.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
