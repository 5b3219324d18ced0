//! The API server that controllers are to act on.

use anyhow::Context;
use kube::{Client, Config};
use kubewright_cluster::KubernetesVersion;
use kubewright_controllers::Builtin;

use crate::access::refused;

/// An API server that answers.
pub(super) struct Server {
    pub(super) config: Config,
    /// A client of the kubeconfig's user.
    pub(super) client: Client,
    /// The version of Kubernetes that it is, or the nearest that there are controllers of.
    pub(super) version: KubernetesVersion,
}

impl Server {
    /// Asks it for its version.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn connect(config: &Config) -> anyhow::Result<Self> {
        let client = Client::try_from(config.clone()).context("the kubeconfig")?;
        let said = client.apiserver_version().await;
        let said = said.map_err(|error| refused("the cluster cannot be asked", &error))?;
        Ok(Self { config: config.clone(), client, version: nearest(&said.major, &said.minor) })
    }

    /// The names of controllers that are about a kind which it does not serve.
    ///
    /// # Errors
    /// When it does not tell.
    pub(super) async fn without_subject(&self, builtins: &[&Builtin]) -> anyhow::Result<Vec<&'static str>> {
        let mut without = Vec::new();
        for builtin in builtins {
            let Some((group, version, plural)) = builtin.subject() else { continue };
            let is_served = match self.client.list_api_group_resources(&format!("{group}/{version}")).await {
                Ok(list) => list.resources.iter().any(|resource| resource.name == plural),
                Err(kube::Error::Api(status)) if status.code == 404 => false,
                Err(error) => return Err(refused("the cluster cannot be asked what it serves", &error)),
            };
            if !is_served {
                without.push(builtin.name);
            }
        }
        Ok(without)
    }
}

/// The version of an API server as `/version` says it, or the nearest that is supported.
fn nearest(major: &str, minor: &str) -> KubernetesVersion {
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    if let Ok(version) = format!("{major}.{digits}").parse() {
        return version;
    }
    let minor = digits.parse::<u32>().unwrap_or_default();
    let (oldest, newest) =
        (KubernetesVersion::ALL[0], KubernetesVersion::ALL[KubernetesVersion::ALL.len() - 1]);
    let nearest = if minor < oldest.minor() { oldest } else { newest };
    tracing::warn!("the API server is Kubernetes v{major}.{digits}: the controllers are those of v{nearest}");
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_of_the_version_of_the_api_server_or_the_nearest() {
        let of = |minor: &str| nearest("1", minor);
        assert_eq!((of("36"), of("35+")), (KubernetesVersion::V1_36, KubernetesVersion::V1_35));
        assert_eq!((of("29"), of("99")), (KubernetesVersion::V1_35, KubernetesVersion::V1_37));
    }
}
