//! As whom controllers act: as the user of the kubeconfig, or each as a service account of its own
//! (`k8s.io/controller-manager/pkg/clientbuilder/client_builder_dynamic.go`).

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use anyhow::Context;
use http::{HeaderValue, Request, header};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{
    Api, Client, Config,
    api::PostParams,
    client::{Body, ClientBuilder},
    config::AuthInfo,
    core::ObjectMeta,
};
use kubewright_controllers::Builtin;
use serde_json::{Value, json};
use tower::util::MapRequestLayer;

use super::{SYSTEM, server::Server};
use crate::access::refused;

/// How the users begin that are service accounts there.
const PREFIX: &str = "system:serviceaccount:kube-system:";

/// How long a token is asked for, in seconds, and after how long another one is: a server may give it for ten minutes.
const LIFETIME: i64 = 3600;
const RENEWAL: Duration = Duration::from_secs(300);
/// How soon it is asked again that has refused.
const RETRY: Duration = Duration::from_secs(10);

/// The value of an `Authorization` header, which is renewed.
type Token = Arc<RwLock<HeaderValue>>;

/// Who writes for whom.
pub(super) struct Writers {
    config: Config,
    own: Client,
    /// The tokens of service accounts, by their names.
    tokens: BTreeMap<String, Token>,
}

impl Writers {
    /// Has a token made for the account of each controller, where they are to have their own. Accounts that are missing are made.
    ///
    /// # Errors
    /// When the cluster refuses.
    pub(super) async fn connect(
        server: &Server,
        builtins: &[&Builtin],
        as_accounts: bool,
    ) -> anyhow::Result<Self> {
        let own = server.client.clone();
        let names = builtins.iter().filter_map(|builtin| builtin.identity.user.strip_prefix(PREFIX));
        let names: BTreeSet<_> = names.filter(|_| as_accounts).collect();
        let mut tokens = BTreeMap::new();
        for name in names {
            let token = token(&own, name).await;
            let token = token.map_err(|error| refused(&format!("no token for {SYSTEM}/{name}"), &error))?;
            tokens.insert(name.to_owned(), Arc::new(RwLock::new(token)));
        }
        Ok(Self { config: server.config.clone(), own, tokens })
    }

    /// A client for a controller.
    pub(super) fn of(&self, builtin: &Builtin) -> anyhow::Result<Client> {
        let account = builtin.identity.user.strip_prefix(PREFIX).and_then(|name| self.tokens.get(name));
        let Some(token) = account else { return self.of_program(builtin.identity.program) };
        let mut config = self.named(builtin.identity.program)?;
        config.auth_info = AuthInfo::default();
        let token = Arc::clone(token);
        let show = MapRequestLayer::new(move |mut request: Request<Body>| {
            let shown = token.read().unwrap_or_else(PoisonError::into_inner).clone();
            request.headers_mut().insert(header::AUTHORIZATION, shown);
            request
        });
        Ok(ClientBuilder::try_from(config).context("the kubeconfig")?.with_layer(&show).build())
    }

    /// A client of the kubeconfig's user, which calls itself by a program's name: the manager of the fields that it writes.
    pub(super) fn of_program(&self, program: &str) -> anyhow::Result<Client> {
        Client::try_from(self.named(program)?).context("the kubeconfig")
    }

    fn named(&self, program: &str) -> anyhow::Result<Config> {
        let mut config = self.config.clone();
        let agent = format!("{program}/{} kubewright", env!("CARGO_PKG_VERSION"));
        config.headers.push((header::USER_AGENT, HeaderValue::from_str(&agent)?));
        Ok(config)
    }

    /// Renews the tokens for ever. That a server cannot be asked is no reason to end: it may be back soon.
    pub(super) async fn keep(&self) -> Infallible {
        let mut wait = RENEWAL;
        loop {
            tokio::time::sleep(wait).await;
            wait = RENEWAL;
            for (name, held) in &self.tokens {
                match token(&self.own, name).await {
                    Ok(token) => *held.write().unwrap_or_else(PoisonError::into_inner) = token,
                    Err(error) => {
                        tracing::warn!(%error, "the token of {SYSTEM}/{name} is not renewed");
                        wait = RETRY;
                    }
                }
            }
        }
    }
}

/// A new token of an account, which is made if it is not there.
async fn token(client: &Client, name: &str) -> kube::Result<HeaderValue> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), SYSTEM);
    let metadata = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    if accounts.get_opt(name).await?.is_none() {
        let namespace = Namespace { metadata: metadata(SYSTEM), ..Namespace::default() };
        created(Api::all(client.clone()).create(&PostParams::default(), &namespace).await)?;
        let account = ServiceAccount { metadata: metadata(name), ..ServiceAccount::default() };
        created(accounts.create(&PostParams::default(), &account).await)?;
    }
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME},
    });
    let url = format!("/api/v1/namespaces/{SYSTEM}/serviceaccounts/{name}/token");
    let request = Request::post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(request.to_string().into_bytes())
        .map_err(|error| kube::Error::Service(Box::new(error)))?;
    let made: Value = client.request(request).await?;
    let token = made["status"]["token"].as_str().unwrap_or_default();
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|error| kube::Error::Service(Box::new(error)))?;
    value.set_sensitive(true);
    Ok(value)
}

/// It does not matter who has made it.
fn created<T>(made: kube::Result<T>) -> kube::Result<()> {
    match made {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        made => made.map(drop),
    }
}
