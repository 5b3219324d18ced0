//! The real programs of a release, built from their Go modules, started on loopback, asked, and ended.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{run, target, workspace};

/// The modules whose types are read, of the same release as the server.
const MODULES: [&str; 5] = ["api", "apiextensions-apiserver", "apimachinery", "client-go", "kube-aggregator"];

/// The internal types that messages show, which the structs are read from.
const STRUCTS: [&str; 13] = [
    "admissionregistration.AuditAnnotation",
    "apps.DaemonSetUpdateStrategy",
    "apps.DeploymentStrategy",
    "apps.StatefulSetUpdateStrategy",
    "batch.PodFailurePolicy",
    "batch.SuccessPolicy",
    "core.HostIP",
    "core.PersistentVolumeClaimSpec",
    "core.PersistentVolumeSource",
    "core.PodIP",
    "core.PodSpec",
    "core.PodTemplateSpec",
    "storage.VolumeAttachmentSpec",
];

/// What a release said: files in a folder.
pub(super) struct Asked {
    pub(super) release: String,
    folder: PathBuf,
}

impl Asked {
    pub(super) fn text(&self, name: &str) -> Result<String> {
        let path = self.folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    pub(super) fn json(&self, name: &str) -> Result<Value> {
        serde_json::from_str(&self.text(name)?).with_context(|| format!("{name} is no JSON"))
    }

    /// The schemas of all documents of OpenAPI v3, by the names of their types.
    pub(super) fn schemas(&self) -> Result<serde_json::Map<String, Value>> {
        let mut all = serde_json::Map::new();
        for name in self.names("v3-")? {
            let mut document = self.json(&name)?;
            if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas").map(Value::take)
            {
                all.extend(schemas);
            }
        }
        Ok(all)
    }

    /// The tables of all kinds: `apps/v1 deployments`, and the answer.
    pub(super) fn tables(&self) -> Result<Vec<(String, Value)>> {
        let read = |name: String| {
            let place = name.trim_start_matches("table-").trim_end_matches(".json");
            let (version, resource) =
                place.rsplit_once('_').context("a table has a version and a resource")?;
            let version = version.split_once('_').map_or("", |(_, version)| version).replace('_', "/");
            Ok((format!("{version} {resource}"), self.json(&name)?))
        };
        self.names("table-")?.into_iter().map(read).collect()
    }

    fn names(&self, start: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder)?.collect::<Result<Vec<_>, _>>()?;
        let mut names: Vec<String> =
            entries.iter().filter_map(|one| one.file_name().into_string().ok()).collect();
        names.retain(|name| name.starts_with(start));
        names.sort();
        Ok(names)
    }
}

/// A program that is ended with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Builds what there is not yet, and asks. What a release said is kept in `target/spec`; it is asked anew each time.
pub(super) fn ask(release: &str) -> Result<Asked> {
    let home = target().join("spec").join(release);
    let folder = home.join("said");
    for stale in [&folder, &home.join("etcd"), &home.join("certificates")] {
        if stale.exists() {
            fs::remove_dir_all(stale)?;
        }
    }
    fs::create_dir_all(&folder)?;
    let reader = reader(release, &home)?;
    let programs = programs(release, &home)?;
    let asked = Asked { release: release.to_owned(), folder };
    serve(&programs, &home, |address, token| {
        run(Command::new(&reader).args(["ask", address, token]).arg(&asked.folder))
    })?;
    let versions = super::resources::versions(&asked.json("api.json")?, &asked.json("apis.json")?);
    let module = home.join("reader");
    let sources = download(&module, release)?["Dir"].as_str().map(str::to_owned);
    let sources = sources.with_context(|| format!("go says no folder of release {release}"))?;
    let structs: Vec<String> = [sources].into_iter().chain(STRUCTS.map(str::to_owned)).collect();
    for (what, of) in [("fields", &versions), ("tags", &versions), ("structs", &structs)] {
        let output = Command::new(&reader).arg(what).args(of).current_dir(&module).output()?;
        if !output.status.success() {
            bail!("cannot read the {what}: {}", String::from_utf8_lossy(&output.stderr));
        }
        fs::write(asked.folder.join(format!("{what}.txt")), output.stdout)?;
    }
    Ok(asked)
}

/// The program that reads the Go types of the release.
fn reader(release: &str, home: &Path) -> Result<PathBuf> {
    let module = home.join("reader");
    fs::create_dir_all(&module)?;
    for entry in fs::read_dir(workspace().join("xtask/spec-go"))? {
        let entry = entry?;
        fs::copy(entry.path(), module.join(entry.file_name()))?;
    }
    let versions = MODULES.map(|name| format!("require k8s.io/{name} v0.{}\n", staging(release)));
    fs::write(module.join("go.mod"), format!("module spec\n\ngo 1.26.0\n\n{}", versions.concat()))?;
    let program = home.join("spec");
    run(go(&module).args(["build", "-o"]).arg(&program).arg("."))?;
    Ok(program)
}

/// The folder of kube-apiserver and etcd: those of `KUBE_REFERENCE` if they are of the release, or built.
fn programs(release: &str, home: &Path) -> Result<PathBuf> {
    if let Some(found) = found(release) {
        return Ok(found);
    }
    let built = home.join("bin");
    if !is_of(&built, release) {
        build(release, home, &built)?;
    }
    Ok(built)
}

/// The folder where they are without building them here.
fn found(release: &str) -> Option<PathBuf> {
    let given = env::var_os("KUBE_REFERENCE").map(|folder| PathBuf::from(folder).join("bin"));
    let cache = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cached = ["kube-reference".to_owned(), format!("kube-reference-{release}")]
        .map(|name| cache.as_ref().map(|cache| cache.join(name).join("bin")));
    [given].into_iter().chain(cached).flatten().find(|folder| is_of(folder, release))
}

