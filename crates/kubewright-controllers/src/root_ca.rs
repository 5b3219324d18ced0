//! The root CA publisher: every namespace has a ConfigMap `kube-root-ca.crt` with the certificates by which its pods
//! know the API server (`pkg/controller/certificates/rootcacertpublisher/publisher.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};

use crate::{is_active_namespace, is_namespace_terminating};

/// The ConfigMap.
const NAME: &str = "kube-root-ca.crt";
/// Its only entry.
const ENTRY: &str = "ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIPTION_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// The controller; `ca` are the certificates in PEM.
#[must_use]
pub(crate) fn controller(ca: impl Into<String>) -> Controller {
    Controller::new("root-ca-certificate-publisher-controller", Publisher { ca: ca.into() })
        .for_kind::<Namespace>()
        .watches(|map: &ConfigMap| map.metadata.namespace.iter().map(Key::cluster_scoped).collect())
        .selecting(&format!("metadata.name={NAME}"))
}

struct Publisher {
    ca: String,
}

impl Reconciler for Publisher {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(namespace) = ctx.get::<Namespace>(key) else { return Ok(Outcome::Done) };
        let map = ctx.get::<ConfigMap>(&Key::namespaced(&key.name, NAME));
        let written = match plan(&self.ca, &namespace, map.as_deref()) {
            Step::Settled => return Ok(Outcome::Done),
            Step::Create(map) => ctx.create(&*map).await,
            Step::Update(map) => ctx.update(&*map).await,
        };
        match written {
            Err(error) if is_namespace_terminating(&error) => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

/// What to write.
#[derive(Debug, PartialEq)]
enum Step {
    Settled,
    Create(Box<ConfigMap>),
    Update(Box<ConfigMap>),
}

/// What makes `map` right: exactly one entry, and a description.
fn plan(ca: &str, namespace: &Namespace, map: Option<&ConfigMap>) -> Step {
    if !is_active_namespace(namespace) {
        return Step::Settled;
    }
    let data = BTreeMap::from([(ENTRY.to_owned(), ca.to_owned())]);
    let described = |map: &ConfigMap| {
        let annotations = map.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(DESCRIPTION)).is_some_and(|text| !text.is_empty())
    };
    let mut right = match map {
        Some(map) if map.data.as_ref() == Some(&data) && described(map) => return Step::Settled,
        Some(map) => map.clone(),
        None => ConfigMap::default(),
    };
    right.data = Some(data);
    let annotations = right.metadata.annotations.get_or_insert_default();
    annotations.insert(DESCRIPTION.into(), DESCRIPTION_TEXT.into());
    if map.is_some() {
        return Step::Update(Box::new(right));
    }
    right.metadata.name = Some(NAME.into());
    right.metadata.namespace = namespace.metadata.name.clone();
    Step::Create(Box::new(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::namespace;

    fn created() -> ConfigMap {
        match plan("PEM", &namespace("Active"), None) {
            Step::Create(map) => *map,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_active_namespace_gets_the_certificates() {
        let map = created();
        assert_eq!(Key::of(&map), Key::namespaced("shop", "kube-root-ca.crt"));
        assert_eq!(map.data, Some(BTreeMap::from([("ca.crt".into(), "PEM".into())])));
        assert_eq!(plan("PEM", &namespace("Active"), Some(&map)), Step::Settled);
        assert_eq!(plan("PEM", &namespace("Terminating"), None), Step::Settled);
    }

    #[test]
    fn what_somebody_spoilt_is_put_right_and_what_else_it_has_stays() {
        let mut spoilt = created();
        spoilt.metadata.labels = Some(BTreeMap::from([("mine".into(), "yes".into())]));
        let mut right = spoilt.clone();
        spoilt.data = Some(BTreeMap::from([("ca.crt".into(), "no".into()), ("more".into(), "x".into())]));
        spoilt.metadata.annotations = None;
        assert_eq!(plan("PEM", &namespace("Active"), Some(&spoilt)), Step::Update(Box::new(right.clone())));
        right.data = None;
        assert!(matches!(plan("PEM", &namespace("Active"), Some(&right)), Step::Update(_)));
    }
}
