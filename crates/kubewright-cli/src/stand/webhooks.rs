//! The webhooks of a program on a stand: where it serves them, with which certificate, and how the API server finds them there.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::api::DynamicObject;
use kubewright_serve::authority::Authority;
use kubewright_world::World;
use serde_json::{Value, json};

use crate::run::{account::make_private, webhooks};

/// What stands for the port of the webhooks in a program's arguments.
pub(crate) const WEBHOOK_PORT: &str = "{webhook-port}";
/// What stands for the folder with `tls.crt` and `tls.key`.
pub(crate) const CERTIFICATES: &str = "{webhook-certs}";
/// Where controller-runtime looks for the certificate, below the folder of temporary files.
const SERVING_CERTIFICATES: &str = "k8s-webhook-server/serving-certs";
/// A port on which nothing listens: that of tcpmux.
const NOBODY: u16 = 1;

/// Where the webhooks of one run are, with a certificate of their own. Its folder goes when this is dropped.
pub(crate) struct Webhooks {
    port: u16,
    folder: PathBuf,
    ca: String,
}

impl Webhooks {
    /// Makes a certificate for a port, or for one that is free now.
    ///
    /// # Errors
    /// When there is no port, no entropy, or the file system refuses.
    pub(crate) fn prepare(port: Option<u16>) -> anyhow::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = match port {
            Some(port) => port,
            None => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let address = listener.and_then(|listener| listener.local_addr());
                address.context("no port for the webhooks")?.port()
            }
        };
        let folder =
            std::env::temp_dir().join(format!("kubewright-webhooks-{}-{number}", std::process::id()));
        let authority = Authority::new(&World::real()).context("an authority for the webhooks")?;
        let certificate = authority.serving_certificate(&["localhost", "127.0.0.1"]);
        let certificate = certificate.context("a certificate for the webhooks")?;
        make_private(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let webhooks = Self { port, folder, ca: authority.ca_pem() };
        let place = webhooks.certificates();
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        write(&place.join("tls.crt"), &certificate.certificate_pem())?;
        write(&place.join("tls.key"), &certificate.key_pem())?;
        Ok(webhooks)
    }

    /// The port on which the program serves them.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The folder that the program takes for that of temporary files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the certificate.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.folder.join(SERVING_CERTIFICATES)
    }

    /// An object that leads to the program where it led to a Service.
    ///
    /// # Errors
    /// When it is none any more.
    pub(crate) fn lead(&self, object: &DynamicObject) -> anyhow::Result<DynamicObject> {
        self.lead_to(self.port, object)
    }

    /// An object that leads where nobody listens, as while the program is away.
    ///
    /// # Errors
    /// When it is none any more.
    pub(crate) fn lead_nowhere(&self, object: &DynamicObject) -> anyhow::Result<DynamicObject> {
        self.lead_to(NOBODY, object)
    }

    fn lead_to(&self, port: u16, object: &DynamicObject) -> anyhow::Result<DynamicObject> {
        let json = serde_json::to_value(object).context("an object of the manifests")?;
        let bundle = BASE64_STANDARD.encode(&self.ca);
        let client =
            |path: &str| json!({"url": format!("https://127.0.0.1:{port}{path}"), "caBundle": bundle});
        crate::access::object(webhooks::led_by(&json, &client))
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether objects have webhooks, of admission or of conversion.
pub(crate) fn has_some(objects: &[DynamicObject]) -> bool {
    let json = objects.iter().filter_map(|object| serde_json::to_value(object).ok());
    json.into_iter().any(|object: Value| webhooks::leads_to_webhooks(&object))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_lead_to_the_program_with_its_authority() {
        let webhooks = Webhooks::prepare(Some(1234)).expect("a certificate");
        let service = json!({"service": {"name": "s", "namespace": "n", "path": "/mutate"}});
        let configuration = crate::access::object(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "m"}, "webhooks": [{"name": "w", "clientConfig": service}],
        }));
        let configuration = configuration.expect("an object");
        let led = webhooks.lead(&configuration).expect("an object");
        let client = &led.data["webhooks"][0]["clientConfig"];
        assert_eq!(client["url"], "https://127.0.0.1:1234/mutate");
        let nowhere = webhooks.lead_nowhere(&configuration).expect("an object");
        assert_eq!(nowhere.data["webhooks"][0]["clientConfig"]["url"], "https://127.0.0.1:1/mutate");
        assert!(
            client["caBundle"].as_str().is_some_and(|bundle| bundle.len() > 100)
                && client.get("service").is_none()
        );
        let folder = webhooks.folder().to_owned();
        assert!(webhooks.certificates().join("tls.key").is_file());
        drop(webhooks);
        assert!(!folder.exists());
    }
}
