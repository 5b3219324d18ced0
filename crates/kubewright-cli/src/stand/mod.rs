//! Stand: a control plane of this process, and on it a program of somebody's, with what it needs.

pub(crate) mod args;
mod group;
mod layout;
pub(crate) mod manifests;
pub(crate) mod past;
pub(crate) mod program;
pub(crate) mod sources;
pub(crate) mod webhooks;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use kube::{
    Client, Config,
    api::DynamicObject,
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewright_cluster::{
    Builder, Cluster, Endpoint, Secret,
    journal::{Journal, Written},
};
use kubewright_trial::story::is_upkeep;
use kubewright_world::World;
use serde_json::json;
use tokio::time::Instant;

use self::{manifests::is_program, webhooks::Webhooks};
use crate::{
    access::{Access, Objects, Others, object},
    kubeconfig,
};

/// How many writes are kept, to see what the program made.
const JOURNAL: usize = 100_000;

/// Who makes simulated volumes.
const PROVISIONER: &str = "simulated.kubewright.dev";

/// A control plane, and the way to it.
pub(crate) struct Stand {
    pub(crate) cluster: Cluster,
    pub(crate) access: Access,
}

impl Stand {
    /// Starts one with a node, in which nothing has happened.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::of(Cluster::builder().nodes(1)).await
    }

    /// Starts one as the builder says, on a free port of this machine.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) async fn of(builder: Builder) -> anyhow::Result<Self> {
        let world = World::real();
        let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &world).await?;
        let token = Secret::random().map_err(|_| anyhow!("the machine gives no entropy for a token"))?;
        let server = format!("https://{}", endpoint.address());
        let text = kubeconfig::Access { server, ca: endpoint.ca_pem(), token: token.clone() }.kubeconfig();
        let builder = builder.admin(true).journal(JOURNAL).world(world);
        let cluster = builder.endpoint(endpoint).admin_token(token).start().await?;
        let kubeconfig = Kubeconfig::from_yaml(&text).context("the kubeconfig of the control plane")?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await?;
        let server = config.cluster_url.clone();
        let access = Access { client: Client::try_from(config)?, server, kubeconfig };
        Ok(Self { cluster, access })
    }

    /// Makes a default storage class, as clusters have it, where these objects bring none: the volumes of its claims are simulated.
    ///
    /// # Errors
    /// When the control plane refuses it.
    pub(crate) async fn provide_storage(&self, needed: &[DynamicObject]) -> anyhow::Result<()> {
        let is_class =
            |one: &DynamicObject| one.types.as_ref().is_some_and(|types| types.kind == "StorageClass");
        if needed.iter().any(is_class) {
            return Ok(());
        }
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": PROVISIONER, "allowVolumeExpansion": true});
        Objects::new(&self.access.client).apply(&object(class)?, Others::TakenOver).await.map(drop)
    }

    /// Makes the namespaces of the objects and of the program, and applies what the operator needs; gives what was left out. Without
    /// `webhooks` nobody is called.
    ///
    /// # Errors
    /// When the control plane refuses something, or a definition is not served in time.
    pub(crate) async fn install(
        &self,
        needed: &[DynamicObject],
        given: &[DynamicObject],
        home: &str,
        deadline: Instant,
        webhooks: Option<&Webhooks>,
    ) -> anyhow::Result<Vec<String>> {
        let mut cluster = Objects::new(&self.access.client);
        let kind = |object: &DynamicObject| {
            object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default()
        };
        let mut warnings = Vec::new();
        let mut spaces = vec![home.to_owned()];
        spaces.extend(needed.iter().chain(given).filter_map(|one| one.metadata.namespace.clone()));
        spaces.sort();
        spaces.dedup();
        for space in spaces.iter().filter(|space| !space.is_empty()) {
            let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}});
            cluster.apply(&object(space)?, Others::TakenOver).await?;
        }
        let (definitions, others): (Vec<_>, Vec<_>) =
            needed.iter().partition(|one| kind(one) == "CustomResourceDefinition");
        for definition in &definitions {
            let led = webhooks.map(|webhooks| webhooks.lead(definition)).transpose()?;
            cluster.apply(led.as_ref().unwrap_or(definition), Others::TakenOver).await?;
        }
        for definition in &definitions {
            cluster.established(definition, deadline).await?;
        }
        let is_webhook = |one: &DynamicObject| kind(one).ends_with("WebhookConfiguration");
        if webhooks.is_none() {
            warnings.extend(webhooks::not_called(needed));
        }
        // A kind of somebody else, such as a ServiceMonitor or a Certificate, is not needed to see what the operator makes.
        for one in others.iter().filter(|one| !is_webhook(one) && !is_program(one)) {
            match cluster.apply(one, Others::TakenOver).await {
                Err(error) if format!("{error:#}").contains("the cluster has no kind") => {
                    warnings.push(format!("left out: {error:#}"));
                }
                applied => drop(applied?),
            }
        }
        // Last, as what comes before may be what they look at.
        for one in others.iter().filter(|one| is_webhook(one)) {
            if let Some(webhooks) = webhooks {
                cluster.apply(&webhooks.lead(one)?, Others::TakenOver).await?;
            }
        }
        Ok(warnings)
    }

    /// Applies what the operator is given. Where a webhook does not answer yet it is tried again for a while.
    ///
    /// # Errors
    /// When the control plane, or a webhook, refuses an object.
    pub(crate) async fn give(&self, given: &[DynamicObject]) -> anyhow::Result<()> {
        let mut cluster = Objects::new(&self.access.client);
        let is_unreached = |error: &anyhow::Error| webhooks::is_unreached(&format!("{error:#}"));
        for one in given {
            webhooks::answered(async || cluster.apply(one, Others::TakenOver).await, is_unreached).await?;
        }
        Ok(())
    }
}

/// How often somebody has written what is no upkeep: neither to lead, nor to tell, nor to be alive.
pub(crate) fn activity(journal: &Journal) -> u64 {
    let is_upkeep = |one: &Written| is_upkeep(&one.collection) || one.collection.ends_with("/nodes");
    journal.forgotten() + journal.count(|one| !is_upkeep(one)) as u64
}
