//! `kubewright replay` of an operator in Go whose bugs can be switched on (`tests/envtest-go/press`): the same program does what was
//! recorded of it, one with a bug does something else, and that is told.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubewright_recording::{Reader, Record};
use kubewright_tests::{Up, needed};
use kubewright_world::World;
use serde_json::{Value, json};

/// For what takes milliseconds; this is for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn config() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("envtest-go/press/config")
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

/// Whether the recording has this revision, and nobody wrote for a while after its last one: there a replay compares.
fn is_at_rest(file: &str, revision: u64) -> bool {
    let mut reader = Reader::open(File::open(file).expect("the recording")).expect("a recording");
    let mut last = None;
    while let Some(record) = reader.next_record().expect("a record") {
        if let Record::Write(write) = record {
            last = Some(write);
        }
    }
    last.is_some_and(|last| {
        let since = World::real().clock.now().duration_since(last.time);
        last.revision >= revision && since > SignedDuration::from_secs(2)
    })
}

async fn eventually(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

fn page() -> DynamicObject {
    let text = std::fs::read_to_string(config().join("samples/page.yaml")).expect("the sample");
    serde_saphyr::from_str(&text).expect("an object")
}

fn pages(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "press.example".to_owned(),
        version: "v1".to_owned(),
        api_version: "press.example/v1".to_owned(),
        kind: "Page".to_owned(),
        plural: "pages".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// Records a page that comes, is changed and goes, with the press at work.
async fn recorded(folder: &Folder) -> String {
    let file = folder.0.join("press.kwrec").display().to_string();
    let mut up = Up::start("replay-source", &["--nodes", "0", "--record", &file]);
    let client = client(&up.kubeconfig()).await;
    let definition = std::fs::read_to_string(config().join("crd/pages.yaml")).expect("the definition");
    let definition: CustomResourceDefinition = serde_saphyr::from_str(&definition).expect("a definition");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.expect("created");
    let mut ledger = Namespace::default();
    ledger.metadata.name = Some("ledger".to_owned());
    Api::all(client.clone()).create(&PostParams::default(), &ledger).await.expect("created");
    let pages = pages(&client);
    eventually("pages are served", async || pages.list(&Default::default()).await.is_ok()).await;
    let mut press = Command::new(needed("PRESS"));
    press.env("KUBECONFIG", up.kubeconfig()).stdout(Stdio::null()).stderr(Stdio::null());
    let press = Running(press.spawn().expect("the press"));
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let footer = async || {
        let map = maps.get_opt("hello-page").await.expect("an answer")?;
        map.data.map(|data| data.get("footer").cloned().unwrap_or_default())
    };
    let rest = async || {
        let list = pages.list(&Default::default()).await.expect("a list");
        let revision = list.metadata.resource_version.expect("a revision").parse().expect("a number");
        eventually("all is recorded, and at rest", async || is_at_rest(&file, revision)).await;
    };
    pages.create(&PostParams::default(), &page()).await.expect("created");
    eventually("the page is printed", async || footer().await.as_deref() == Some("the end")).await;
    rest().await;
    let change = Patch::Merge(json!({"spec": {"footer": null}}));
    pages.patch("hello", &PatchParams::default(), &change).await.expect("changed");
    eventually("the footer is gone", async || footer().await.as_deref() == Some("")).await;
    rest().await;
    pages.delete("hello", &DeleteParams::default()).await.expect("deleted");
    eventually("the page is gone", async || pages.get_opt("hello").await.is_ok_and(|page| page.is_none()))
        .await;
    rest().await;
    drop(press);
    up.kill();
    file
}

fn replay(file: &str, options: &[&str], program: &[&str]) -> Output {
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.args(["replay", file, "--exit-code"]).args(options).arg("--").arg(needed("PRESS")).args(program);
    command.output().expect("it runs")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Go and the built command: cargo xtask test"]
async fn the_same_program_does_what_was_recorded_and_one_with_a_bug_does_not() {
    let folder = Folder(std::env::temp_dir().join(format!("kubewright-replay-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a temporary folder");
    let file = recorded(&folder).await;
    let json = folder.0.join("report.json").display().to_string();

    let same = replay(&file, &["--json", &json], &[]);
    assert!(same.status.success() && same.stdout.is_empty(), "{}", said(&same));
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("a report")).expect("JSON");
    assert_eq!(report["operator"], "press");
    assert!(report["objects"].as_array().is_some_and(|objects| objects.len() > 5), "{report:#}");

    let bug = replay(&file, &[], &["--bug", "forgets-key"]);
    assert_eq!(bug.status.code(), Some(1), "{}", said(&bug));
    let told = said(&bug);
    assert!(told.contains("configmaps default/hello-page") && told.contains("+  footer: the end"), "{told}");

    let roles = config().join("rbac").display().to_string();
    let rights = replay(&file, &["--with-rights", &roles], &["--bug", "missing-right"]);
    assert_eq!(rights.status.code(), Some(1), "{}", said(&rights));
    assert!(said(&rights).contains("refused: the program may not get secrets"), "{}", said(&rights));

    let ended = replay(&file, &[], &["--no-such-flag"]);
    assert!(ended.status.code() == Some(1) && said(&ended).contains("program ended"), "{}", said(&ended));
    let nobody = replay(&file, &["--as", "nobody"], &[]);
    assert!(said(&nobody).contains("--as nobody: it wrote nothing in the recording"), "{}", said(&nobody));
}
