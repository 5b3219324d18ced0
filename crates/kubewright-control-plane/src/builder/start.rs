//! From settings to a control plane.

use std::sync::Arc;

use kubewright_apiserver::http::{ApiServer, Config};
use kubewright_engine::Engine;
use kubewright_engine::bootstrap::{adopt, bootstrap};
use kubewright_identity::authn::{Authenticator, FrontProxy, KeyError, ServiceAccounts, TokenKey, published};
use kubewright_identity::authz::Mode;
use kubewright_identity::webhook::Upstreams;
use kubewright_kinds::Summary;
use kubewright_serve::authority::Authority;
use kubewright_store::Store;
use kubewright_world::{Pacer, World};
use tokio_util::sync::CancellationToken;

use super::{Builder, StartError};
use crate::admin::Admin;
use crate::control_plane::Socket;
use crate::front_proxy::{OwnProxy, ProxyClient};
use crate::journal::{Journal, Journaled};
use crate::origin::Origin;
use crate::recording::replay;
use crate::{ControlPlane, Endpoint};

/// Where the objects of a cluster are.
struct Objects {
    store: Arc<dyn Store<Summary>>,
    journal: Option<Journal>,
    /// The key for tokens that is kept with them.
    token_key: Option<TokenKey>,
    /// The authority of what is shown to API servers behind this one, that is kept with them.
    proxy_authority: Option<Authority>,
}

impl Builder {
    /// Starts the control plane: when this returns the API answers.
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Panics
    /// Outside a tokio runtime; with a [pacing](Self::pacing), in one whose clock is not paused.
    pub async fn start(mut self) -> Result<ControlPlane, StartError> {
        let allows_all = self.authorization.iter().any(|mode| matches!(mode, Mode::AlwaysAllow));
        self.anonymous &= !allows_all;
        let shutdown = CancellationToken::new();
        if let Some(data) = &self.data {
            self.kubernetes = data.kubernetes;
        }
        let origin = if self.begins_as_all() { Some(Origin::shared(self.kubernetes).await?) } else { None };
        let (world, pacer) = self.begin_time(&shutdown);
        let Objects { store, journal, token_key, proxy_authority } = self.objects(&world, origin).await?;
        let (trusted, upstreams) = self.upstreams(&world, origin, proxy_authority)?;
        let accounts = Arc::new(self.accounts(&world, token_key)?);
        let engine = self.engine(&world, store, trusted.as_ref());
        match origin {
            Some(_) => adopt(&engine).await,
            None => bootstrap(&engine).await?,
        }
        let socket = self.endpoint.as_ref().map(|endpoint| {
            let (address, ca) = (endpoint.address(), endpoint.ca_pem());
            Box::new(Socket { address, ca, authority: endpoint.authority() })
        });
        let proxies = self.front_proxy.as_ref().map(|proxy| proxy.ca().clone());
        let config = Config {
            engine,
            authenticator: self.authenticator(&world, Arc::clone(&accounts)),
            shutdown: shutdown.clone(),
            address: socket
                .as_ref()
                .map_or_else(|| "in-process".to_owned(), |socket| socket.address.to_string()),
            kubelets: std::mem::take(&mut self.kubelets),
        };
        let mut edge = self.edge;
        if journal.is_some() {
            // It knows whose a commit is by the task that makes it, which has to be the request's own.
            edge.places = 0;
        }
        let server = ApiServer::in_front_of(config, edge, upstreams);
        let admin = (self.admin || self.request_log)
            .then(|| Admin::new(server.downgrade(), world.clone(), pacer, shutdown.clone(), self.admin));
        let tasks = Vec::new();
        let mut control_plane =
            ControlPlane { server, world, shutdown, tasks, admin, journal, accounts, socket };
        let following = control_plane.server.follow_api_services();
        control_plane.spawn(following);
        if let Some(endpoint) = self.endpoint {
            control_plane.serve(endpoint, proxies.as_ref())?;
        }
        Ok(control_plane)
    }

    /// Whether the cluster begins as all simulated ones do of which nothing else is said.
    fn begins_as_all(&self) -> bool {
        let is_simulated = self.world.is_none() && self.pacing.is_none();
        let is_new = self.data.is_none() && self.recording.is_none();
        is_simulated
            && is_new
            && self.objects.is_none()
            && self.endpoint.is_none()
            && self.front_proxy.is_none()
    }

    /// The world of the cluster, and who lets its time pass where somebody does.
    fn begin_time(&mut self, shutdown: &CancellationToken) -> (World, Option<Pacer>) {
        let mut world = self.world.take().unwrap_or_else(|| World::simulated(self.seed));
        let pacer = self.pacing.take().map(|pacing| {
            let (clock, pacer) = pacing.begin(shutdown.clone().cancelled_owned());
            world.clock = clock;
            pacer
        });
        (world, pacer)
    }

