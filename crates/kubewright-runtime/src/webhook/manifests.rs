//! What the cluster is told of the webhooks, as values.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
        ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kube::api::ObjectMeta;

use super::{FailurePolicy, Webhook, Webhooks, conversion, declaration::Purpose};

/// By which cert-manager knows into what it injects its authority's certificate.
const INJECT: &str = "cert-manager.io/inject-ca-from";

/// By this every namespace is labelled with its own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Address at which the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Behind a Service: the operator runs in the cluster.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// The Service's name.
        name: String,
        /// The Service's port.
        port: u16,
    },
    /// At a URL without a path, such as `https://10.0.0.5:9443`: the operator runs elsewhere.
    Url(String),
}

impl Reach {
    /// Behind the port 443 of a Service.
    pub fn service(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Service { namespace: namespace.into(), name: name.into(), port: 443 }
    }

    /// By which names the API server knows the server: what its certificate has to be for.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name, .. } => vec![
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}.svc.cluster.local"),
                format!("{name}.{namespace}"),
            ],
            Self::Url(url) => {
                let uri: http::Uri = url.parse().unwrap_or_default();
                // An IPv6 address has brackets in a URL, and none in a certificate.
                let host = uri.host().map(|host| host.trim_matches(['[', ']']).to_owned());
                host.into_iter().collect()
            }
        }
    }

    /// What is wrong with it.
    pub(crate) fn mistake(&self) -> Option<String> {
        let Self::Url(url) = self else { return None };
        let uri: http::Uri = url.parse().unwrap_or_default();
        let good =
            uri.scheme_str() == Some("https") && uri.host().is_some() && matches!(uri.path(), "" | "/");
        (!good).then(|| format!("{url:?} is no URL of webhooks: write https://host:port"))
    }
}

/// Who says which certificates the API server trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// These (PEM), written into the configurations.
    Bundle(String),
    /// cert-manager's CA injector, by the annotation `cert-manager.io/inject-ca-from: <namespace>/<certificate>`.
    CertManager(String),
    /// Somebody else, later.
    #[default]
    Later,
}

impl Trust {
    fn bundle(&self) -> Option<ByteString> {
        match self {
            Self::Bundle(pem) => Some(ByteString(pem.clone().into_bytes())),
            Self::CertManager(_) | Self::Later => None,
        }
    }

    /// For objects into which somebody injects the bundle.
    pub(crate) fn annotations(&self) -> Option<BTreeMap<String, String>> {
        match self {
            Self::CertManager(certificate) => {
                Some(BTreeMap::from([(INJECT.to_owned(), certificate.clone())]))
            }
            Self::Bundle(_) | Self::Later => None,
        }
    }

    fn annotate(&self, metadata: &mut ObjectMeta) {
        if let Some(annotations) = self.annotations() {
            metadata.annotations.get_or_insert_default().extend(annotations);
        }
    }
}

/// The configurations of an operator's webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    /// Of the webhooks that change objects; `None` when there are none.
    pub mutating: Option<MutatingWebhookConfiguration>,
    /// Of the webhooks that check objects; `None` when there are none.
    pub validating: Option<ValidatingWebhookConfiguration>,
    /// Of conversions, for the CustomResourceDefinitions of these names.
    pub conversions: Vec<(String, apiextensions::CustomResourceConversion)>,
    trust: Trust,
}

impl Manifests {
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Writes the conversion of a definition into it, if there is one.
    pub fn convert(&self, definition: &mut apiextensions::CustomResourceDefinition) {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        if let Some((_, conversion)) = self.conversions.iter().find(|(of, _)| of == name) {
            definition.spec.conversion = Some(conversion.clone());
            self.trust.annotate(&mut definition.metadata);
        }
    }
}

