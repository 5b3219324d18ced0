//! The programs of Kubernetes that run the tests: given, or built from its published Go modules.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::RELEASE;
use crate::{
    run::{find, run},
    tools::tools,
};

const NAMES: [&str; 3] = ["e2e.test", "ginkgo", "kubectl"];
/// What runs in pods: built for the images, if there is a need for them.
const IN_PODS: [InPods; 4] = [
    InPods { name: "agnhost", package: "k8s.io/kubernetes/test/images/agnhost", require: None },
    InPods { name: "nnp", package: "k8s.io/kubernetes/test/images/nonewprivs", require: None },
    InPods { name: "etcd", package: "go.etcd.io/etcd/server/v3", require: None },
    // The tests ask for this one with each release: an API server that was made long before has to work behind today's.
    InPods {
        name: "sample-apiserver",
        package: "k8s.io/sample-apiserver",
        require: Some("k8s.io/sample-apiserver v0.29.2"),
    },
];

/// A program that runs in pods.
struct InPods {
    name: &'static str,
    package: &'static str,
    /// The module that it is built of, where that is another than Kubernetes of the release and what this depends on.
    require: Option<&'static str>,
}

/// What a Go program of a pod does otherwise, as pods share the network: one that listens on all addresses takes the pod's, and so does one
/// that calls another address of this machine and does not say from where.
const AT_ITS_ADDRESS: [(&str, &[(&str, &str)]); 2] = [
    (
        "tcpsock_posix.go",
        &[
            (
                "func (sl *sysListener) listenTCPProto(ctx context.Context, laddr *TCPAddr, proto int) (*TCPListener, error) {\n",
                LISTENING,
            ),
            (
                "func (sd *sysDialer) doDialTCPProto(ctx context.Context, laddr, raddr *TCPAddr, proto int) (*TCPConn, error) {\n",
                "	if address, ok := syscall.Getenv(\"KUBEWRIGHT_POD_ADDRESS\"); ok && laddr == nil && raddr.IP.IsLoopback() {
		laddr = &TCPAddr{IP: ParseIP(address)}
	}
",
            ),
        ],
    ),
    (
        "udpsock_posix.go",
        &[
            (
                "func (sl *sysListener) listenUDP(ctx context.Context, laddr *UDPAddr) (*UDPConn, error) {\n",
                LISTENING,
            ),
            (
                "func (sd *sysDialer) dialUDP(ctx context.Context, laddr, raddr *UDPAddr) (*UDPConn, error) {\n",
                "	if address, ok := syscall.Getenv(\"KUBEWRIGHT_POD_ADDRESS\"); ok && laddr == nil && raddr.IP.IsLoopback() {
		laddr = &UDPAddr{IP: ParseIP(address)}
	}
",
            ),
        ],
    ),
];
const LISTENING: &str = "	if address, ok := syscall.Getenv(\"KUBEWRIGHT_POD_ADDRESS\"); ok && (len(laddr.IP) == 0 || laddr.IP.IsUnspecified()) {
		pod := *laddr
		pod.IP = ParseIP(address)
		laddr = &pod
	}
";

/// A folder with all of them.
#[derive(Clone, Debug)]
pub(super) struct Programs(PathBuf);