/// Whether the programs of the release are there.
pub(super) fn is_built(release: &str) -> bool {
    found(release).is_some() || is_of(&target().join("spec").join(release).join("bin"), release)
}

fn is_of(folder: &Path, release: &str) -> bool {
    let said = Command::new(folder.join("kube-apiserver")).arg("--version").output();
    folder.join("etcd").exists()
        && said.is_ok_and(|said| {
            String::from_utf8_lossy(&said.stdout).trim() == format!("Kubernetes v{release}")
        })
}

fn build(release: &str, home: &Path, programs: &Path) -> Result<()> {
    fs::create_dir_all(programs)?;
    let module = home.join("kubernetes");
    fs::create_dir_all(&module)?;
    let published = published(&module, release)?;
    let staged =
        published.lines().filter_map(|line| line.trim().strip_prefix("k8s.io/")?.strip_suffix(" v0.0.0"));
    let staging = staging(release);
    let replaced: String =
        staged.map(|name| format!("replace k8s.io/{name} => k8s.io/{name} v0.{staging}\n")).collect();
    fs::write(
        module.join("go.mod"),
        format!(
            "module reference\n\ngo 1.26.0\n\ngodebug default=go1.26\n\nrequire k8s.io/kubernetes v{release}\n\n{replaced}"
        ),
    )?;
    let version = format!("-s -w -X k8s.io/component-base/version.gitVersion=v{release}");
    run(go(&module)
        .args(["build", "-ldflags", &version, "-o"])
        .arg(programs.join("kube-apiserver"))
        .arg("k8s.io/kubernetes/cmd/kube-apiserver"))?;
    let etcd = published
        .lines()
        .find_map(|line| line.trim().strip_prefix("go.etcd.io/etcd/client/v3 "))
        .and_then(|rest| rest.split(' ').next())
        .context("the release does not say which etcd it was made with")?;
    let module = home.join("module-etcd");
    fs::create_dir_all(&module)?;
    fs::write(
        module.join("go.mod"),
        format!("module reference\n\ngo 1.26.0\n\nrequire go.etcd.io/etcd/server/v3 {etcd}\n"),
    )?;
    run(go(&module).args(["build", "-o"]).arg(programs.join("etcd")).arg("go.etcd.io/etcd/server/v3"))
}

/// The module file of the release.
fn published(folder: &Path, release: &str) -> Result<String> {
    let said = download(folder, release)?;
    let path = said["GoMod"].as_str().with_context(|| format!("no release {release}: {}", said["Error"]))?;
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

/// The module of the release, as `go mod download` tells of it: its folder, its module file.
fn download(folder: &Path, release: &str) -> Result<Value> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("k8s.io/kubernetes@v{release}")])
        .current_dir(folder)
        .output()
        .context("cannot run go")?;
    serde_json::from_slice(&output.stdout).context("go says nothing of the release")
}

fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module).env("GOFLAGS", "-mod=mod").env("CGO_ENABLED", "0").env("GOWORK", "off");
    command
}

/// `36.3` of `1.36.3`: the modules that Kubernetes is made of are v0.36.3.
fn staging(release: &str) -> &str {
    release.split_once('.').map_or(release, |(_, rest)| rest)
}

/// Starts both programs, lets `ask` ask the server of that address with that token, and ends them.
fn serve(programs: &Path, home: &Path, ask: impl FnOnce(&str, &str) -> Result<()>) -> Result<()> {
    let [etcd, peers, port] = ports()?;
    let key = home.join("accounts.key");
    run(Command::new(home.join("spec")).arg("key").arg(&key))?;
    let token = "asked-on-loopback";
    let tokens = home.join("tokens.csv");
    fs::write(&tokens, format!("{token},admin,admin,system:masters\n"))?;
    let clients = format!("http://127.0.0.1:{etcd}");
    let peers = format!("http://127.0.0.1:{peers}");
    let log = |name: &str| -> Result<Stdio> { Ok(fs::File::create(home.join(name))?.into()) };
    let mut store = Command::new(programs.join("etcd"));
    store.arg("--data-dir").arg(home.join("etcd")).args(["--unsafe-no-fsync", "--log-level", "warn"]);
    store.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    store.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    store.args(["--initial-cluster", &format!("default={peers}")]);
    let _store =
        Running(store.stdout(Stdio::null()).stderr(log("etcd.log")?).spawn().context("cannot start etcd")?);
    let mut server = Command::new(programs.join("kube-apiserver"));
    server.args([
        "--etcd-servers",
        &clients,
        "--bind-address",
        "127.0.0.1",
        "--secure-port",
        &port.to_string(),
    ]);
    server.arg("--cert-dir").arg(home.join("certificates")).arg("--token-auth-file").arg(&tokens);
    server.args(["--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24"]);
    server.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
    server.arg("--service-account-key-file").arg(&key).arg("--service-account-signing-key-file").arg(&key);
    let started = server.stdout(Stdio::null()).stderr(log("kube-apiserver.log")?).spawn();
    let _server = Running(started.context("cannot start kube-apiserver")?);
    ask(&format!("https://127.0.0.1:{port}"), token)
        .with_context(|| format!("kube-apiserver's log: {}", home.join("kube-apiserver.log").display()))
}

/// Ports of loopback that nobody listens on.
fn ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind(("127.0.0.1", 0))?);
    }
    let numbers =
        held.iter().map(|one| one.local_addr().map(|at| at.port())).collect::<Result<Vec<_>, _>>()?;
    numbers.try_into().ok().context("as many ports as sockets")
}
