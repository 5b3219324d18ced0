use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;
use crate::{ControlPlane, Endpoint};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubewright-data-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// All that is in it, by name.
    fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path.clone(), fs::read(&path).expect("readable"));
                }
            }
        }
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Starts a cluster of a version that is kept in `folder`; gives its certificate authority, too.
async fn start(folder: &Folder, version: Version) -> (ControlPlane, String) {
    let world = World::real();
    let data = DataDirectory::open(&folder.0, &world, version).expect("nobody else has it");
    let token = data.admin_token().expect("a token");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = Endpoint::bind_with_data(any, &world, &data).await.expect("a free port");
    let ca = endpoint.ca_pem();
    let builder = ControlPlane::builder().world(world).endpoint(endpoint).admin_token(token).data(data);
    (builder.start().await.expect("it starts"), ca)
}

/// Why a folder is not opened by a version.
fn refused(folder: &Folder, version: Version) -> String {
    DataDirectory::open(&folder.0, &World::real(), version).expect_err("it is refused").to_string()
}

fn config_map(name: &str) -> ConfigMap {
    kubewright_objects::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).expect("a map")
}

#[tokio::test]
async fn a_cluster_that_has_ended_lets_go_of_its_folder_and_the_next_one_goes_on() {
    let folder = Folder::new("goes-on");
    let (cluster, ca) = start(&folder, Version::DEFAULT).await;
    cluster.settle().await;
    let revision = cluster.revision();
    let busy = refused(&folder, Version::DEFAULT);
    assert!(busy.contains("is in use by another process"), "{busy}");
    cluster.stop().await;

    let (cluster, same) = start(&folder, Version::DEFAULT).await;
    assert_eq!(same, ca);
    assert!(cluster.revision() >= revision);
}

#[tokio::test]
async fn a_newer_version_goes_on_with_what_an_older_one_has_kept() {
    let folder = Folder::new("newer");
    let (cluster, _) = start(&folder, Version::V1_36).await;
    let client = cluster.client();
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let kept = maps.create(&PostParams::default(), &config_map("kept")).await.expect("created");
    // What a user has made of a role stays, and what the server expects of it comes back.
    let roles = Api::<ClusterRole>::all(client);
    let own = json!({"metadata": {"labels": {"mine": "yes"}}, "rules": [{"verbs": ["get"], "apiGroups": ["mine.example"], "resources": ["things"]}]});
    roles.patch("system:basic-user", &PatchParams::default(), &Patch::Merge(&own)).await.expect("patched");
    roles.delete("system:discovery", &DeleteParams::default()).await.expect("deleted");
    cluster.stop().await;

    let (cluster, _) = start(&folder, Version::V1_37).await;
    let client = cluster.client();
    let version = client.apiserver_version().await.expect("an answer");
    assert_eq!(version.minor, "37");
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let found = maps.get("kept").await.expect("it is there");
    assert_eq!(found, kept, "its revision, too");
    maps.create(&PostParams::default(), &config_map("new")).await.expect("it can be written");
    let roles = Api::<ClusterRole>::all(client);
    let basic = roles.get("system:basic-user").await.expect("a role");
    let rules = basic.rules.unwrap_or_default();
    assert_eq!(basic.metadata.labels.unwrap_or_default()["mine"], "yes");
    assert!(rules[0].api_groups.iter().flatten().any(|group| group == "mine.example"), "{rules:?}");
    assert!(
        rules.iter().any(|rule| rule.resources.iter().flatten().any(|one| one == "selfsubjectaccessreviews")),
        "{rules:?}"
    );
    let names: Vec<_> = roles
        .list(&Default::default())
        .await
        .expect("roles")
        .items
        .into_iter()
        .filter_map(|role| role.metadata.name)
        .collect();
    let expected = Version::V1_37
        .tables()
        .roles
        .lines()
        .filter_map(|line| line.strip_prefix("clusterroles ")?.split(' ').next());
    assert!(
        expected.clone().count() > 10 && expected.clone().all(|name| names.iter().any(|there| there == name))
    );
    let revision = cluster.revision();
    cluster.stop().await;

    let (cluster, _) = start(&folder, Version::V1_37).await;
    assert_eq!(cluster.revision(), revision, "nothing is left to be reconciled");
}

