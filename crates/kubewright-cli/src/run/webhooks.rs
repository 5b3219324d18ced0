//! The webhooks of an operator that runs on this machine.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, TcpListener},
};

use anyhow::{Context, bail};
use http::Uri;
use kube::{ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::RunArgs;
use crate::access::{self, Access, Objects, called, refused};

/// The port of controller-runtime's webhook server.
const PORT: u16 = 9443;

/// What an operator of the SDK is told whose webhooks are not to be served. One that has none may not know the flag.
pub(crate) const NOWHERE: &str = "--webhook-bind-address=0";

/// Where they are served, and where the API server finds them.
#[derive(Debug)]
pub(super) struct WebhookAddress {
    bind: String,
    /// `https://127.0.0.1:9443`, without a path.
    url: String,
}

impl WebhookAddress {
    /// How the cluster reaches the webhooks of an operator with these manifests, where it has some and they are wanted.
    ///
    /// # Errors
    /// When nobody has said, and the cluster is not on this machine.
    pub(super) fn choose(args: &RunArgs, objects: &[Value], server: &Uri) -> anyhow::Result<Option<Self>> {
        if args.no_webhooks || !objects.iter().any(leads_to_webhooks) {
            return Ok(None);
        }
        if args.is_embedded() {
            // Taken for a moment, so that it is a free one.
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .and_then(|listener| listener.local_addr())
                .context("no port for the webhooks")?
                .port();
            return Ok(Some(Self::local(port)));
        }
        if let Some(url) = &args.webhook_url {
            let uri: Uri = url.parse().with_context(|| format!("--webhook-url {url}"))?;
            let port = uri.port_u16().unwrap_or(443);
            let url = url.trim_end_matches('/').to_owned();
            return Ok(Some(Self { bind: format!("0.0.0.0:{port}"), url }));
        }
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_here =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        match is_here {
            true => Ok(Some(Self::local(PORT))),
            false => bail!(
                "the operator has webhooks, and the cluster at {host} has to reach them on this machine: say where, with \
                 --webhook-url https://ADDRESS:{PORT}, or do without them: --no-webhooks"
            ),
        }
    }

    fn local(port: u16) -> Self {
        Self { bind: format!("127.0.0.1:{port}"), url: format!("https://127.0.0.1:{port}") }
    }

    /// What the operator is told.
    pub(super) fn flags(&self) -> Vec<OsString> {
        let Self { bind, url } = self;
        [
            format!("--webhook-bind-address={bind}"),
            format!("--webhook-url={url}"),
            // It may not make configurations in a cluster, and does not have to: they are there.
            "--webhook-registration=ca-bundle".to_owned(),
        ]
        .map(OsString::from)
        .into()
    }
}

/// What an operator with these objects is told whose webhooks are not to be served.
pub(super) fn off(objects: &[Value]) -> Vec<OsString> {
    match objects.iter().any(leads_to_webhooks) {
        true => vec![NOWHERE.into()],
        false => Vec::new(),
    }
}

/// Whether an object leads the API server to webhooks.
pub(crate) fn leads_to_webhooks(object: &Value) -> bool {
    is_configuration(object) || is_converted(object)
}

fn is_configuration(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"))
}

fn is_converted(object: &Value) -> bool {
    object["spec"]["conversion"]["strategy"] == "Webhook"
}

/// An object that leads to this machine where it led to a Service; `None` for one that is not to be there without a way.
pub(super) fn led(object: &Value, address: Option<&WebhookAddress>) -> Option<Value> {
    match address {
        Some(address) => Some(led_by(object, &|path| json!({"url": format!("{}{path}", address.url)}))),
        None if is_configuration(object) => None,
        None => {
            let mut object = object.clone();
            if is_converted(&object) {
                object["spec"]["conversion"] = json!({"strategy": "None"});
            }
            Some(object)
        }
    }
}

/// An object that leads where `client` says for a path, in place of a Service.
pub(crate) fn led_by(object: &Value, client: &dyn Fn(&str) -> Value) -> Value {
    let mut object = object.clone();
    let lead = |config: &mut Value| {
        let path = config["service"]["path"].as_str().unwrap_or_default().to_owned();
        *config = client(&path);
    };
    if is_configuration(&object) {
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            lead(&mut webhook["clientConfig"]);
        }
    } else if is_converted(&object) {
        lead(&mut object["spec"]["conversion"]["webhook"]["clientConfig"]);
    }
    object
}

/// Removes the configurations: without the operator, every write that they look at would fail.
///
/// # Errors
/// When the cluster refuses.
pub(super) async fn remove(access: &Access, objects: &[Value]) -> anyhow::Result<()> {
    let mut cluster = Objects::new(&access.client);
    for object in objects.iter().filter(|object| is_configuration(object)) {
        let object = access::object(object.clone())?;
        match cluster.api(&object).await?.delete(&object.name_any(), &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                let what = format!("{} stays, and leads to nobody: delete it", called(&object));
                return Err(refused(&what, &error));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_a_service_leads_to_this_machine() {
        let service = json!({"service": {"name": "s", "namespace": "n", "path": "/deny"}});
        let configuration = json!({
            "kind": "ValidatingWebhookConfiguration", "webhooks": [{"name": "w", "clientConfig": service}],
        });
        let address = WebhookAddress::local(1234);
        let led_here = led(&configuration, Some(&address)).expect("with a way");
        assert_eq!(led_here["webhooks"][0]["clientConfig"], json!({"url": "https://127.0.0.1:1234/deny"}));
        assert_eq!(led(&configuration, None), None);
        let definition = json!({
            "kind": "CustomResourceDefinition",
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": service}}},
        });
        let unconverted = led(&definition, None).expect("a definition is always there");
        assert_eq!(unconverted["spec"]["conversion"], json!({"strategy": "None"}));
    }
}