impl Webhooks {
    /// The configurations that lead to webhooks at `reach`.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::webhook::{Reach, Trust, Validator, Webhook, Webhooks};
    /// # struct Checks;
    /// # impl Validator<ConfigMap> for Checks {}
    /// let webhooks = Webhooks::new("my-operator").add(Webhook::validating::<ConfigMap>(Checks));
    /// let reach = Reach::service("my-system", "my-operator-webhook");
    /// let manifests = webhooks.manifests(&reach, Trust::CertManager("my-system/serving-cert".into()));
    /// assert!(manifests.mutating.is_none() && manifests.validating.is_some());
    /// ```
    #[must_use]
    pub fn manifests(&self, reach: &Reach, trust: Trust) -> Manifests {
        let metadata = |name: String| {
            let mut metadata = ObjectMeta { name: Some(name), ..Default::default() };
            trust.annotate(&mut metadata);
            metadata
        };
        let of = |purpose| self.admission.iter().filter(move |webhook| webhook.purpose == purpose);
        let mutating: Vec<_> = of(Purpose::Mutating).map(|one| one.mutating(reach, &trust)).collect();
        let validating: Vec<_> =
            of(Purpose::Validating).map(|one| one.validating_entry(reach, &trust)).collect();
        let conversions = self.conversions.iter().map(|one| (one.definition(), converted(reach, &trust)));
        Manifests {
            mutating: (!mutating.is_empty()).then(|| MutatingWebhookConfiguration {
                metadata: metadata(self.mutating_name()),
                webhooks: Some(mutating),
            }),
            validating: (!validating.is_empty()).then(|| ValidatingWebhookConfiguration {
                metadata: metadata(self.validating_name()),
                webhooks: Some(validating),
            }),
            conversions: conversions.collect(),
            trust,
        }
    }
}

impl Webhook {
    fn mutating(&self, reach: &Reach, trust: &Trust) -> MutatingWebhook {
        let common = self.validating_entry(reach, trust);
        let again = if self.again_if_needed { "IfNeeded" } else { "Never" };
        MutatingWebhook {
            admission_review_versions: common.admission_review_versions,
            client_config: common.client_config,
            failure_policy: common.failure_policy,
            match_conditions: common.match_conditions,
            match_policy: common.match_policy,
            name: common.name,
            namespace_selector: common.namespace_selector,
            object_selector: common.object_selector,
            reinvocation_policy: Some(again.to_owned()),
            rules: common.rules,
            side_effects: common.side_effects,
            timeout_seconds: common.timeout_seconds,
        }
    }

    fn validating_entry(&self, reach: &Reach, trust: &Trust) -> ValidatingWebhook {
        let policy = match self.failure_policy {
            FailurePolicy::Fail => "Fail",
            FailurePolicy::Ignore => "Ignore",
        };
        let conditions = Some(self.conditions.clone()).filter(|conditions| !conditions.is_empty());
        ValidatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: client_config(reach, &self.path, trust),
            failure_policy: Some(policy.to_owned()),
            match_conditions: conditions,
            match_policy: Some(if self.exact { "Exact" } else { "Equivalent" }.to_owned()),
            name: self.name.clone(),
            namespace_selector: self.namespace_selector(reach),
            object_selector: self.objects.clone(),
            rules: Some(self.rules.clone()),
            side_effects: if self.effects { "NoneOnDryRun" } else { "None" }.to_owned(),
            timeout_seconds: i32::try_from(self.timeout.as_secs()).ok(),
        }
    }

    fn namespace_selector(&self, reach: &Reach) -> Option<LabelSelector> {
        let Reach::Service { namespace, .. } = reach else { return self.namespaces.clone() };
        if !self.spares_home {
            return self.namespaces.clone();
        }
        let mut selector = self.namespaces.clone().unwrap_or_default();
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: NAME_LABEL.to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(vec![namespace.clone()]),
        });
        Some(selector)
    }
}

fn client_config(reach: &Reach, path: &str, trust: &Trust) -> WebhookClientConfig {
    let ca_bundle = trust.bundle();
    match reach {
        Reach::Service { namespace, name, port } => WebhookClientConfig {
            ca_bundle,
            service: Some(ServiceReference {
                name: name.clone(),
                namespace: namespace.clone(),
                path: Some(path.to_owned()),
                port: Some(i32::from(*port)),
            }),
            url: None,
        },
        Reach::Url(url) => WebhookClientConfig {
            ca_bundle,
            service: None,
            url: Some(format!("{}{path}", url.trim_end_matches('/'))),
        },
    }
}