#[tokio::test]
async fn an_older_version_is_refused_and_changes_nothing() {
    let folder = Folder::new("older");
    start(&folder, Version::V1_37).await.0.stop().await;
    let before = folder.content();
    for older in [Version::V1_35, Version::V1_36] {
        let told = refused(&folder, older);
        let path = folder.0.display();
        assert_eq!(
            told,
            format!(
                "{path} keeps a cluster of Kubernetes v1.37, which v{older} cannot read: go on with it as v1.37 or newer \
            (--kubernetes-version 1.37), or keep a cluster of v{older} in another folder"
            )
        );
    }
    assert!(folder.content() == before, "nothing in the folder has changed");
    start(&folder, Version::V1_37).await;
}

#[tokio::test]
async fn a_folder_that_does_not_say_its_version_is_v1_36s() {
    let folder = Folder::new("unsaid");
    start(&folder, Version::V1_36).await.0.stop().await;
    assert_eq!(version_of(&folder.0).expect("readable"), Some(Version::V1_36));
    let forget = || fs::remove_file(folder.0.join("version")).expect("it said so");
    forget();
    assert_eq!(version_of(&folder.0).expect("readable"), None);
    let told = refused(&folder, Version::V1_35);
    assert!(told.contains("keeps a cluster of Kubernetes v1.36, which v1.35 cannot read"), "{told}");
    for version in [Version::V1_36, Version::V1_37] {
        start(&folder, version).await.0.stop().await;
        assert_eq!(version_of(&folder.0).expect("readable"), Some(version));
        forget();
    }
    fs::write(folder.0.join("version"), "format 7\n").expect("written");
    let told = refused(&folder, Version::V1_37);
    assert!(told.contains("was written by a newer kubewright (form 7, and this program knows 1)"), "{told}");
}

#[tokio::test]
async fn objects_of_an_older_version_have_the_defaults_of_the_newer_under_their_own_revision() {
    let folder = Folder::new("defaults");
    let (cluster, _) = start(&folder, Version::V1_36).await;
    cluster.stop().await;
    // As an older version would have written it, which did not have all fields.
    {
        let store = Disk::open(&folder.0.join(STORE), DiskOptions::default(), |stored: &_| {
            kubewright_engine::tags(Version::V1_36, stored)
        });
        let store = store.expect("nobody has it");
        let job = r#"{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":""},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}"#;
        let at = job.find("resourceVersion").expect("there") + "resourceVersion\":\"".len();
        let tag = kubewright_engine::tags_of(Version::V1_36, |_| Vec::new())("batch/jobs", job.as_bytes())
            .expect("an object");
        let draft = kubewright_store::Draft { bytes: job.into(), revision_at: Some(at), tag: tag.into() };
        let (collection, key) = ("batch/jobs".into(), "default/a".into());
        let change = kubewright_store::Change::Put(draft);
        store.commit(&collection, &key, kubewright_store::Expect::Absent, change).await.expect("committed");
    }
    let revision = {
        let (cluster, _) = start(&folder, Version::V1_36).await;
        let job = read(&cluster).await;
        assert!(
            job["spec"].get("backoffLimit").is_none(),
            "its own version serves what it has written: {job}"
        );
        cluster.stop().await;
        job["metadata"]["resourceVersion"].clone()
    };
    for _ in 0..2 {
        let (cluster, _) = start(&folder, Version::V1_37).await;
        let job = read(&cluster).await;
        assert_eq!(
            (&job["spec"]["backoffLimit"], &job["metadata"]["resourceVersion"]),
            (&json!(6), &revision)
        );
        cluster.stop().await;
    }
}

async fn read(cluster: &ControlPlane) -> serde_json::Value {
    let request = http::Request::get("/apis/batch/v1/namespaces/default/jobs/a").body(Vec::new());
    cluster.client().request(request.expect("a request")).await.expect("it is there")
}
