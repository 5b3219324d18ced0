//! An operator's service account, for an operator that runs outside of the cluster.

use std::{
    convert::Infallible,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, anyhow};
use kube::Client;
use serde_json::{Value, json};

use crate::access::{Access, ClusterArgs, refused};

/// How long a token is asked for that is in a file, in seconds. Who takes one reads the file anew long before that.
const RENEWED: u64 = 3600;
/// How long one is asked for that is in the kubeconfig, which is read once.
const LASTING: u64 = 24 * 3600;
/// After how long it is asked for anew: a server may give it for ten minutes.
const RENEWAL: Duration = Duration::from_secs(300);

/// The account, with a kubeconfig of it in a folder that goes when this is dropped.
pub(crate) struct Account {
    client: Client,
    url: String,
    folder: PathBuf,
    kubeconfig: PathBuf,
    /// For how many seconds tokens are asked for.
    lifetime: u64,
}

impl Account {
    /// Has a token made for the account, which is to be there, and writes a kubeconfig that leads to it: the token is in a file, which
    /// [`keep`](Self::keep) renews.
    ///
    /// # Errors
    /// When the cluster gives no token, or the file system refuses.
    pub(crate) async fn of(
        access: &Access,
        cluster: &ClusterArgs,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Self> {
        let account = Self::new(access, namespace, name, RENEWED)?;
        account.renew().await?;
        let kubeconfig = kubeconfig(access, cluster, namespace, &json!({"tokenFile": account.token_file()}))?;
        account.write(&account.kubeconfig, &kubeconfig.to_string())?;
        Ok(account)
    }

    /// The same for a program in any language on a control plane that ends before the day does: the token is in the kubeconfig itself. Not
    /// all clients read it from a file: kopf does not with pykube or by itself, and acts as nobody.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) async fn of_any_client(access: &Access, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let account = Self::new(access, namespace, name, LASTING)?;
        let token = account.token().await?;
        let kubeconfig = kubeconfig(access, &ClusterArgs::default(), namespace, &json!({"token": token}))?;
        account.write(&account.kubeconfig, &kubeconfig.to_string())?;
        Ok(account)
    }

    fn new(access: &Access, namespace: &str, name: &str, lifetime: u64) -> anyhow::Result<Self> {
        // One process may run several operators.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kubewright-run-{}-{number}", std::process::id()));
        let account = Self {
            client: access.client.clone(),
            url: format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"),
            kubeconfig: folder.join("kubeconfig"),
            folder,
            lifetime,
        };
        make_private(&account.folder).with_context(|| format!("cannot make {}", account.folder.display()))?;
        Ok(account)
    }

    /// Where its kubeconfig is.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Renews the token for ever. That a server cannot be asked is no reason to end: it may be back soon.
    pub(crate) async fn keep(&self) -> Infallible {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Err(error) = self.renew().await {
                tracing::warn!("the operator's token is not renewed: {error:#}");
            }
        }
    }

    async fn renew(&self) -> anyhow::Result<()> {
        self.write(&self.token_file(), &self.token().await?)
    }

    /// A new token.
    async fn token(&self) -> anyhow::Result<String> {
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": self.lifetime},
        });
        let request = http::Request::post(&self.url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&body)?)?;
        let answer: Value = self
            .client
            .request(request)
            .await
            .map_err(|error| refused("the cluster gives no token for the operator's account", &error))?;
        let token = answer["status"]["token"].as_str().context("the cluster's token has no text")?;
        Ok(token.to_owned())
    }

    fn token_file(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// In one step: the operator may read it at any moment.
    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let temporary = path.with_extension("new");
        let written = (|| {
            let _ = fs::remove_file(&temporary);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(&temporary)?.write_all(text.as_bytes())?;
            fs::rename(&temporary, path)
        })();
        written.map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A folder for this user alone. One that is there is of somebody else, or of an earlier process of this number.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(folder);
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The way to the same cluster, as this user alone.
fn kubeconfig(
    access: &Access,
    cluster: &ClusterArgs,
    namespace: &str,
    user: &Value,
) -> anyhow::Result<Value> {
    let all = &access.kubeconfig;
    let wanted = cluster.context.as_ref().or(all.current_context.as_ref());
    let context = all.contexts.iter().find(|context| Some(&context.name) == wanted);
    let context =
        context.and_then(|context| context.context.as_ref()).context("the kubeconfig has no such context")?;
    let named = all.clusters.iter().find(|named| named.name == context.cluster);
    let named = named.context("the kubeconfig has no such cluster")?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [named],
        "users": [{"name": "operator", "user": user}],
        "contexts": [{
            "name": "operator",
            "context": {"cluster": context.cluster, "user": "operator", "namespace": namespace},
        }],
        "current-context": "operator",
    }))
}
