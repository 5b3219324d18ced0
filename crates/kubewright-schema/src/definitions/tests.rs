use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use k8s_openapi::api::{
    admissionregistration, apps, authentication, authorization, autoscaling, batch, certificates,
    coordination, core, discovery, events, flowcontrol, networking, node, policy, rbac, scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, ObjectMeta, Status};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};

use super::*;

/// Types that are asked for by themselves: the kinds that are served, and what else stands in requests and answers.
const ROOTS: &[fn(&mut SchemaGenerator) -> schemars::Schema] = &[
    of::<admissionregistration::v1::MutatingAdmissionPolicy>,
    of::<admissionregistration::v1::MutatingAdmissionPolicyBinding>,
    of::<admissionregistration::v1::MutatingWebhookConfiguration>,
    of::<admissionregistration::v1::ValidatingAdmissionPolicy>,
    of::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>,
    of::<admissionregistration::v1::ValidatingWebhookConfiguration>,
    of::<apiextensions::v1::CustomResourceDefinition>,
    of::<apps::v1::ControllerRevision>,
    of::<apps::v1::DaemonSet>,
    of::<apps::v1::Deployment>,
    of::<apps::v1::ReplicaSet>,
    of::<apps::v1::StatefulSet>,
    of::<authentication::v1::SelfSubjectReview>,
    of::<authentication::v1::TokenRequest>,
    of::<authentication::v1::TokenReview>,
    of::<authorization::v1::LocalSubjectAccessReview>,
    of::<authorization::v1::SelfSubjectAccessReview>,
    of::<authorization::v1::SelfSubjectRulesReview>,
    of::<authorization::v1::SubjectAccessReview>,
    of::<autoscaling::v1::HorizontalPodAutoscaler>,
    of::<autoscaling::v1::Scale>,
    of::<autoscaling::v2::HorizontalPodAutoscaler>,
    of::<batch::v1::CronJob>,
    of::<batch::v1::Job>,
    of::<certificates::v1::CertificateSigningRequest>,
    of::<coordination::v1::Lease>,
    of::<core::v1::Binding>,
    of::<core::v1::ConfigMap>,
    of::<core::v1::Endpoints>,
    of::<core::v1::Event>,
    of::<core::v1::LimitRange>,
    of::<core::v1::Namespace>,
    of::<core::v1::Node>,
    of::<core::v1::PersistentVolume>,
    of::<core::v1::PersistentVolumeClaim>,
    of::<core::v1::Pod>,
    of::<core::v1::PodTemplate>,
    of::<core::v1::ReplicationController>,
    of::<core::v1::ResourceQuota>,
    of::<core::v1::Secret>,
    of::<core::v1::Service>,
    of::<core::v1::ServiceAccount>,
    of::<discovery::v1::EndpointSlice>,
    of::<events::v1::Event>,
    of::<flowcontrol::v1::FlowSchema>,
    of::<flowcontrol::v1::PriorityLevelConfiguration>,
    of::<networking::v1::IPAddress>,
    of::<networking::v1::Ingress>,
    of::<networking::v1::IngressClass>,
    of::<networking::v1::NetworkPolicy>,
    of::<networking::v1::ServiceCIDR>,
    of::<node::v1::RuntimeClass>,
    of::<policy::v1::Eviction>,
    of::<policy::v1::PodDisruptionBudget>,
    of::<rbac::v1::ClusterRole>,
    of::<rbac::v1::ClusterRoleBinding>,
    of::<rbac::v1::Role>,
    of::<rbac::v1::RoleBinding>,
    of::<scheduling::v1::PriorityClass>,
    of::<storage::v1::CSIDriver>,
    of::<storage::v1::CSINode>,
    of::<storage::v1::CSIStorageCapacity>,
    of::<storage::v1::StorageClass>,
    of::<storage::v1::VolumeAttachment>,
    of::<storage::v1::VolumeAttributesClass>,
    of::<DeleteOptions>,
    of::<ListMeta>,
    of::<ObjectMeta>,
    of::<Status>,
];

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

/// What k8s-openapi says, as the table has it.
fn of_k8s_openapi() -> String {
    let mut generator = SchemaSettings::draft07().into_generator();
    for root in ROOTS {
        root(&mut generator);
    }
    let all: BTreeMap<String, Value> = generator.take_definitions(false).into_iter().collect();
    all.iter().fold(String::new(), |mut text, (name, schema)| {
        writeln!(text, "{name} {schema}").expect("a String takes it");
        text
    })
}

/// With `KUBEWRIGHT_GOLDEN=write` the table is written instead.
#[test]
fn the_table_is_what_k8s_openapi_says() {
    let said = of_k8s_openapi();
    if env::var("KUBEWRIGHT_GOLDEN").is_ok_and(|wish| wish == "write") {
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/definitions.txt");
        fs::write(table, said).expect("the table is written");
        return;
    }
    let entry = |line: &str| {
        let (name, schema) = line.split_once(' ').expect("a name and a schema");
        (name.to_owned(), serde_json::from_str::<Value>(schema).expect("JSON"))
    };
    for (ours, theirs) in TABLE.lines().zip(said.lines()) {
        assert_eq!(entry(ours), entry(theirs));
    }
    assert_eq!(TABLE.lines().count(), said.lines().count());
}

#[test]
fn all_that_is_referred_to_is_there() {
    for (name, text) in LINES.iter() {
        for reference in text.split(r#""$ref":""#).skip(1) {
            let target =
                reference.split('"').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            assert!(LINES.contains_key(target), "{name} refers to {target}");
        }
    }
}
