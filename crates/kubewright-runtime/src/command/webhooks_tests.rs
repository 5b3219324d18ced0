//! An operator with webhooks as a program.

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResourceExt, api::DynamicObject};
use serde_json::{Value, json};

use super::{
    AdmissionFlags, Installation, Operator, Run, WebhookCertificate, WebhookFlags, WebhookRegistration,
};
use crate::{
    Error,
    webhook::{Conversion, Defaulter, Denied, FailurePolicy, Request, Validator, Webhook, Webhooks},
};

struct Nothing;

impl Validator<ConfigMap> for Nothing {}

impl Defaulter<Secret> for Nothing {
    async fn apply_defaults(&self, _: &Request, secret: Secret) -> Result<Secret, Denied> {
        Ok(secret)
    }
}

/// Two versions of a kind.
mod kinds {
    use kube::CustomResource;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Job",
        root = "JobV1",
        schema = "disabled",
        namespaced
    )]
    pub(super) struct V1 {
        schedule: String,
    }

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
    #[kube(
        group = "example.com",
        version = "v2",
        kind = "Job",
        root = "JobV2",
        schema = "disabled",
        namespaced
    )]
    pub(super) struct V2 {
        every: String,
    }

    impl From<JobV1> for JobV2 {
        fn from(old: JobV1) -> Self {
            Self { metadata: old.metadata, spec: V2 { every: old.spec.schedule } }
        }
    }

    impl From<JobV2> for JobV1 {
        fn from(new: JobV2) -> Self {
            Self { metadata: new.metadata, spec: V1 { schedule: new.spec.every } }
        }
    }
}

fn operator() -> Operator {
    let webhooks = Webhooks::new("another name")
        .add(Webhook::validating::<ConfigMap>(Nothing))
        .add(Webhook::defaulting::<Secret>(Nothing))
        .convert(Conversion::hub::<kinds::JobV2>().spoke::<kinds::JobV1>());
    Operator::new("web", "1").definition::<kinds::JobV2>().webhooks(webhooks)
}

fn installed(certificate: WebhookCertificate) -> Vec<DynamicObject> {
    let installation = Installation { webhook_certificate: certificate, ..Installation::default() };
    operator().manifests(&installation).expect("manifests")
}

/// The names of the objects of these kinds, in order.
fn named(objects: &[DynamicObject], kinds: &[&str]) -> Vec<String> {
    let of = |object: &DynamicObject| {
        let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
        kinds
            .contains(&&*kind)
            .then(|| format!("{kind} {}", object.metadata.name.as_deref().unwrap_or_default()))
    };
    objects.iter().filter_map(of).collect()
}

fn find<'a>(objects: &'a [DynamicObject], kind: &str, name: &str) -> &'a Value {
    let is = |object: &&DynamicObject| {
        object.types.as_ref().is_some_and(|types| types.kind == kind)
            && object.metadata.name.as_deref() == Some(name)
    };
    &objects.iter().find(is).unwrap_or_else(|| panic!("no {kind} {name}")).data
}

fn arguments(objects: &[DynamicObject]) -> Vec<String> {
    let pod = &find(objects, "Deployment", "web")["spec"]["template"]["spec"];
    let arguments = pod["containers"][0]["args"].as_array().cloned().unwrap_or_default();
    let webhooks =
        arguments.iter().filter_map(Value::as_str).filter(|argument| argument.starts_with("--webhook"));
    webhooks.map(str::to_owned).collect()
}