fn converted(reach: &Reach, trust: &Trust) -> apiextensions::CustomResourceConversion {
    let WebhookClientConfig { ca_bundle, service, url } = client_config(reach, conversion::PATH, trust);
    let service = service.map(|service| apiextensions::ServiceReference {
        name: service.name,
        namespace: service.namespace,
        path: service.path,
        port: service.port,
    });
    apiextensions::CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(apiextensions::WebhookConversion {
            client_config: Some(apiextensions::WebhookClientConfig { ca_bundle, service, url }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::webhook::{Defaulter, Denied, Operation, Request, Validator};

    struct Same;
    impl Validator<ConfigMap> for Same {}
    impl Defaulter<ConfigMap> for Same {
        async fn apply_defaults(&self, _: &Request, map: ConfigMap) -> Result<ConfigMap, Denied> {
            Ok(map)
        }
    }

    #[test]
    fn a_configuration_says_all_that_was_declared() {
        let webhook = Webhook::defaulting::<ConfigMap>(Same)
            .named("m.example.com")
            .operations([Operation::Create])
            .failure_policy(FailurePolicy::Ignore)
            .timeout(std::time::Duration::from_secs(3))
            .when("mine", "object.metadata.name != 'other'")
            .exact_versions()
            .again_if_needed()
            .with_effects();
        let webhooks = Webhooks::new("op").add(webhook).add(Webhook::validating::<ConfigMap>(Same));
        let reach = Reach::service("ns", "hooks");
        let manifests = webhooks.manifests(&reach, Trust::Bundle("PEM".into()));
        let mutating = kubewright_objects::to_value(&manifests.mutating).expect("JSON");
        assert_eq!(mutating["metadata"]["name"], "op-mutating");
        assert_eq!(
            mutating["webhooks"][0],
            json!({
                "name": "m.example.com", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "matchPolicy": "Exact", "reinvocationPolicy": "IfNeeded", "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 3,
                "matchConditions": [{"name": "mine", "expression": "object.metadata.name != 'other'"}],
                "clientConfig": {"caBundle": "UEVN", "service":
                    {"namespace": "ns", "name": "hooks", "path": "/mutate--v1-configmap", "port": 443}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                    "operations": ["CREATE"]}],
            })
        );
        let injected =
            webhooks.manifests(&Reach::Url("https://a:1/".into()), Trust::CertManager("ns/c".into()));
        let validating = kubewright_objects::to_value(&injected.validating).expect("JSON");
        assert_eq!(validating["metadata"]["annotations"], json!({"cert-manager.io/inject-ca-from": "ns/c"}));
        assert_eq!(
            validating["webhooks"][0]["clientConfig"],
            json!({"url": "https://a:1/validate--v1-configmap"})
        );
    }

    #[test]
    fn what_spares_its_own_namespace_is_not_asked_about_that_of_its_service() {
        let selector = |webhook: Webhook, reach: &Reach| {
            let manifests = Webhooks::new("op").add(webhook).manifests(reach, Trust::Later);
            kubewright_objects::to_value(&manifests.validating).expect("JSON")["webhooks"][0]["namespaceSelector"]
                .clone()
        };
        let webhook = || Webhook::validating::<ConfigMap>(Same);
        let (service, url) = (Reach::service("home", "hooks"), Reach::Url("https://a:1".into()));
        let elsewhere =
            json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["home"]});
        assert_eq!(selector(webhook(), &service), json!(null));
        assert_eq!(
            selector(webhook().sparing_its_own_namespace(), &url),
            json!(null),
            "nobody serves it from there"
        );
        assert_eq!(
            selector(webhook().sparing_its_own_namespace(), &service),
            json!({"matchExpressions": [elsewhere]})
        );
        let labels = [("team".to_owned(), "a".to_owned())].into();
        let team = LabelSelector { match_labels: Some(labels), ..LabelSelector::default() };
        assert_eq!(
            selector(webhook().in_namespaces(team).sparing_its_own_namespace(), &service),
            json!({"matchLabels": {"team": "a"}, "matchExpressions": [elsewhere]})
        );
    }

    #[test]
    fn a_certificate_is_for_the_names_that_the_api_server_uses() {
        assert_eq!(Reach::service("ns", "a").names(), ["a.ns.svc", "a.ns.svc.cluster.local", "a.ns"]);
        for (url, names) in [("https://a.test:9443", "a.test"), ("https://[::1]:9443/", "::1")] {
            let reach = Reach::Url(url.to_owned());
            assert_eq!((reach.names(), reach.mistake()), (vec![names.to_owned()], None));
        }
        for bad in ["http://a", "a", "https://a/path", "https:///"] {
            assert!(Reach::Url(bad.to_owned()).mistake().is_some(), "{bad}");
        }
    }
}
