//! `kubewright install` and `uninstall`: the definitions of an operator's kinds in a cluster.

use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject},
};
use tokio::time::{Instant, sleep};

use crate::{
    access::{
        self, ClusterArgs, Objects, Others, called,
        compatible::{self, StoredArgs},
        refused,
        stored::LostObjects,
    },
    output::print,
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

    #[command(flatten)]
    stored: StoredArgs,
}

/// What `kubewright uninstall` takes.
#[derive(Args, Debug)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    project: ProjectArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Remove the objects of the operator's kinds too
    #[arg(long, short)]
    yes: bool,

    /// Say nothing against definitions that are not there
    #[arg(long)]
    ignore_not_found: bool,
}

/// Applies the definitions, and waits until they are served.
///
/// # Errors
/// When there is no project or no cluster, objects that are stored are in the way, or the cluster refuses one.
pub(crate) async fn install(args: &InstallArgs) -> anyhow::Result<()> {
    let project = Project::find(&args.project)?;
    // Before it is built, which may take minutes.
    let mut objects = Objects::new(&args.cluster.access().await?.client);
    let definitions = definitions(&project)?;
    served(&mut objects, &definitions, args.stored, |line| print(&format!("{line}\n"))).await
}

/// Applies definitions that stored objects can live with, and waits until all are served. `told` is given a line for each.
async fn served(
    objects: &mut Objects,
    definitions: &[DynamicObject],
    stored: StoredArgs,
    mut report: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    compatible::check(objects, definitions, stored).await?;
    for definition in definitions {
        let applied = objects.apply(definition, Others::TakenOver).await?;
        report(&format!("{} {}", called(definition), applied.word()))?;
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
/// When one is not there (unless that is to be ignored), cannot be deleted, or does not go; or when objects would be lost and
/// that is not allowed.
pub(crate) async fn uninstall(args: &UninstallArgs) -> anyhow::Result<()> {
    let project = Project::find(&args.project)?;
    let client = args.cluster.access().await?.client;
    let definitions = definitions(&project)?;
    let missing = removed(&client, &definitions, args.yes, |line| print(&format!("{line}\n"))).await?;
    match missing.is_empty() || args.ignore_not_found {
        true => Ok(()),
        false => bail!("not installed: {}: --ignore-not-found says nothing against that", missing.join(", ")),
    }
}

/// Deletes definitions, and waits until they are gone; gives those that were not there. `told` is given a line for each.
async fn removed(
    client: &Client,
    definitions: &[DynamicObject],
    lose_objects: bool,
    mut report: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<String>> {
    let mut objects = Objects::new(client);
    let (mut there, mut missing, mut lost) = (Vec::new(), Vec::new(), LostObjects::default());
    for definition in definitions {
        let (api, name) = (objects.api(definition).await?, definition.name_any());
        let found = api.get_opt(&name).await;
        match found.map_err(|error| refused(&format!("{name} cannot be read"), &error))? {
            Some(found) if !lose_objects => lost.add(client, &found).await?,
            Some(_) => {}
            None => {
                missing.push(name);
                continue;
            }
        }
        there.push((api, name));
    }
    lost.check("--yes removes them")?;
    for (api, name) in there {
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(refused(&format!("{name} cannot be deleted"), &error)),
        }
        gone(&api, &name).await?;
        report(&format!("customresourcedefinition.apiextensions.k8s.io \"{name}\" deleted"))?;
    }
    Ok(missing)
}

fn definitions(project: &Project) -> anyhow::Result<Vec<DynamicObject>> {
    let definitions = project.build()?.manifests(&["--crds-only"])?;
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
    use kube::api::{ApiResource, GroupVersionKind, PostParams};
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
        for (fields, change) in
            [(700, "created"), (700, "unchanged"), (900, "configured"), (800, "configured")]
        {
            let mut lines = Vec::new();
            let describe_pods = |line: &str| {
                lines.push(line.to_owned());
                Ok(())
            };
            served(&mut objects, &[large(fields)], StoredArgs::default(), describe_pods)
                .await
                .expect("it is served");
            assert_eq!(lines, [format!("customresourcedefinition.apiextensions.k8s.io/{NAME} {change}")]);
            assert_whole(&client, fields).await;
        }
    }

    fn large_object(name: &str) -> DynamicObject {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Large", "metadata": {"name": name, "namespace": "default"}});
        access::object(object).expect("an object")
    }

    /// TPR/CRD "Beyond" 5: as `undeploy`, it says what would be lost, and loses it only when that is wanted.
    #[tokio::test(start_paused = true)]
    async fn uninstall_counts_the_objects_that_would_be_lost_and_refuses() {
        let cluster = Cluster::builder().controllers("").nodes(0).start().await.expect("a cluster");
        let client = cluster.client();
        let mut objects = Objects::new(&client);
        served(&mut objects, &[large(700)], StoredArgs::default(), |_| Ok(())).await.expect("it is served");
        for number in 0..230 {
            let object = large_object(&format!("large-{number:03}"));
            objects.apply(&object, Others::TakenOver).await.expect("it is stored");
        }
        let refused =
            removed(&client, &[large(700)], false, |_| Ok(())).await.expect_err("objects are there");
        assert_eq!(
            refused.to_string(),
            "230 objects of its kinds would be lost: larges default/large-000, larges default/large-001, larges \
             default/large-002, larges default/large-003, larges default/large-004, …; nothing was removed. --yes removes them"
        );
        assert_whole(&client, 700).await;
        let missing = removed(&client, &[large(700)], true, |_| Ok(())).await.expect("they may be lost");
        assert!(missing.is_empty() && definitions(&client).get_opt(NAME).await.expect("read").is_none());
        let missing = removed(&client, &[large(700)], false, |_| Ok(())).await.expect("nothing is lost");
        assert_eq!(missing, [NAME]);
    }

    /// A stricter definition is not applied by any of the commands that would.
    #[tokio::test(start_paused = true)]
    async fn install_applies_nothing_that_a_stored_object_is_not_valid_under() {
        let cluster = Cluster::builder().controllers("").nodes(0).start().await.expect("a cluster");
        let client = cluster.client();
        let mut objects = Objects::new(&client);
        served(&mut objects, &[large(700)], StoredArgs::default(), |_| Ok(())).await.expect("it is served");
        objects.apply(&large_object("one"), Others::TakenOver).await.expect("it is stored");
        let mut strict = large(900);
        strict.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
        let definitions = [strict];
        let report = |line: &str| -> anyhow::Result<()> { panic!("{line}") };
        let refused = served(&mut objects, &definitions, StoredArgs::default(), report).await;
        let refused = refused.expect_err("an object is in the way").to_string();
        assert!(refused.contains("default/one: spec: Required value"), "{refused}");
        assert_whole(&client, 700).await;
        served(&mut objects, &definitions, StoredArgs { yes: true }, |_| Ok(())).await.expect("it is wanted");
        assert_whole(&client, 900).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_definition_whose_names_are_taken_is_told_at_once() {
        let cluster = Cluster::builder().controllers("").nodes(0).start().await.expect("a cluster");
        let mut objects = Objects::new(&cluster.client());
        let stored = StoredArgs::default();
        served(&mut objects, &[large(700)], stored, |_| Ok(())).await.expect("it is served");
        let mut other = large(700);
        other.metadata.name = Some("others.example.com".to_owned());
        other.data["spec"]["names"]["plural"] = "others".into();
        let refused =
            served(&mut objects, &[other], stored, |_| Ok(())).await.expect_err("the kind is taken");
        let refused = format!("{refused:#}");
        assert!(
            refused.contains("others.example.com cannot be served: ") && refused.contains("Large"),
            "{refused}"
        );
    }
}
