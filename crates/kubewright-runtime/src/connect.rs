//! How an operator finds its API server.

use std::{env, path::PathBuf};

use http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{Error, metrics::RequestMetrics, unreachable::Addressed};

/// Connection settings: which API server to speak to, as whom, and how. By default the first of these that is there: the file that
/// `$KUBECONFIG` names, the service account of the pod that this runs in, `~/.kube/config` (controller-runtime's order).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// This kubeconfig and no other.
    pub kubeconfig: Option<PathBuf>,
    /// This context of the kubeconfig instead of its current one.
    pub context: Option<String>,
    /// What to be called in the API server's audit log: `name/version`. By default what kube calls itself.
    pub user_agent: Option<String>,
    /// At most that many requests a second; the server's own priority and fairness is the better limit, so there is none
    /// by default.
    pub queries_per_second: Option<u32>,
}

impl Connect {
    /// The settings that were found.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] with what is wrong with them, or that there are none.
    pub async fn config(&self) -> Result<Config, Error> {
        let mut config = self.find().await?;
        if let Some(name) = &self.user_agent {
            let agent = format!("{name} ({}/{}) kubewright", env::consts::OS, env::consts::ARCH);
            let agent = HeaderValue::from_str(&agent).map_err(misconfigured("the user agent"))?;
            config.headers.push((USER_AGENT, agent));
        }
        Ok(config)
    }

    /// A client that counts its requests in `requests`, and the settings it was made by.
    ///
    /// # Errors
    /// As [`Connect::config`].
    pub async fn client(&self, requests: &RequestMetrics) -> Result<(Client, Config), Error> {
        let config = self.config().await?;
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let stack = ClientBuilder::try_from(config.clone()).map_err(misconfigured("the kubeconfig"))?;
        #[cfg(feature = "otel")]
        let stack = stack.with_layer(&tower::util::MapRequestLayer::new(
            kubewright_telemetry::with_trace_context::<kube::client::Body>,
        ));
        let stack = stack.with_layer(&requests.layer(&host));
        let client = stack.with_layer(&Addressed(host.clone())).build();
        let client = match self.queries_per_second {
            Some(number) => requests.limited(client, &host, number),
            None => client,
        };
        Ok((client, config))
    }

    async fn find(&self) -> Result<Config, Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(path) = &self.kubeconfig {
            let what = format!("the kubeconfig {}", path.display());
            let kubeconfig = Kubeconfig::read_from(path).map_err(misconfigured(&what))?;
            return Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(misconfigured(&what));
        }
        let named = env::var_os("KUBECONFIG").is_some_and(|path| !path.is_empty());
        if !named
            && self.context.is_none()
            && let Ok(config) = Config::incluster()
        {
            return Ok(config);
        }
        Config::from_kubeconfig(&options)
            .await
            .map_err(misconfigured("no API server: there is no service account of a pod, and the kubeconfig"))
    }
}

fn misconfigured<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> Error {
    move |error| Error::Misconfigured(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}},
                     {"name": "b", "cluster": {"server": "http://127.0.0.1:2"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "u", "namespace": "n"}},
                     {"name": "two", "context": {"cluster": "b", "user": "u"}}]}"#;

    fn file(name: &str, text: &str) -> PathBuf {
        let path = env::temp_dir().join(format!("kubewright-connect-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        path
    }

    #[tokio::test]
    async fn a_named_file_and_context_are_taken() {
        let path = file("good", KUBECONFIG);
        let mut connect = Connect { kubeconfig: Some(path.clone()), ..Connect::default() };
        let config = connect.config().await.expect("settings");
        assert_eq!((config.cluster_url.port_u16(), config.default_namespace.as_str()), (Some(1), "n"));
        connect.context = Some("two".to_owned());
        connect.user_agent = Some("web/1.0".to_owned());
        let config = connect.config().await.expect("settings");
        assert_eq!(config.cluster_url.port_u16(), Some(2));
        let agent = config.headers[0].1.to_str().expect("text").to_owned();
        assert!(agent.starts_with("web/1.0 (") && agent.ends_with(") kubewright"), "{agent}");
        std::fs::remove_file(path).expect("it was there");
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_said_with_its_name() {
        let absent = Connect { kubeconfig: Some("/nowhere/config".into()), ..Connect::default() };
        let error = absent.config().await.expect_err("no file").to_string();
        assert!(error.starts_with("the kubeconfig /nowhere/config: "), "{error}");
        let path = file("context", KUBECONFIG);
        let context = Some("three".to_owned());
        let unknown = Connect { kubeconfig: Some(path.clone()), context, ..Connect::default() };
        assert!(matches!(unknown.config().await, Err(Error::Misconfigured(_))));
        std::fs::remove_file(path).expect("it was there");
    }

    #[tokio::test]
    async fn requests_are_counted_by_host_and_by_what_became_of_them() {
        let path = file("count", KUBECONFIG);
        let connect =
            Connect { kubeconfig: Some(path.clone()), queries_per_second: Some(5), ..Connect::default() };
        let metrics = Metrics::new();
        let (client, _) = connect.client(metrics.requests()).await.expect("a client");
        std::fs::remove_file(path).expect("it was there");
        let error = Error::from(client.apiserver_version().await.expect_err("nobody listens there"));
        assert_eq!(
            error.to_string(),
            "cannot reach the API server at 127.0.0.1:1: Connection refused (os error 111)"
        );
        assert_eq!(error.condition_reason(), "Unreachable");
        let counted = "rest_client_requests_total{code=\"<error>\",host=\"127.0.0.1:1\",method=\"GET\"} 1\n";
        assert!(metrics.text().contains(counted), "{}", metrics.text());
    }
}
