//! Recordings by the command: of a cluster from outside and from inside, played into another, and looked back at.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use kubewright_recording::{Did, Reader, Record, Write};
use kubewright_tests::{Up, needed};

use crate::process::Ended;

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kubewright-{test}-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn kubewright(up: &Up, arguments: &[&str]) -> Command {
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.args(arguments).arg("--kubeconfig").arg(up.kubeconfig());
    command
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// The writes that are in a file so far.
fn writes(path: &str) -> Vec<Write> {
    let Some(mut reader) = File::open(path).ok().and_then(|file| Reader::open(file).ok()) else {
        return Vec::new();
    };
    let records = std::iter::from_fn(|| reader.next_record().expect("a recording"));
    let writes = records.filter_map(|record| match record {
        Record::Write(write) => Some(write),
        _ => None,
    });
    writes.collect()
}

/// Waits until a file has so many writes of an object.
async fn recorded(path: &str, key: &str, count: usize) -> Vec<Write> {
    for _ in 0..600 {
        let found: Vec<Write> = writes(path).into_iter().filter(|write| write.key == key).collect();
        if found.len() >= count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!(
        "{path} never has {count} writes of {key}: {:?}",
        writes(path).iter().map(|write| &write.key).collect::<Vec<_>>()
    );
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

/// Ctrl-C; gives what it said, and whether it ended well.
fn interrupt(process: &mut Child) -> (bool, String) {
    let asked = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(asked.expect("kill is there").success());
    let mut said = String::new();
    process.stdout.take().expect("it is piped").read_to_string(&mut said).expect("text");
    (process.wait().expect("it ends").success(), said)
}

fn map(name: &str, text: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{text: {text}}}\n")
}

/// What happens in the cluster that is recorded: two versions of a map and its child, a Deployment with a status, a secret.
fn story(up: &Up) {
    let _ = up.apply(&map("parent", "one"));
    let uid = up.kubectl("get configmap parent -o jsonpath={.metadata.uid}");
    let owner = format!("{{apiVersion: v1, kind: ConfigMap, name: parent, uid: {uid}}}");
    let child =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: child, ownerReferences: [{owner}]}}\n");
    let _ = up.apply(&child);
    let _ = up.apply(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, selector: {matchLabels: {a: b}}, \
         template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: nginx}]}}}\n",
    );
    let patch = "patch deployment web --subresource=status --type=merge -p {\"status\":{\"replicas\":2}}";
    let _ = up.kubectl(patch);
    let _ = up.kubectl("create secret generic key --from-literal=password=hunter2");
    let _ = up.kubectl("create configmap passing");
    let _ = up.kubectl("delete configmap passing");
    let _ = up.apply(&map("parent", "two"));
}

fn refuses(output: &Output, why: &str) {
    assert!(!output.status.success() && said(output).contains(why), "{}", said(output));
}

#[tokio::test]
#[ignore = "needs kubectl and the built command: cargo xtask test"]
async fn a_cluster_is_recorded_from_outside_and_played_into_another() {
    let folder = Folder::new("record");
    let still = ["--nodes", "0", "--controllers", ""];
    let source = Up::start("record-source", &still);
    let file = folder.file("source.kwrec");
    let _ = source.apply(&map("before", "one"));
    let mut recorder = Ended(start(kubewright(&source, &["record", &file])));
    recorded(&file, "default/before", 1).await;
    story(&source);
    let parents = recorded(&file, "default/parent", 2).await;
    assert_eq!(parents.iter().map(|write| write.did).collect::<Vec<_>>(), [Did::Create, Did::Update]);
    assert_eq!(parents[0].by.program, "kubectl-client-side-apply");
    let (is_success, output) = interrupt(&mut recorder.0);
    assert!(is_success && output.contains("kubewright up --from"), "{output}");
    let all = writes(&file);
    assert!(all.iter().all(|write| !write.object.get().contains("aHVudGVyMg==")), "the secret is hashed");

    // What happens while nobody records is found by the next one.
    let _ = source.kubectl("delete configmap child");
    let again = kubewright(&source, &["record", &file, "--for", "2s"]).output().expect("it runs");
    assert!(again.status.success(), "{}", said(&again));
    let children = recorded(&file, "default/child", 2).await;
    assert!(children[1].did == Did::Delete && children[1].inferred, "{children:?}");

    let target = Up::start("record-target", &still);
    let played = kubewright(&target, &["play", &file, "--speed", "max"]).output().expect("it runs");
    assert!(played.status.success(), "{}", said(&played));
    assert_eq!(target.kubectl("get configmap parent -o jsonpath={.data.text}"), "two");
    assert_eq!(target.kubectl("get deployment web -o jsonpath={.status.replicas}"), "2");
    let names = target.kubectl("get configmaps -o jsonpath={.items[*].metadata.name}");
    assert!(!names.contains("passing") && !names.contains("child"), "{names}");
    let hashed = target.kubectl("get secret key -o jsonpath={.data.password}");
    assert!(!hashed.is_empty() && hashed != "aHVudGVyMg==", "{hashed}");
    refuses(&kubewright(&target, &["record", &file]).output().expect("it runs"), "cannot be gone on with");
    refuses(
        &kubewright(&target, &["record", &folder.file("x"), "--kinds", "widgets"]).output().expect("it runs"),
        "widgets",
    );
}

