//! The webhooks of a program on a stand: where it serves them, with which certificate, and how the API server finds them there.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::api::DynamicObject;
use kubewright_serve::authority::Authority;
use kubewright_world::World;
use rustix::process::Pid;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use super::{group, program::OperatorCommand};
use crate::run::{account::make_private, webhooks};

/// What stands for the port of the webhooks in a program's arguments.
pub(crate) const WEBHOOK_PORT: &str = "{webhook-port}";
/// What stands for the folder with `tls.crt` and `tls.key`.
pub(crate) const CERTIFICATES: &str = "{webhook-certs}";
/// Where controller-runtime looks for the certificate, below the folder of temporary files.
const SERVING_CERTIFICATES: &str = "k8s-webhook-server/serving-certs";
/// A port on which nothing listens: that of tcpmux.
const NOBODY: u16 = 1;

/// What the API server says when a webhook does not answer, of admission or of conversion, as that of a program that starts.
const UNREACHED: [&str; 2] = ["failed calling webhook", "conversion webhook for"];
/// How long it is waited for the answer of a webhook, and how long between two tries.
const LONGEST_START: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);

/// What to do about webhooks that are not called, or not served.
const REMEDY: &str = "write {webhook-port} into the program's arguments where it takes the port of its webhooks, or name the port that \
                      it has with --webhook-port";

/// On which port a program serves its webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebhookPort {
    /// Another one in each run, which the program is told.
    Free,
    /// The one that the program has.
    Fixed(u16),
}

impl WebhookPort {
    /// The port of a program that is run with these objects, where somebody says it: the program's arguments ask for one, or the
    /// objects have webhooks and it is `said`.
    pub(crate) fn choose(
        said: Option<u16>,
        needed: &[DynamicObject],
        command: &OperatorCommand,
    ) -> Option<Self> {
        let fixed = said.map(Self::Fixed);
        match command.has_webhook_port() {
            true => Some(fixed.unwrap_or(Self::Free)),
            false => fixed.filter(|_| has_some(needed)),
        }
    }

    /// A certificate for it.
    ///
    /// # Errors
    /// As [`Webhooks::prepare`].
    pub(crate) fn prepare(self) -> anyhow::Result<Webhooks> {
        Webhooks::prepare(match self {
            Self::Free => None,
            Self::Fixed(port) => Some(port),
        })
    }
}

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
    fn prepare(port: Option<u16>) -> anyhow::Result<Self> {
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

    /// Waits until the program of a process group serves them. What the program listens on is seen where the machine says it, so that no
    /// connection is in its log; else a connection tells.
    ///
    /// # Errors
    /// When nobody listens there by then, with what is to be done.
    pub(crate) async fn served(&self, group: Option<Pid>, deadline: Instant) -> anyhow::Result<()> {
        let port = self.port;
        let listens = |group: Pid| group::ports(group.as_raw_nonzero().get());
        loop {
            let is_seen = group.and_then(listens).is_some_and(|ports| ports.contains(&port));
            if is_seen || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!(
                    "the program serves no webhooks on 127.0.0.1:{port}, and the manifests have some: {REMEDY}"
                );
            }
            sleep(AGAIN).await;
        }
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

/// The answer to a request; where a webhook does not answer, which `is_unreached` says of an error, the one of a later try.
///
/// # Errors
/// What the last try failed with.
pub(crate) async fn answered<T, E>(
    mut ask: impl AsyncFnMut() -> Result<T, E>,
    is_unreached: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let deadline = Instant::now() + LONGEST_START;
    loop {
        match ask().await {
            Err(error) if is_unreached(&error) && Instant::now() < deadline => sleep(AGAIN).await,
            answer => return answer,
        }
    }
}

/// Whether a refusal is that of a webhook that does not answer.
pub(crate) fn is_unreached(why: &str) -> bool {
    UNREACHED.iter().any(|one| why.contains(one))
}

/// What is to be said where the webhooks of these objects are not called; nothing where there are none.
pub(super) fn not_called(needed: &[DynamicObject]) -> Option<String> {
    let (configurations, definitions): (Vec<_>, Vec<_>) = needed
        .iter()
        .filter(|object| has_some(std::slice::from_ref(object)))
        .partition(|object| object.types.as_ref().is_some_and(|types| types.kind.ends_with("Configuration")));
    let mut lacking = Vec::new();
    if !configurations.is_empty() {
        lacking.push(format!("{} webhook configurations are left out", configurations.len()));
    }
    if !definitions.is_empty() {
        lacking.push(format!("the versions of {} kinds are not converted", definitions.len()));
    }
    (!lacking.is_empty()).then(|| {
        let lacking = lacking.join(", and ");
        format!("{lacking}, as nobody says where the program serves its webhooks: {REMEDY}")
    })
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

    fn objects(json: &[Value]) -> Vec<DynamicObject> {
        json.iter().map(|one| crate::access::object(one.clone()).expect("an object")).collect()
    }

    fn configuration() -> Value {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "m"}})
    }

    fn converted() -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"},
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {}}}})
    }

    #[test]
    fn a_port_is_chosen_where_the_arguments_ask_for_one_or_one_is_said_for_webhooks_that_are_there() {
        let asks = OperatorCommand::foreign("manager", &["--port={webhook-port}".to_owned()]);
        let silent = OperatorCommand::foreign("manager", &[]);
        let (with, without) = (objects(&[configuration()]), objects(&[]));
        let chosen = |said, needed: &[DynamicObject], command| WebhookPort::choose(said, needed, command);
        assert_eq!(chosen(None, &with, &asks), Some(WebhookPort::Free));
        assert_eq!(chosen(None, &without, &asks), Some(WebhookPort::Free));
        assert_eq!(chosen(Some(9443), &with, &asks), Some(WebhookPort::Fixed(9443)));
        assert_eq!(chosen(Some(9443), &with, &silent), Some(WebhookPort::Fixed(9443)));
        assert_eq!(chosen(Some(9443), &without, &silent), None);
        assert_eq!(chosen(None, &with, &silent), None);
    }

    #[test]
    fn webhooks_that_are_not_called_are_told_with_the_remedy() {
        let told = not_called(&objects(&[configuration(), converted()])).expect("two are not called");
        assert!(
            told.starts_with(
                "1 webhook configurations are left out, and the versions of 1 kinds are not converted"
            ) && told.contains("{webhook-port}")
                && told.contains("--webhook-port"),
            "{told}"
        );
        assert_eq!(not_called(&objects(&[json!({"apiVersion": "v1", "kind": "Namespace"})])), None);
    }

    #[tokio::test]
    async fn who_serves_no_webhooks_is_told_so_in_time_and_who_does_is_seen() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let webhooks = Webhooks::prepare(Some(listener.local_addr().expect("its address").port()));
        let webhooks = webhooks.expect("a certificate");
        let deadline = Instant::now();
        webhooks.served(None, deadline).await.expect("somebody listens");
        drop(listener);
        let told = webhooks.served(None, deadline).await.expect_err("nobody does").to_string();
        assert!(told.contains("serves no webhooks") && told.contains("--webhook-port"), "{told}");
    }

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