#[test]
fn what_leads_to_webhooks_is_installed_and_the_program_is_told() {
    let objects = installed(WebhookCertificate::Own);
    assert_eq!(
        named(
            &objects,
            &["Service", "Deployment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        ),
        [
            "Service web-metrics",
            "Service web-webhook",
            "Deployment web",
            "MutatingWebhookConfiguration web-mutating",
            "ValidatingWebhookConfiguration web-validating",
        ]
    );
    let client =
        &find(&objects, "ValidatingWebhookConfiguration", "web-validating")["webhooks"][0]["clientConfig"];
    assert_eq!(
        client,
        &json!({"service": {"namespace": "web-system", "name": "web-webhook", "port": 443, "path": "/validate--v1-configmap"}})
    );
    let conversion = &find(&objects, "CustomResourceDefinition", "jobs.example.com")["spec"]["conversion"];
    assert_eq!(conversion["webhook"]["clientConfig"]["service"]["path"], "/convert");
    assert_eq!(
        arguments(&objects),
        [
            "--webhook-bind-address=:9443",
            "--webhook-service=web-system/web-webhook",
            "--webhook-secret=web-system/web-webhook-ca",
            "--webhook-registration=ca-bundle",
        ]
    );
    let pod = &find(&objects, "Deployment", "web")["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["ports"][2]["containerPort"], 9443);
    assert_eq!(pod["volumes"], Value::Null);
}

#[test]
fn the_rights_of_webhooks_are_on_what_is_named_alone() {
    let objects = installed(WebhookCertificate::Own);
    assert_eq!(
        find(&objects, "ClusterRole", "web-webhook")["rules"],
        json!([
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["mutatingwebhookconfigurations"],
             "resourceNames": ["web-mutating"], "verbs": ["list", "patch", "watch"]},
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
             "resourceNames": ["web-validating"], "verbs": ["list", "patch", "watch"]},
            {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
             "resourceNames": ["jobs.example.com"], "verbs": ["list", "patch", "watch"]},
        ])
    );
    assert_eq!(
        find(&objects, "Role", "web-webhook")["rules"],
        json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["web-webhook-ca"],
             "verbs": ["get", "list", "update", "watch"]},
        ])
    );
    assert_eq!(
        named(&installed(WebhookCertificate::CertManager), &["ClusterRole"]).len(),
        3,
        "none for webhooks"
    );
}

#[test]
fn cert_manager_makes_what_is_mounted_and_injects_its_authority() {
    let objects = installed(WebhookCertificate::CertManager);
    assert_eq!(
        find(&objects, "Certificate", "web-webhook-cert")["spec"],
        json!({
            "dnsNames": ["web-webhook.web-system.svc", "web-webhook.web-system.svc.cluster.local", "web-webhook.web-system"],
            "issuerRef": {"kind": "Issuer", "name": "web-webhook-issuer"},
            "secretName": "web-webhook-cert",
        })
    );
    let pod = &find(&objects, "Deployment", "web")["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "web-webhook-cert");
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/tmp/k8s-webhook-server/serving-certs");
    assert_eq!(
        arguments(&objects)[2..],
        ["--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs", "--webhook-registration=nothing"]
    );
    let injected = |object: &DynamicObject| {
        let annotations = object.metadata.annotations.clone().unwrap_or_default();
        annotations.get("cert-manager.io/inject-ca-from").map(String::as_str)
            == Some("web-system/web-webhook-cert")
    };
    assert_eq!(objects.iter().filter(|object| injected(object)).count(), 3);
}

#[test]
fn what_the_manifests_tell_the_program_is_understood() {
    for certificate in [WebhookCertificate::Own, WebhookCertificate::CertManager, WebhookCertificate::Secret]
    {
        let message = arguments(&installed(certificate));
        let arguments =
            ["web", "run"].into_iter().map(str::to_owned).chain(message).map(Into::into).collect();
        let flags = operator().parse(arguments).expect("flags");
        let Some(super::flags::Action::Run(run)) = flags.action else { panic!("another command") };
        let server = operator().webhook_server(&run.webhooks).expect("a server").expect("webhooks");
        assert!(server.listens() && server.check().is_ok());
    }
}

/// Whoever installs an operator narrows what its webhooks stand in the way of; where they fail closed, not of its own pods.
#[test]
fn the_failure_policy_and_the_namespaces_are_settings() {
    let admission = AdmissionFlags {
        webhook_failure_policy: Some(FailurePolicy::Fail),
        webhook_namespace_selector: Some("team=a".to_owned()),
    };
    let installation =
        Installation { install_namespace: Some("home".to_owned()), admission, ..Installation::default() };
    let objects = operator().manifests(&installation).expect("manifests");
    let team = json!({"key": "team", "operator": "In", "values": ["a"]});
    let elsewhere = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["home"]});
    for (kind, name) in [
        ("MutatingWebhookConfiguration", "web-mutating"),
        ("ValidatingWebhookConfiguration", "web-validating"),
    ] {
        let webhook = &find(&objects, kind, name)["webhooks"][0];
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(webhook["namespaceSelector"], json!({"matchExpressions": [team, elsewhere]}));
    }
    let ignore =
        AdmissionFlags { webhook_failure_policy: Some(FailurePolicy::Ignore), ..AdmissionFlags::default() };
    let objects =
        operator().manifests(&Installation { admission: ignore, ..installation }).expect("manifests");
    let webhook = &find(&objects, "ValidatingWebhookConfiguration", "web-validating")["webhooks"][0];
    assert_eq!((&webhook["failurePolicy"], &webhook["namespaceSelector"]), (&json!("Ignore"), &Value::Null));
}