impl Programs {
    /// Those of a folder; without one, those that were built here, or are now.
    ///
    /// # Errors
    /// When one is not in the folder, or there is no Go to build them with.
    pub(super) fn of(given: Option<&Path>) -> Result<Self> {
        let Some(folder) = given else { return Self::built() };
        if let Some(missing) = NAMES.iter().find(|name| !folder.join(name).is_file()) {
            bail!("there is no {missing} in {}", folder.display());
        }
        Ok(Self(folder.canonicalize()?))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of all images that the tests ask for.
    ///
    /// # Errors
    /// When the tests cannot be asked.
    pub(super) fn images(&self) -> Result<Vec<String>> {
        let output = Command::new(self.path("e2e.test")).arg("--list-images").output()?;
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }

    /// What runs in pods, which is built unless it is there.
    ///
    /// # Errors
    /// When there is no Go, or it cannot build it.
    pub(super) fn in_pods() -> Result<Self> {
        let programs = Self(folder().join("bin"));
        let missing: Vec<_> =
            IN_PODS.iter().filter(|program| !programs.path(program.name).is_file()).collect();
        if missing.is_empty() {
            return Ok(programs);
        }
        let go = find("go").context("there is no Go to build the programs of the images with")?;
        let of_kubernetes = module(&go)?;
        let overlay = overlay(&go, &of_kubernetes)?;
        for InPods { name, package, require } in missing {
            let module = match require {
                Some(require) => module_of(name, require)?,
                None => of_kubernetes.clone(),
            };
            let mut build = in_module(&go, &module);
            build.args([
                "build",
                "-trimpath",
                "-buildvcs=false",
                "-mod=mod",
                "-ldflags",
                "-s -w",
                "-overlay",
            ]);
            run(build.arg(&overlay).arg("-o").arg(programs.path(name)).arg(package))?;
        }
        Ok(programs)
    }

    /// The folder with the sources of Kubernetes.
    ///
    /// # Errors
    /// When there is no Go, or it cannot fetch them.
    pub(super) fn sources() -> Result<PathBuf> {
        let go = find("go").context("there is no Go to fetch the sources of Kubernetes with")?;
        let said = downloaded(&go, &module(&go)?)?;
        Ok(PathBuf::from(said["Dir"].as_str().context("go mod download names no folder")?))
    }

    fn built() -> Result<Self> {
        let programs = Self(folder().join("bin"));
        if NAMES.iter().all(|name| programs.path(name).is_file()) {
            return Ok(programs);
        }
        let go = find("go").context("there is no Go to build the conformance tests with")?;
        let module = module(&go)?;
        fs::create_dir_all(&programs.0)?;
        for (name, verb, package) in [
            ("ginkgo", &["build"][..], "github.com/onsi/ginkgo/v2/ginkgo"),
            ("kubectl", &["build"], "k8s.io/kubernetes/cmd/kubectl"),
            ("e2e.test", &["test", "-c"], "k8s.io/kubernetes/test/e2e"),
        ] {
            let mut build = in_module(&go, &module);
            build.args(verb).args(["-trimpath", "-buildvcs=false", "-mod=mod", "-ldflags", &flags(), "-o"]);
            run(build.arg(programs.path(name)).arg(package))?;
        }
        Ok(programs)
    }
}

/// Where they are built.
fn folder() -> PathBuf {
    tools().join(format!("conformance-{RELEASE}"))
}

/// A module that depends on Kubernetes of the release.
fn module(go: &Path) -> Result<PathBuf> {
    let module = folder().join("module");
    fs::create_dir_all(&module)?;
    let manifest = module.join("go.mod");
    if !manifest.is_file() {
        fs::write(&manifest, go_mod(&staging(go, &module)?))?;
    }
    Ok(module)
}

/// A module that depends on one other.
fn module_of(name: &str, require: &str) -> Result<PathBuf> {
    let module = folder().join(name);
    fs::create_dir_all(&module)?;
    fs::write(module.join("go.mod"), format!("module {name}\n\ngo 1.26.0\n\nrequire {require}\n"))?;
    Ok(module)
}

/// Which files of Go's own `net` are others for programs of pods (`go build -overlay`).
fn overlay(go: &Path, module: &Path) -> Result<PathBuf> {
    let root = in_module(go, module).args(["env", "GOROOT"]).output()?;
    let net = Path::new(String::from_utf8(root.stdout)?.trim()).join("src/net");
    let mut replaced = serde_json::Map::new();
    for (file, changes) in AT_ITS_ADDRESS {
        let mut text = fs::read_to_string(net.join(file))?;
        for (function, beginning) in changes {
            if !text.contains(function) {
                bail!("{} of this Go listens, or calls, in another way", net.join(file).display());
            }
            text = text.replacen(function, &format!("{function}{beginning}"), 1);
        }
        // The name says that it is no part of the module.
        let changed = module.join(format!("{file}.txt"));
        fs::write(&changed, text)?;
        replaced.insert(net.join(file).display().to_string(), changed.display().to_string().into());
    }
    let overlay = module.join("overlay.json");
    fs::write(&overlay, serde_json::json!({ "Replace": replaced }).to_string())?;
    Ok(overlay)
}

fn in_module(go: &Path, module: &Path) -> Command {
    let mut command = Command::new(go);
    command.current_dir(module).env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "");
    command
}

/// The modules that Kubernetes publishes of its own parts, which its manifest has as version 0.0.0.
fn staging(go: &Path, module: &Path) -> Result<Vec<String>> {
    let said = downloaded(go, module)?;
    let manifest = said["GoMod"].as_str().with_context(|| format!("go mod download: {said}"))?;
    Ok(staging_of(&fs::read_to_string(manifest)?))
}

/// What Go says of the sources of the release, which it fetches if it has to.
fn downloaded(go: &Path, module: &Path) -> Result<Value> {
    let wanted = format!("k8s.io/kubernetes@v{RELEASE}");
    let output = in_module(go, module).args(["mod", "download", "-json", &wanted]).output()?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("go mod download {wanted}"))
}

fn staging_of(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().filter_map(|line| line.trim().strip_suffix(" v0.0.0"));
    let mut names: Vec<_> = lines.filter(|name| name.starts_with("k8s.io/")).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn go_mod(staging: &[String]) -> String {
    let mut text = format!(
        "module conformance\n\ngo 1.26.0\n\ngodebug default=go1.26\n\nrequire k8s.io/kubernetes v{RELEASE}\n\nreplace (\n"
    );
    let minor = RELEASE.strip_prefix("1.").unwrap_or(RELEASE);
    for name in staging {
        // Writing to a String does not fail.
        let _ = writeln!(text, "\t{name} => {name} v0.{minor}");
    }
    text + ")\n"
}

/// By these the programs know which release they are.
fn flags() -> String {
    let minor = RELEASE.split('.').nth(1).unwrap_or_default();
    let mut flags = "-s -w".to_owned();
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        let _ = write!(
            flags,
            " -X {package}.gitVersion=v{RELEASE} -X {package}.gitMajor=1 -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
        );
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_publishes_of_itself_is_replaced_by_its_release() {
        let manifest = "require (\n\tk8s.io/api v0.0.0\n\tk8s.io/klog/v2 v2.140.0\n\tk8s.io/api v0.0.0\n)\n";
        let staging = staging_of(manifest);
        assert_eq!(staging, ["k8s.io/api"]);
        assert!(go_mod(&staging).contains("\tk8s.io/api => k8s.io/api v0.36.3\n"));
        assert!(flags().contains("component-base/version.gitMinor=36 "));
    }
}