#[tokio::test]
#[ignore = "needs kubectl and the built command: cargo xtask test"]
async fn a_reader_without_rights_records_what_it_may_and_is_told_what_not() {
    let folder = Folder::new("record-rights");
    let up = Up::start("record-rights", &["--nodes", "0", "--controllers", ""]);
    let _ = up.kubectl("create serviceaccount reader");
    let _ = up.kubectl("create clusterrole reader --verb=list,watch --resource=configmaps");
    let _ =
        up.kubectl("create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:reader");
    let _ = up.apply(&map("seen", "one"));
    let token = up.kubectl("create token reader");
    let kubeconfig = std::fs::read_to_string(up.kubeconfig()).expect("a kubeconfig");
    let (begin, old) = kubeconfig.split_once("token: ").expect("a token");
    let rest = old.split_once('\n').map_or("", |(_, rest)| rest);
    let reader = up.file("reader", &format!("{begin}token: {}\n{rest}", token.trim()));
    let file = folder.file("rights.kwrec");
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.args(["record", &file, "--kinds", "secrets,configmaps", "--for", "3s", "--kubeconfig", &reader]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output).matches("secrets left out").count(), 1, "{}", said(&output));
    assert!(writes(&file).iter().any(|write| write.key == "default/seen"));
}

#[tokio::test]
#[ignore = "needs kubectl and the built command: cargo xtask test"]
async fn a_cluster_that_records_itself_is_started_again_as_it_was_at_any_moment() {
    let folder = Folder::new("up-record");
    let file = folder.file("up.kwrec");
    let mut up = Up::start("up-record", &["--nodes", "0", "--controllers", "", "--record", &file]);
    story(&up);
    let parents = recorded(&file, "default/parent", 2).await;
    assert_eq!(parents[0].by.user, "kubernetes-admin");
    assert!(parents[0].by.program.starts_with("kubectl"), "{:?}", parents[0].by);
    let revisions: Vec<u64> = writes(&file).iter().map(|write| write.revision).collect();
    assert_eq!(revisions, (1..=revisions.len() as u64).collect::<Vec<_>>());
    assert!(
        requests(Path::new(&file))
            .iter()
            .any(|line| line.starts_with("patch apps/deployments/status default/web 200"))
    );
    up.kill();

    let last = Up::start("up-record-last", &["--from", &file]);
    assert_eq!(last.kubectl("get configmap parent -o jsonpath={.data.text}"), "two");
    drop(last);
    let revision = parents[0].revision.to_string();
    let first = Up::start("up-record-first", &["--from", &file, "--at", &revision]);
    assert_eq!(first.kubectl("get configmap parent -o jsonpath={.data.text}"), "one");
    assert_eq!(first.kubectl("get configmap parent -o jsonpath={.metadata.resourceVersion}"), revision);
    assert!(!first.try_kubectl("get deployment web").status.success(), "it came later");
    let mut early = Command::new(needed("KUBEWRIGHT"));
    early.args(["up", "--port", "0", "--from", &file, "--at", "2001-01-01T00:00:00Z"]);
    let early = early.arg("--kubeconfig").arg(folder.file("early")).output();
    refuses(&early.expect("it runs"), "--at: the recording begins at");
}

/// Verb, resource, key and status of the requests in a file.
fn requests(path: &Path) -> Vec<String> {
    let mut reader = Reader::open(File::open(path).expect("it is there")).expect("a recording");
    let records = std::iter::from_fn(|| reader.next_record().expect("a recording"));
    let requests = records.filter_map(|record| match record {
        Record::Request(one) => {
            Some(format!("{} {} {} {}", one.verb, one.resource, one.key, one.code.unwrap_or_default()))
        }
        _ => None,
    });
    requests.collect()
}

#[test]
#[ignore = "needs the built command: cargo xtask test"]
fn each_api_server_of_a_suite_records_into_a_file_of_its_own() {
    let folder = Folder::new("suite");
    let suite = folder.0.join("suite");
    let start = |number: u16| {
        let mut command = Command::new(needed("KUBEWRIGHT"));
        command.args(["kube-apiserver", "--secure-port", &free_port().to_string()]);
        command.arg("--cert-dir").arg(folder.0.join(format!("certs-{number}")));
        command.env("KUBEWRIGHT_RECORD", &suite).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut process = Ended(command.spawn().expect("it starts"));
        let lines = BufReader::new(process.0.stderr.take().expect("it is piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        let told = lines.find(|line| line.starts_with("kubewright records into ")).expect("it tells where");
        assert!(lines.any(|line| line.contains("serves as kube-apiserver")), "it serves");
        (process, told)
    };
    for (mut process, told) in [start(1), start(2)] {
        let path = told.split_whitespace().nth(3).expect("a path").trim_end_matches(';').to_owned();
        // It is read while it is written.
        assert!(Path::new(&path).starts_with(&suite), "{told}");
        let asked = Command::new("kill").args(["-TERM", &process.0.id().to_string()]).status();
        assert!(
            asked.is_ok_and(|asked| asked.success()) && process.0.wait().is_ok_and(|ended| ended.success())
        );
        assert!(writes(&path).iter().any(|write| write.key == "default"), "the namespaces are in it");
        let mut reader = Reader::open(File::open(&path).expect("it is there")).expect("a recording");
        let last = std::iter::from_fn(|| reader.next_record().expect("a recording")).last();
        assert!(matches!(last, Some(Record::Mark(mark)) if mark.what == "end"), "{path} is closed");
    }
    assert_eq!(std::fs::read_dir(&suite).expect("the folder").count(), 2);
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
