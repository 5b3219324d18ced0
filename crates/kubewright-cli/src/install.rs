//! `kubewright install` and `uninstall`: the definitions of an operator's kinds in a cluster.

use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject},
};
use tokio::time::{Instant, sleep};

use crate::{
    access::{self, ClusterArgs, Objects, Others, called, refused},
    output::tell,
    project::{Project, ProjectArgs},
};

/// How long a definition may take to be served, or to go.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// What `kubewright install` takes.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What `kubewright uninstall` takes.
#[derive(Args, Debug)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Say nothing against definitions that are not there
    #[arg(long)]
    ignore_not_found: bool,
}

/// Applies the definitions, and waits until they are served.
///
/// # Errors
/// When there is no project or no cluster, or the cluster refuses one.
pub(crate) async fn install(args: &InstallArgs) -> anyhow::Result<()> {
    let definitions = definitions(&args.project)?;
    let mut objects = Objects::new(&args.cluster.access().await?.client);
    served(&mut objects, &definitions, |line| tell(&format!("{line}\n"))).await
}

/// Applies definitions, and waits until all are served. `told` is given a line for each.
async fn served(
    objects: &mut Objects,
    definitions: &[DynamicObject],
    mut told: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for definition in definitions {
        let applied = objects.apply(definition, Others::TakenOver).await?;
        told(&format!("{} {}", called(definition), applied.word()))?;
    }
    let deadline = Instant::now() + LONGEST;
    for definition in definitions {
        objects.established(definition, deadline).await?;
    }
    Ok(())
}

/// Deletes the definitions, and with them all objects of these kinds.
///
/// # Errors
/// When one is not there (unless that is to be ignored), cannot be deleted, or does not go.
pub(crate) async fn uninstall(args: &UninstallArgs) -> anyhow::Result<()> {
    let definitions = definitions(&args.project)?;
    let mut objects = Objects::new(&args.cluster.access().await?.client);
    let mut missing = Vec::new();
    for definition in &definitions {
        let (api, name) = (objects.api(definition).await?, definition.name_any());
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {
                missing.push(name);
                continue;
            }
            Err(error) => return Err(refused(&format!("{name} cannot be deleted"), &error)),
        }
        gone(&api, &name).await?;
        tell(&format!("customresourcedefinition.apiextensions.k8s.io \"{name}\" deleted\n"))?;
    }
    match missing.is_empty() || args.ignore_not_found {
        true => Ok(()),
        false => bail!("not installed: {}: --ignore-not-found says nothing against that", missing.join(", ")),
    }
}

fn definitions(project: &ProjectArgs) -> anyhow::Result<Vec<DynamicObject>> {
    let definitions = Project::find(project)?.build()?.manifests(&["--crds-only"])?;
    if definitions.is_empty() {
        bail!("the operator has no kinds of its own: there is nothing to install");
    }
    definitions.into_iter().map(access::object).collect()
}

async fn gone(api: &Api<DynamicObject>, name: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + LONGEST;
    while api.get_opt(name).await.map_err(|error| refused(name, &error))?.is_some() {
        if Instant::now() > deadline {
            return Err(anyhow!(
                "{name} is being deleted, but has not gone within {} s: its objects wait for their finalizers; start the \
                 operator that removes them, and it goes",
                LONGEST.as_secs()
            ));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use kube::{
        Client,
        api::{ApiResource, GroupVersionKind, PostParams},
    };
    use kubewright_cluster::Cluster;
    use serde_json::json;

    use super::*;

    /// How long annotations may be in all (`apimachinery/pkg/api/validation/objectmeta.go`): what `kubectl apply` would write
    /// into one has to fit.
    const LIMIT: usize = 256 << 10;
    const NAME: &str = "larges.example.com";

    /// A definition that does not fit into an annotation, with so many fields.
    pub(crate) fn large(fields: usize) -> DynamicObject {
        let field = json!({"type": "string", "description": "what is to be said of it ".repeat(20)});
        let properties: serde_json::Map<_, _> =
            (0..fields).map(|number| (format!("field{number:04}"), field.clone())).collect();
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": NAME},
            "spec": {
                "group": "example.com",
                "names": {"kind": "Large", "plural": "larges"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        });
        assert!(definition.to_string().len() > LIMIT);
        access::object(definition).expect("an object")
    }

    /// Whether the definition is there whole, with its last field, and without a copy of itself.
    pub(crate) async fn assert_whole(client: &Client, fields: usize) {
        let definitions = definitions(client);
        let found = definitions.get(NAME).await.expect("it is there");
        let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let properties = found.data.pointer(properties).and_then(|found| found.as_object());
        assert_eq!(properties.map(serde_json::Map::len), Some(fields));
        assert_eq!(found.metadata.annotations, None);
        let managers = found.managed_fields().iter().filter_map(|fields| fields.manager.as_deref());
        assert!(
            managers.clone().any(|manager| manager == access::MANAGER),
            "{:?}",
            managers.collect::<Vec<_>>()
        );
    }

    fn definitions(client: &Client) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
    }

    /// KB-36 and "Beyond": what `kubectl apply` cannot install is installed, and a later version of it too.
    #[tokio::test(start_paused = true)]
    async fn a_definition_that_no_annotation_holds_is_installed_and_upgraded() {
        let cluster = Cluster::builder().controllers("").nodes(0).start().await.expect("a cluster");
        let client = cluster.client();
        let mut by_kubectl = large(700);
        let copy = serde_json::to_string(&by_kubectl).expect("JSON");
        let annotation = ("kubectl.kubernetes.io/last-applied-configuration".to_owned(), copy);
        by_kubectl.metadata.annotations = Some([annotation].into());
        let refused = definitions(&client).create(&PostParams::default(), &by_kubectl).await;
        let refused = refused.expect_err("it is too long").to_string();
        assert!(refused.contains("may not be more than 262144 bytes"), "{refused}");

        let mut objects = Objects::new(&client);
        for (fields, told) in [(700, "created"), (700, "unchanged"), (900, "configured"), (800, "configured")]
        {
            let mut lines = Vec::new();
            let told_of = |line: &str| {
                lines.push(line.to_owned());
                Ok(())
            };
            served(&mut objects, &[large(fields)], told_of).await.expect("it is served");
            assert_eq!(lines, [format!("customresourcedefinition.apiextensions.k8s.io/{NAME} {told}")]);
            assert_whole(&client, fields).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_whose_names_are_taken_is_told_at_once() {
        let cluster = Cluster::builder().controllers("").nodes(0).start().await.expect("a cluster");
        let mut objects = Objects::new(&cluster.client());
        served(&mut objects, &[large(700)], |_| Ok(())).await.expect("it is served");
        let mut other = large(700);
        other.metadata.name = Some("others.example.com".to_owned());
        other.data["spec"]["names"]["plural"] = "others".into();
        let refused = served(&mut objects, &[other], |_| Ok(())).await.expect_err("the kind is taken");
        let refused = format!("{refused:#}");
        assert!(
            refused.contains("others.example.com cannot be served: ") && refused.contains("Large"),
            "{refused}"
        );
    }
}
