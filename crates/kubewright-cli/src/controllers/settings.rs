//! What controllers are told of the cluster by files, as kube-controller-manager is.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow};
use base64::prelude::{BASE64_STANDARD, Engine};
use clap::Args;
use kubewright_control_plane::{KubernetesVersion, ServiceAccounts, TokenKey};
use kubewright_controllers::Setup;
use kubewright_serve::authority::Authority;
use kubewright_world::World;

/// Files, by kube-controller-manager's names.
#[derive(Args, Debug)]
pub(super) struct FileArgs {
    /// The key that signs the tokens of service accounts in Secrets; without, no Secret gets one
    #[arg(long, value_name = "FILE")]
    service_account_private_key_file: Option<PathBuf>,

    /// The certificates by which pods know the API server; without, those of the kubeconfig
    #[arg(long, value_name = "FILE")]
    root_ca_file: Option<PathBuf>,

    /// The certificate of the authority that signs certificate signing requests; without, none are signed
    #[arg(long, value_name = "FILE", requires = "cluster_signing_key_file")]
    cluster_signing_cert_file: Option<PathBuf>,

    /// Its key
    #[arg(long, value_name = "FILE", requires = "cluster_signing_cert_file")]
    cluster_signing_key_file: Option<PathBuf>,
}

impl FileArgs {
    /// What controllers are told, and which of them cannot run, each with the flag that it lacks.
    ///
    /// # Errors
    /// When a file cannot be read, or does not hold what it is to hold.
    pub(super) fn setup(
        &self,
        config: &kube::Config,
        world: &World,
        (nodes, all_nodes): (usize, bool),
        kubernetes: KubernetesVersion,
    ) -> anyhow::Result<(Setup, Vec<(&'static str, &'static str)>)> {
        let mut without = Vec::new();
        let key = match &self.service_account_private_key_file {
            Some(path) => {
                let text = read("--service-account-private-key-file", path)?;
                let no_key =
                    || format!("--service-account-private-key-file: {} holds no key", path.display());
                TokenKey::of_pem(&text).with_context(no_key)?
            }
            None => {
                without.push(("serviceaccount-token-controller", "--service-account-private-key-file"));
                TokenKey::generate().map_err(|error| anyhow!("no key: {error}"))?
            }
        };
        let ca = match &self.root_ca_file {
            Some(path) => read("--root-ca-file", path)?,
            None => certificates(config),
        };
        let authority = match (&self.cluster_signing_cert_file, &self.cluster_signing_key_file) {
            (Some(certificate), Some(key)) => {
                let texts = (
                    read("--cluster-signing-cert-file", certificate)?,
                    read("--cluster-signing-key-file", key)?,
                );
                let loaded = Authority::load(world, &texts.0, &texts.1);
                Some(Arc::new(loaded.context("--cluster-signing-cert-file, --cluster-signing-key-file")?))
            }
            _ => {
                without.push(("certificatesigningrequest-signing-controller", "--cluster-signing-cert-file"));
                None
            }
        };
        let accounts = Arc::new(ServiceAccounts::new(key));
        Ok((Setup { ca, nodes, all_nodes, accounts, authority, kubernetes, resets: None }, without))
    }
}

fn read(flag: &str, path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("{flag}: {}", path.display()))
}

/// The certificates of a kubeconfig, as a file of them has them.
fn certificates(config: &kube::Config) -> String {
    let pem = |der: &Vec<u8>| {
        let text = BASE64_STANDARD.encode(der);
        let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    };
    config.root_cert.iter().flatten().map(pem).collect()
}