    /// The objects that the cluster begins with: those of its folder, of a recording, of all simulated clusters, or none.
    async fn objects(
        &mut self,
        world: &World,
        origin: Option<&'static Origin>,
    ) -> Result<Objects, StartError> {
        let mut kept = (None, None);
        let store: Arc<dyn Store<Summary>> = match (self.data.take(), origin) {
            (Some(data), _) => {
                kept = (Some(data.token_key()?), Some(data.proxy_authority(world)?));
                Arc::new(data.store)
            }
            (None, Some(origin)) => Arc::new(origin.store()),
            (None, None) => {
                Arc::new(replay(&self.recording.take().unwrap_or_default(), self.kubernetes).await?)
            }
        };
        let (token_key, proxy_authority) = kept;
        let before = origin.map_or(&[][..], |origin| &origin.written);
        let journal = self.journal.map(|most| Journal::new(world.clock, most, before));
        let store = match &journal {
            Some(journal) => Arc::new(Journaled { store, journal: journal.clone() }),
            None => store,
        };
        Ok(Objects { store, journal, token_key, proxy_authority })
    }

    /// How tokens of service accounts are issued: as was said, by the key that was kept, or by one of the cluster's own. A
    /// simulation that nobody reaches over a socket takes that from its seed.
    fn accounts(&mut self, world: &World, kept: Option<TokenKey>) -> Result<ServiceAccounts, KeyError> {
        if let Some(accounts) = self.accounts.take() {
            return Ok(accounts);
        }
        let key = match (kept, world.simulation(), &self.endpoint) {
            (Some(key), _, _) => key,
            (None, Some(simulation), None) => TokenKey::of_simulation(&simulation)?,
            (None, _, _) => TokenKey::generate()?,
        };
        Ok(ServiceAccounts::new(key))
    }

    /// The ways to API servers behind this one, and whom these are told to believe.
    fn upstreams(
        &mut self,
        world: &World,
        origin: Option<&Origin>,
        kept: Option<Authority>,
    ) -> Result<(Option<FrontProxy>, Upstreams), StartError> {
        let upstreams = Upstreams::new(world.clock);
        let trusted = self.front_proxy.clone();
        match std::mem::take(&mut self.proxy_client) {
            ProxyClient::Given(chain, key) => Ok((trusted, upstreams.with_certificate(chain, key)?)),
            ProxyClient::Own if trusted.is_none() => {
                let own = match (origin, kept) {
                    (Some(origin), _) => origin.proxy.clone(),
                    (None, Some(authority)) => OwnProxy::of(&authority)?,
                    (None, None) => OwnProxy::new(world)?,
                };
                Ok((Some(own.trust), upstreams.with_certificate(own.chain, own.key)?))
            }
            ProxyClient::Own | ProxyClient::Nothing => Ok((trusted, upstreams)),
        }
    }

    /// What serves the objects, and decides who may do what.
    fn engine(
        &mut self,
        world: &World,
        store: Arc<dyn Store<Summary>>,
        trusted: Option<&FrontProxy>,
    ) -> Arc<Engine> {
        let mut objects = self.objects.take().unwrap_or_default();
        objects.kubernetes = self.kubernetes;
        objects.authentication = published(self.endpoint.as_ref().map(Endpoint::clients), trusted);
        let mut modes = std::mem::take(&mut self.authorization);
        if self.node_authorization {
            know_nodes(&mut modes);
        }
        Arc::new(Engine::with(world.clone(), store, objects).with_authorization(modes))
    }

    /// Who finds out who asks.
    fn authenticator(&mut self, world: &World, accounts: Arc<ServiceAccounts>) -> Authenticator {
        let mut authenticator = Authenticator::with_service_accounts(world, accounts)
            .with_anonymous(self.anonymous)
            .with_bootstrap_tokens(self.bootstrap_tokens);
        for (token, user) in self.tokens.drain(..) {
            authenticator = authenticator.with_token(&token, user);
        }
        if let Some(endpoint) = &self.endpoint {
            authenticator = authenticator.with_client_ca(endpoint.clients().clone());
        }
        if let Some(proxy) = self.front_proxy.take() {
            authenticator = authenticator.with_front_proxy(proxy);
        }
        if let Some(webhook) = self.token_webhook.take() {
            authenticator = authenticator.with_token_webhook(webhook);
        }
        authenticator
    }
}

/// Adds the mode by which a kubelet may do its work, where it is needed.
fn know_nodes(modes: &mut Vec<Mode>) {
    if !modes.iter().any(|mode| matches!(mode, Mode::Node | Mode::AlwaysAllow)) {
        modes.insert(0, Mode::Node);
    }
}
