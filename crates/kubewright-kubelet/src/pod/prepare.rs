//! What a pod needs before its containers can start: objects of the API that it names, and its volumes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource};
use kubewright_world::World;

use crate::images::{Images, Missing, blocking};
use crate::inputs::volumes::{self, Volumes};
use crate::inputs::{Fetched, Needs, Node, PodPlace, Token, TokenNeed};

/// What was fetched and made for a pod.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) fetched: Fetched,
    pub(crate) volumes: Volumes,
}

/// What prepares pods.
#[derive(Clone)]
pub(crate) struct Preparer {
    pub(crate) client: Client,
    pub(crate) world: World,
    pub(crate) images: Images,
    pub(crate) node: Arc<Node>,
}

impl Preparer {
    /// Fetches what a pod needs and makes its volumes as they are to be now. `before` is what was prepared last: its tokens
    /// are used for as long as they are good.
    ///
    /// # Errors
    /// The messages of the volumes that cannot be made.
    pub(crate) async fn prepare(
        &self,
        pod: Arc<Pod>,
        address: IpAddr,
        before: Option<Arc<Prepared>>,
    ) -> Result<Prepared, Vec<String>> {
        let fetched = self.fetch(&pod, before.as_deref()).await;
        let (node, now) = (Arc::clone(&self.node), self.world.clock.now());
        let made = blocking(move || {
            let place = PodPlace { node: &node, pod_ips: &[address] };
            let plan = volumes::plan(&pod, &fetched, place);
            let mut failed: Vec<_> = plan.failed.iter().map(ToString::to_string).collect();
            for (name, planned) in &plan.volumes {
                if before.as_ref().is_some_and(|before| {
                    !planned.follows_changes() && before.volumes.get(name) == Some(planned)
                }) {
                    continue;
                }
                if let Err(error) = volumes::write(name, planned, &pod, now) {
                    failed.push(error.to_string());
                }
            }
            Ok((Prepared { fetched, volumes: plan.volumes }, failed))
        });
        match made.await {
            Ok((prepared, failed)) if failed.is_empty() => Ok(prepared),
            Ok((_, failed)) => Err(failed),
            Err(problem) => Err(vec![problem]),
        }
    }

    async fn fetch(&self, pod: &Pod, before: Option<&Prepared>) -> Fetched {
        let needs = Needs::of(pod);
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let (config_maps, secrets, claims) = (
            self.all::<ConfigMap>(namespace, &needs.config_maps).await,
            self.all::<Secret>(namespace, &needs.secrets).await,
            self.all::<PersistentVolumeClaim>(namespace, &needs.claims).await,
        );
        let volumes = claims.values().filter_map(|claim| {
            claim.as_ref().ok()?.spec.as_ref()?.volume_name.clone().filter(|name| !name.is_empty())
        });
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        let persistent_volumes = get_all(&api, volumes.collect::<Vec<_>>()).await;
        let services = match needs.services {
            true => self.services(namespace).await,
            false => Vec::new(),
        };
        let tokens = join_all(needs.tokens.iter().map(|need| async move {
            let known = before.and_then(|before| before.fetched.tokens.get(need)?.as_ref().ok());
            (need.clone(), self.token(pod, need, known).await)
        }));
        let images =
            join_all(needs.images.iter().map(|name| async move { (name.clone(), self.image(name).await) }));
        Fetched {
            config_maps,
            secrets,
            claims,
            persistent_volumes,
            tokens: tokens.await.into_iter().collect(),
            services,
            images: images.await.into_iter().collect(),
        }
    }

    async fn all<K>(
        &self,
        namespace: &str,
        names: impl IntoIterator<Item = &String>,
    ) -> BTreeMap<String, Result<Arc<K>, String>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + for<'de> serde::Deserialize<'de>,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        get_all(&api, names.into_iter().cloned()).await
    }

    /// The Services of the namespace; without those there are no variables for them.
    async fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        match api.list(&ListParams::default()).await {
            Ok(list) => list.items.into_iter().map(Arc::new).collect(),
            Err(error) => {
                tracing::warn!(%error, namespace, "pods get no variables for Services");
                Vec::new()
            }
        }
    }

    async fn token(&self, pod: &Pod, need: &TokenNeed, known: Option<&Token>) -> Result<Token, String> {
        let now = self.world.clock.now();
        if let Some(known) = known.filter(|known| !known.is_due(now, 0.0)) {
            return Ok(known.clone());
        }
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let name = account.unwrap_or_else(|| "default".to_owned());
        let answer = api.create_token_request(&name, &PostParams::default(), &need.request(pod)).await;
        match answer {
            Ok(answer) => Token::of(&answer).ok_or_else(|| "the API server gave no token".to_owned()),
            Err(error) => match known.filter(|known| !known.has_expired(now)) {
                Some(known) => Ok(known.clone()),
                None => Err(in_words(error)),
            },
        }
    }

    async fn image(&self, name: &str) -> Result<std::path::PathBuf, String> {
        let images = Images { host_commands: false, ..self.images.clone() };
        match images.find(name, None).await {
            Ok(found) => match found.image.root {
                crate::container::Root::Image(root) => Ok(root),
                crate::container::Root::Host => Err("it has no files".to_owned()),
            },
            Err(
                Missing::Invalid(message)
                | Missing::Never(message)
                | Missing::NotThere(message)
                | Missing::Broken(message),
            ) => Err(message),
        }
    }
}

async fn get_all<K>(
    api: &Api<K>,
    names: impl IntoIterator<Item = String>,
) -> BTreeMap<String, Result<Arc<K>, String>>
where
    K: Clone + std::fmt::Debug + for<'de> serde::Deserialize<'de>,
{
    let one = |name: String| async move {
        match api.get_opt(&name).await {
            Ok(None) => None,
            Ok(Some(object)) => Some((name, Ok(Arc::new(object)))),
            Err(error) => Some((name, Err(in_words(error)))),
        }
    };
    join_all(names.into_iter().map(one)).await.into_iter().flatten().collect()
}

/// The API server's message.
fn in_words(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// A pod's environment does not change with it: only what is a volume is made anew.
pub(crate) fn follows_changes(prepared: &Prepared) -> bool {
    prepared.volumes.values().any(volumes::Planned::follows_changes)
}