#[test]
fn settings_of_webhooks_are_flags_of_both_commands() {
    let wanted = AdmissionFlags {
        webhook_failure_policy: Some(FailurePolicy::Fail),
        webhook_namespace_selector: Some("team".to_owned()),
    };
    for command in ["run", "manifests"] {
        let arguments =
            ["web", command, "--webhook-failure-policy=fail", "--webhook-namespace-selector=team"];
        let flags = operator().parse(arguments.map(Into::into).to_vec()).expect("flags");
        let read = match flags.action {
            Some(super::flags::Action::Run(run)) => run.webhooks.admission,
            Some(super::flags::Action::Manifests(installation)) => installation.admission,
            _ => panic!("another command"),
        };
        assert_eq!(read, wanted, "{command}");
    }
    let odd =
        AdmissionFlags { webhook_namespace_selector: Some("a b".to_owned()), ..AdmissionFlags::default() };
    let refused = operator().manifests(&Installation { admission: odd, ..Installation::default() });
    assert!(
        matches!(&refused, Err(Error::Misconfigured(message)) if message.starts_with("--webhook-namespace-selector=\"a b\": ")),
        "{refused:?}"
    );
}

#[test]
fn flags_that_lead_nowhere_are_refused_with_a_reason() {
    let message = |flags: WebhookFlags| match operator().webhook_server(&flags) {
        Err(Error::Misconfigured(message)) => message,
        other => panic!("{other:?}"),
    };
    let everywhere = WebhookFlags { webhook_bind_address: ":9443".into(), ..WebhookFlags::default() };
    assert!(message(everywhere.clone()).contains("--webhook-service or --webhook-url"));
    let service = WebhookFlags { webhook_service: Some("web".into()), ..everywhere.clone() };
    assert_eq!(message(service), "--webhook-service=\"web\": write namespace/name");
    let nowhere = WebhookFlags { webhook_bind_address: "here".into(), ..WebhookFlags::default() };
    assert!(message(nowhere).contains("write :9443"));

    let unregistered = WebhookFlags { webhook_registration: WebhookRegistration::Nothing, ..everywhere };
    assert!(operator().webhook_server(&unregistered).is_ok_and(|server| server.is_some()));
    let off = WebhookFlags { webhook_bind_address: "0".into(), ..WebhookFlags::default() };
    assert!(operator().webhook_server(&off).is_ok_and(|server| server.is_none()));
    assert!(
        Operator::new("plain", "1")
            .webhook_server(&Run::default().webhooks)
            .is_ok_and(|server| server.is_none())
    );
}

#[test]
fn webhooks_that_are_put_together_wrongly_are_not_installed() {
    let twice = operator().webhooks(Webhooks::new("web").add(Webhook::validating::<ConfigMap>(Nothing)));
    let nothing = Operator::new("web", "1").webhooks(Webhooks::new("web"));
    for (operator, mistake) in [(twice, "webhooks() is called twice"), (nothing, "there is nothing to serve")]
    {
        let refused = operator.manifests(&Installation::default());
        assert!(
            matches!(&refused, Err(Error::Misconfigured(message)) if message.contains(mistake)),
            "{refused:?}"
        );
    }
}

#[test]
fn what_a_test_installs_is_all_but_the_program() {
    let installation = Installation::default();
    let objects = operator().prerequisites(&installation).expect("manifests");
    assert!(named(&objects, &["Deployment"]).is_empty());
    assert_eq!(objects.len() + 1, operator().manifests(&installation).expect("manifests").len());
    let (host, server) = operator().webhooks_in_process(&installation).expect("webhooks");
    assert_eq!((host.as_str(), server.listens()), ("web-webhook.web-system.svc", false));
    let definition: CustomResourceDefinition = kinds::JobV2::crd();
    assert_eq!(operator().definitions(), [definition]);
}
