//! An operator from its source into a cluster: `kubewright build`, `deploy` and `undeploy`, on pods that are processes.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use kubewright_image::testing::Folder;
use kubewright_runtime::{Connect, Metrics};
use kubewright_tests::{Up, needed};
use kubewright_whitelist::{WhiteList, WhiteListSpec};

/// Where the operator is when it is deployed.
const HOME: &str = "whitelist-system";

/// Runs kubewright in the folder of this workspace, which has the operator.
fn run(up: &Up, images: &Folder, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.args(arguments).args(["--package", "kubewright-whitelist"]).current_dir(root);
    command.env("KUBECONFIG", up.kubeconfig()).env("KUBEWRIGHT_IMAGES", images.path());
    command.output().expect("kubewright starts")
}

fn stdout_of(up: &Up, images: &Folder, arguments: &[&str]) -> String {
    let output = run(up, images, arguments);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    said.into_owned()
}

/// Looks again and again until there is something; for what a cluster does by itself.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within a minute");
}

async fn client(up: &Up) -> Client {
    let connect = Connect { kubeconfig: Some(up.kubeconfig()), ..Connect::default() };
    let (client, _) = connect.client(Metrics::new().requests()).await.expect("a client");
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    eventually("the default account", async || accounts.get_opt("default").await.ok().flatten()).await;
    client
}

#[tokio::test]
#[ignore = "compiles an operator: cargo xtask test"]
async fn an_operator_is_built_loaded_and_deployed_and_heals_a_sample_out_of_its_image() {
    let images = Folder::new("ship-images");
    let store = images.path().display().to_string();
    let up = Up::start("ship", &["--runtime", "process", "--image-store", &store]);
    let client = client(&up).await;

    let built = stdout_of(&up, &images, &["build", "--skip-tests", "--profile", "dev", "--load"]);
    let digest = built.lines().find_map(|line| line.strip_prefix("Digest   ")).expect("a digest").to_owned();
    assert!(built.contains("static)") && built.contains("Loaded   docker.io/library/whitelist:"), "{built}");
    let again = stdout_of(&up, &images, &["build", "--skip-tests", "--profile", "dev"]);
    assert!(again.contains(&digest), "the same program is the same image: {again}");

    let deployed = stdout_of(&up, &images, &["deploy", "--timeout", "120"]);
    assert!(
        deployed.contains(&digest) && deployed.ends_with("deployment.apps/whitelist: 1 of 1 available\n"),
        "{deployed}"
    );
    let pods: Api<Pod> = Api::namespaced(client.clone(), HOME);
    let pod = pods.list(&ListParams::default()).await.expect("listed").items.pop().expect("a pod");
    let status = pod.status.clone().expect("a status").container_statuses.expect("containers").remove(0);
    assert!(status.image_id.ends_with(&digest) && status.ready, "{status:?}");
    assert_eq!(pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()), Some("whitelist"));
    let leases: Api<Lease> = Api::namespaced(client.clone(), HOME);
    let lease = leases.list(&ListParams::default()).await.expect("listed").items.pop().expect("a lease");
    let holder = lease.spec.and_then(|spec| spec.holder_identity).expect("a leader");
    assert!(holder.starts_with(&pod.name_any()), "{holder} is not {}", pod.name_any());

    let lists: Api<WhiteList> = Api::default_namespaced(client.clone());
    let sample = WhiteList::new("sample", WhiteListSpec::default());
    lists.create(&PostParams::default(), &sample).await.expect("created");
    let children: Api<Deployment> = Api::default_namespaced(client.clone());
    let child = async || children.list(&ListParams::default()).await.ok()?.items.pop();
    let first = eventually("a child", child).await;
    children.delete(&first.name_any(), &DeleteParams::default()).await.expect("deleted");
    let healed = async || child().await.filter(|found| found.uid() != first.uid());
    assert_eq!(eventually("a new child", healed).await.name_any(), first.name_any());

    let unchanged = stdout_of(&up, &images, &["deploy"]);
    assert!(!unchanged.contains(" created") && !unchanged.contains(" configured"), "{unchanged}");
    let refused = run(&up, &images, &["undeploy"]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(1) && errors.contains("default/sample") && errors.contains("--yes"),
        "{errors}"
    );
    stdout_of(&up, &images, &["undeploy", "--yes"]);
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.get_opt(HOME).await.expect("read").is_none());
    stdout_of(&up, &images, &["undeploy", "--ignore-not-found"]);
    assert_eq!(run(&up, &images, &["undeploy"]).status.code(), Some(1));
}

#[tokio::test]
#[ignore = "compiles an operator: cargo xtask test"]
async fn an_operator_whose_image_is_nowhere_is_told_with_the_remedy() {
    let images = Folder::new("ship-nowhere");
    let store = images.path().display().to_string();
    let up = Up::start("ship-nowhere", &["--runtime", "process", "--image-store", &store]);
    let _ = client(&up).await;
    let refused =
        run(&up, &images, &["deploy", "--image", "registry.invalid/whitelist:v1", "--timeout", "10"]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("cannot have its image") && errors.contains("kubewright build --load"),
        "{errors}"
    );
}
