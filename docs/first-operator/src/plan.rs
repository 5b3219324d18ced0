use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentSpec},
    core::v1::{ConfigMap, ConfigMapVolumeSource, Container, PodSpec, PodTemplateSpec, Volume, VolumeMount},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;

use crate::types::Website;

/// What a website is made of.
pub struct Plan {
    pub page: ConfigMap,
    pub servers: Deployment,
}

/// What there should be for a website. It asks nobody: the same website gives the same plan.
pub fn plan(website: &Website) -> Plan {
    let labels = Some([("website".to_owned(), website.name_any())].into());
    let metadata = ObjectMeta {
        name: Some(website.name_any()),
        namespace: website.namespace(),
        labels: labels.clone(),
        ..ObjectMeta::default()
    };
    let page = ConfigMap {
        metadata: metadata.clone(),
        data: Some([("index.html".to_owned(), website.spec.page.clone())].into()),
        ..ConfigMap::default()
    };
    let container = Container {
        name: "nginx".to_owned(),
        image: Some("nginx:1.29".to_owned()),
        volume_mounts: Some(vec![VolumeMount {
            name: "page".to_owned(),
            mount_path: "/usr/share/nginx/html".to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    let volume = Volume {
        name: "page".to_owned(),
        config_map: Some(ConfigMapVolumeSource { name: website.name_any(), ..Default::default() }),
        ..Volume::default()
    };
    let pod = PodSpec { containers: vec![container], volumes: Some(vec![volume]), ..PodSpec::default() };
    let servers = Deployment {
        metadata,
        spec: Some(DeploymentSpec {
            replicas: Some(website.spec.replicas),
            selector: LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels, ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    };
    Plan { page, servers }
}
