//! What a control plane is made of.

mod start;

use std::net::SocketAddr;
use std::time::Duration;

use kubewright_apiserver::http;
use kubewright_apiserver::kubelet::Kubelets;
use kubewright_engine::NodePorts;
use kubewright_engine::admission::Plugins;
use kubewright_identity::authn::{FrontProxy, KeyError, Secret, ServiceAccounts, TokenWebhook, User};
use kubewright_identity::authz::Mode;
use kubewright_kinds::RuntimeConfig;
use kubewright_meta::cidr::ServiceCidrs;
use kubewright_serve::tls::TlsError;
use kubewright_spec::Version as KubernetesVersion;
use kubewright_world::{Pacing, World};

use crate::control_plane::administrator;
use crate::front_proxy::ProxyClient;
use crate::recording::{Recording, Unfit};
use crate::{DataDirectory, DataError, Endpoint};

/// Error of a control plane, or of a cluster, that did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The list of controllers is wrong.
    #[error(transparent)]
    Controllers(Box<dyn std::error::Error + Send + Sync>),
    /// The machine gives no entropy for keys.
    #[error("no key for service account tokens: {0}")]
    Key(#[from] KeyError),
    /// The endpoint's certificate and key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The key for tokens was not kept well.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The recording makes no cluster.
    #[error(transparent)]
    Recording(#[from] Unfit),
    /// The objects of a new cluster were refused.
    #[error("the first objects could not be written: {0}")]
    Bootstrap(#[from] kubewright_meta::ApiError),
    /// The certificate for API servers behind this one cannot be made.
    #[error("no certificate for extension API servers: {0}")]
    ProxyClient(#[from] kubewright_serve::authority::AuthorityError),
    /// The node of this machine was refused.
    #[error("the node of this machine could not be registered: {0}")]
    Node(#[from] kube::Error),
}

/// Settings of a [`ControlPlane`](crate::ControlPlane); all have defaults.
#[derive(Debug)]
pub struct Builder {
    world: Option<World>,
    seed: u64,
    kubelets: Kubelets,
    node_authorization: bool,
    endpoint: Option<Endpoint>,
    data: Option<DataDirectory>,
    accounts: Option<ServiceAccounts>,
    tokens: Vec<(Secret, User)>,
    front_proxy: Option<FrontProxy>,
    proxy_client: ProxyClient,
    anonymous: bool,
    bootstrap_tokens: bool,
    admin: bool,
    request_log: bool,
    recording: Option<Recording>,
    journal: Option<usize>,
    pacing: Option<Pacing>,
    kubernetes: KubernetesVersion,
    /// None where nothing is said.
    objects: Option<kubewright_engine::Settings>,
    edge: http::Settings,
    token_webhook: Option<TokenWebhook>,
    authorization: Vec<Mode>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            world: None,
            seed: 0,
            kubelets: Kubelets::default(),
            node_authorization: false,
            endpoint: None,
            data: None,
            accounts: None,
            tokens: Vec::new(),
            front_proxy: None,
            proxy_client: ProxyClient::default(),
            anonymous: true,
            bootstrap_tokens: false,
            admin: false,
            request_log: false,
            recording: None,
            journal: None,
            pacing: None,
            kubernetes: KubernetesVersion::DEFAULT,
            objects: None,
            edge: http::Settings::default(),
            token_webhook: None,
            authorization: vec![Mode::Rbac],
        }
    }
}

impl Builder {
    /// The seed of a simulated world: uids, names and all that is left to chance. Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Another world than a simulated one (whose time is tokio's clock), such as [`World::real`].
    #[must_use]
    pub fn world(mut self, world: World) -> Self {
        self.world = Some(world);
        self
    }

    /// Whether clients pass an [`Admin`](crate::admin::Admin): it notes what they do and makes requests fail, and they find it at `/kubewright`.
    /// Default: no.
    #[must_use]
    pub fn admin(mut self, wanted: bool) -> Self {
        self.admin = wanted;
        self
    }

    /// Whether what clients do is noted, for a [`Tap`](crate::recording::Tap), where there is no [admin](Self::admin) to be found
    /// at `/kubewright`. Default: no.
    #[must_use]
    pub fn request_log(mut self, wanted: bool) -> Self {
        self.request_log = wanted;
        self
    }

    /// Starts with what a recording left behind, objects and revisions. Instead of [data](Self::data).
    #[must_use]
    pub fn recording(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Notes who wrote what: the last `most` commits ([`Journal`](crate::journal::Journal)). Default: not.
    #[must_use]
    pub fn journal(mut self, most: usize) -> Self {
        self.journal = Some(most);
        self
    }

    /// Another time than the world's: for a cluster that is served to others. Takes a runtime of its
    /// [own](Pacing::runtime).
    #[must_use]
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = Some(pacing);
        self
    }

    /// The kubelets that are reached, and which nodes have none. Default: those that register, all of which have one.
    #[must_use]
    pub fn kubelets(mut self, kubelets: Kubelets) -> Self {
        self.kubelets = kubelets;
        self
    }

    /// Whether there is a kubelet that acts as its node: the authorizer for nodes is asked first then, unless
    /// [the modes](Self::authorization) let it do its work already. Default: no.
    #[must_use]
    pub fn node_authorization(mut self, wanted: bool) -> Self {
        self.node_authorization = wanted;
        self
    }

    /// Serves the API over HTTPS as well. Without, there is no socket, and pods find an empty `ca.crt`.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Who shows this bearer token is the administrator (`system:masters`).
    #[must_use]
    pub fn admin_token(self, token: Secret) -> Self {
        self.token(token, administrator())
    }

    /// Who shows this bearer token is this user. There may be any number.
    #[must_use]
    pub fn token(mut self, token: Secret, user: User) -> Self {
        self.tokens.push((token, user));
        self
    }

    /// How the tokens of service accounts are issued and verified. Default: a key of the cluster's own (of its data, if it
    /// is kept), and the issuer `https://kubernetes.default.svc.cluster.local`.
    #[must_use]
    pub fn service_accounts(mut self, accounts: ServiceAccounts) -> Self {
        self.accounts = Some(accounts);
        self
    }

    /// A proxy that may say who makes a request.
    #[must_use]
    pub fn front_proxy(mut self, proxy: FrontProxy) -> Self {
        self.front_proxy = Some(proxy);
        self
    }

    /// The certificate (a chain, in PEM) and its key that are shown to API servers behind this one, to which APIServices lead
    /// (`--proxy-client-cert-file`, `--proxy-client-key-file`). Default: one of an authority of the cluster's own, which
    /// `kube-system/extension-apiserver-authentication` names, unless a [front proxy](Self::front_proxy) is named there.
    #[must_use]
    pub fn proxy_client_certificate(mut self, chain: String, key: String) -> Self {
        self.proxy_client = ProxyClient::Given(chain, key);
        self
    }

    /// Nothing is shown to API servers behind this one: they find out from nobody who asks.
    #[must_use]
    pub fn without_proxy_client_certificate(mut self) -> Self {
        self.proxy_client = ProxyClient::Nothing;
        self
    }

    /// Whether somebody without credentials is `system:anonymous` (the default), or is refused.
    #[must_use]
    pub fn anonymous(mut self, allowed: bool) -> Self {
        self.anonymous = allowed;
        self
    }

    /// Whether the tokens of Secrets of the type `bootstrap.kubernetes.io/token` are known
    /// (`--enable-bootstrap-token-auth`). Default: no.
    #[must_use]
    pub fn bootstrap_tokens(mut self, known: bool) -> Self {
        self.bootstrap_tokens = known;
        self
    }

    /// Keeps the cluster in a folder, and goes on with what is there. A cluster without lives in memory.
    ///
    /// For real worlds: a disk takes its own time, which no paused clock knows of. The cluster is of the version of Kubernetes that
    /// the folder was opened for.
    #[must_use]
    pub fn data(mut self, data: DataDirectory) -> Self {
        self.data = Some(data);
        self
    }

    /// Which admission plugins are asked; by default those of kube-apiserver.
    #[must_use]
    pub fn admission(mut self, plugins: Plugins) -> Self {
        self.objects.get_or_insert_default().admission = plugins;
        self
    }

    /// The networks of service addresses (`--service-cluster-ip-range`). Default 10.0.0.0/24; ServiceCIDR
    /// objects add others.
    #[must_use]
    pub fn service_cidr(mut self, cidrs: ServiceCidrs) -> Self {
        self.objects.get_or_insert_default().service_cidrs = cidrs;
        self
    }

    /// The node ports of services (`--service-node-port-range`). Default 30000-32767.
    #[must_use]
    pub fn node_ports(mut self, ports: NodePorts) -> Self {
        self.objects.get_or_insert_default().node_ports = ports;
        self
    }

    /// Where the Endpoints and the EndpointSlice of the service `default/kubernetes` say that the API is
    /// (`--advertise-address` and `--secure-port`). By default there are none, as with `--endpoint-reconciler-type=none`.
    #[must_use]
    pub fn advertise(mut self, address: SocketAddr) -> Self {
        self.objects.get_or_insert_default().advertise = Some(address);
        self
    }

    /// The port behind the service `default/kubernetes`, where it is not the advertised one. Default 6443.
    #[must_use]
    pub fn secure_port(mut self, port: u16) -> Self {
        self.objects.get_or_insert_default().secure_port = Some(port);
        self
    }

    /// How long a pod that goes at once (no node runs it, or it has ended) is seen as deleted before it is gone. Kubernetes marks and removes
    /// it by two writes, which takes etcd about a millisecond: suites whose controllers read such a pod when they hear of the mark count on that.
    /// Default: no time.
    #[must_use]
    pub fn marked_for(mut self, time: Duration) -> Self {
        self.objects.get_or_insert_default().marked_for = time;
        self
    }

    /// The version of Kubernetes whose API is served: its kinds, their types, discovery, OpenAPI, the first roles, feature gates, rules,
    /// `/version`. Default: [`KubernetesVersion::DEFAULT`], the newest.
    #[must_use]
    pub fn kubernetes_version(mut self, version: KubernetesVersion) -> Self {
        self.kubernetes = version;
        self
    }

    /// Which built-in versions are served (`--runtime-config`). Default: all.
    #[must_use]
    pub fn runtime_config(mut self, config: RuntimeConfig) -> Self {
        self.objects.get_or_insert_default().runtime_config = config;
        self
    }

    /// Whether discovery is told in one document to clients that want it (the feature gate
    /// `AggregatedDiscoveryEndpoint`). Default: yes.
    #[must_use]
    pub fn aggregated_discovery(mut self, served: bool) -> Self {
        self.edge.aggregated_discovery = served;
        self
    }

    /// Which programs of a control plane are in this process, as `componentstatuses` tells it; the others are asked at their
    /// ports on this machine. Default: none.
    #[must_use]
    pub fn components(mut self, components: http::Components) -> Self {
        self.edge.components = components;
        self
    }

    /// How many reads run at once (`--max-requests-inflight`), watches left out once they have told what was there; 0 for any
    /// number. One user has at most half of what others leave free, and administrators are not counted. Default 400.
    #[must_use]
    pub fn max_requests_inflight(mut self, most: usize) -> Self {
        self.edge.max_reads = most;
        self
    }

    /// How many writes run at once (`--max-mutating-requests-inflight`), shared in the same way; as many again for leases and
    /// for what nodes say of themselves. 0 for any number. Default 200.
    #[must_use]
    pub fn max_mutating_requests_inflight(mut self, most: usize) -> Self {
        self.edge.max_writes = most;
        self
    }

    /// How long a request may take, watches left out (`--request-timeout`). Default a minute.
    #[must_use]
    pub fn request_timeout(mut self, longest: Duration) -> Self {
        self.edge.request_timeout = longest;
        self
    }

    /// The shortest that a watch lasts when its client does not say (`--min-request-timeout`); it takes up to twice as
    /// long, at random. Default half an hour.
    #[must_use]
    pub fn min_request_timeout(mut self, shortest: Duration) -> Self {
        self.edge.min_request_timeout = shortest;
        self
    }

    /// A server that is asked for tokens that nothing else knows.
    #[must_use]
    pub fn token_webhook(mut self, webhook: TokenWebhook) -> Self {
        self.token_webhook = Some(webhook);
        self
    }

    /// How is decided who may do what, one way after the other. Default: RBAC alone. Where everything is allowed, nobody
    /// is anonymous, as in kube-apiserver (`pkg/kubeapiserver/options/authentication.go`, `ApplyAuthorization`).
    #[must_use]
    pub fn authorization(mut self, modes: Vec<Mode>) -> Self {
        self.authorization = modes;
        self
    }
}
