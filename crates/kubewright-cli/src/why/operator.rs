//! What an operator says of its reconciles: `/debug/reconciles` of its metrics address.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use http::{Request, Uri};
use kube::{Client, Config};
use serde_json::Value;

use crate::access::chain;

/// How long an operator may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The operator of the object.
#[derive(Args, Debug)]
pub(crate) struct OperatorArgs {
    /// The metrics address of its operator, which tells of its reconciles there, such as http://127.0.0.1:8080 (kubectl port-forward)
    #[arg(long = "operator", value_name = "URL")]
    url: Option<Uri>,

    /// A file with the bearer token for that address; its account needs to `get` the path /debug/reconciles
    #[arg(long = "operator-token", value_name = "FILE", requires = "url")]
    token: Option<PathBuf>,
}

impl OperatorArgs {
    /// Asks the operator, where one is named.
    ///
    /// # Errors
    /// When it does not answer, or not as operators of Kubewright do.
    pub(super) async fn reconciles(&self) -> anyhow::Result<Option<Value>> {
        let Some(url) = &self.url else { return Ok(None) };
        if !matches!(url.scheme_str(), Some("http" | "https")) {
            bail!("operator {url} is no address: say it with its scheme, such as http://127.0.0.1:8080");
        }
        let asked = tokio::time::timeout(PATIENCE, self.ask(url)).await;
        let text =
            asked.with_context(|| format!("operator {url} does not answer in {}s", PATIENCE.as_secs()))??;
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        if !said["controllers"].is_array() {
            bail!(
                "operator {url} says nothing of its reconciles at /debug/reconciles: is it an operator of Kubewright's SDK?"
            );
        }
        Ok(Some(said))
    }

    async fn ask(&self, url: &Uri) -> anyhow::Result<String> {
        let mut config = Config::new(url.clone());
        // A forwarded port shows the certificate of a name in the cluster.
        config.accept_invalid_certs = matches!(url.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if let Some(file) = &self.token {
            let token = std::fs::read_to_string(file)
                .with_context(|| format!("token file {} cannot be read", file.display()))?;
            config.auth_info.token = Some(token.trim().to_owned().into());
        }
        let client = Client::try_from(config).with_context(|| format!("operator {url}"))?;
        let request = Request::get("/debug/reconciles").body(Vec::new())?;
        let answer = client.request_text(request).await;
        answer.map_err(|error| match error {
            kube::Error::Api(status) => anyhow::anyhow!(
                "operator {url} refuses GET /debug/reconciles ({}): name a token that may read it with --operator-token",
                status.code
            ),
            error => anyhow::anyhow!("operator {url} cannot be reached: {}", chain(&error)),
        })
    }
}
