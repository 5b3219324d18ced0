//! `cargo xtask projects`: what `kubewright init` and `create` make (`tests/projects`), in a real Kubernetes.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    kubectl::{Inside, Kubectl, eventually},
    operators::Proof,
    page,
    run::{cargo, run, target, workspace},
    running::Running,
};

const TITLE: &str = "The projects of the scaffold";

const TAIL: &str = "
Each is as `kubewright init` and `create` wrote it ([tests/projects](../tests/projects)). All that its `manifests` prints was applied on
the server under strict validation (`fieldValidation=Strict`: an unknown or a duplicate field is refused), and its definitions were
waited for until they were established. `kubewright run --kubeconfig` then ran its program outside of the cluster with a token of its own
service account, and so under the rights that were generated for it; webhooks were served from there at a loopback address, which
the API server called. The files of `config/samples` were applied under strict validation. At the end the operator was asked to end,
and everything was deleted again.
";

/// What `cargo xtask projects` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The kubeconfig of a Kubernetes on this machine in which anything may be done
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Only these projects; the page is not written then
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// A project of `tests/projects`.
struct Project {
    /// Its folder.
    folder: &'static str,
    /// Its package, its program, and the operator.
    name: &'static str,
    promise: Promise,
}

/// What the operator does with its samples.
enum Promise {
    /// It makes these, and makes them again.
    Heals { sample: &'static str, children: &'static [(&'static str, usize)] },
    /// The sample is in no namespace: it makes this Deployment in `default`, and makes it again.
    HealsInDefault { child: &'static str },
    /// It says of these objects that they are ready, and does what its webhooks are for: another version of the first of them, and
    /// a name that they refuse.
    Served { ready: &'static [&'static str], version: &'static str, refused: &'static str },
    /// It watches what others made, and writes nothing.
    Watches,
}

const PROJECTS: [Project; 5] = [
    Project {
        folder: "whitelist",
        name: "foo-bar",
        promise: Promise::Heals { sample: "police_v1beta1_whitelist.yaml", children: &[("deployments", 1)] },
    },
    Project {
        folder: "deploy-image",
        name: "deploy-image",
        promise: Promise::Heals { sample: "cache_v1alpha1_memcached.yaml", children: &[("deployments", 1)] },
    },
    Project {
        folder: "cluster-scoped",
        name: "cluster-scoped",
        promise: Promise::HealsInDefault { child: "harbour-sample-deployment" },
    },
    Project {
        folder: "multigroup",
        name: "multigroup",
        promise: Promise::Served {
            ready: &[
                "captains.crew.example.com/captain-sample",
                "captains.sea-creatures.example.com/captain-sample",
            ],
            version: "captains.v1alpha1.crew.example.com/captain-sample",
            refused: "crew_v1_captain.yaml",
        },
    },
    Project { folder: "builtin", name: "builtin", promise: Promise::Watches },
];

/// Shows them, one after the other, and writes the page.
///
/// # Errors
/// When one does not do what it promises, a request was refused, or something is left.
pub(crate) fn projects(options: &Options) -> Result<()> {
    let chosen: Vec<&Project> = PROJECTS
        .iter()
        .filter(|one| options.names.is_empty() || options.names.iter().any(|name| *name == one.folder))
        .collect();
    run(&mut cargo(["build", "--package=kubewright-cli"]))?;
    for one in &chosen {
        // As `kubewright run` builds it, which then has nothing left to do: one by one.
        run(&mut cargo(["build", "--package", one.name, "--bin", one.name]))?;
    }
    let folder = target().join("projects");
    fs::create_dir_all(&folder)?;
    let kubectl = Kubectl::new(&options.kubeconfig)?;
    let mut table = format!(
        "`cargo xtask projects --kubeconfig ...` wrote this on {} with Kubewright {} and Kubernetes {}.\n\n",
        kubectl.today()?,
        env!("CARGO_PKG_VERSION"),
        kubectl.version()?,
    );
    table += "| project | applied strictly | established | with its samples | requests refused | afterwards |\n|---|---|---|---|---|---|\n";
    for one in chosen {
        let line = one.show(&kubectl, &folder).with_context(|| one.folder.to_owned())?;
        eprintln!("{line}");
        writeln!(table, "{line}")?;
    }
    match options.names.is_empty() {
        true => page::write(TITLE, &(table + TAIL)),
        false => Ok(()),
    }
}

impl Project {
    fn root(&self) -> PathBuf {
        workspace().join("tests/projects").join(self.folder)
    }

    /// Installs it, runs it, has it keep its promise, and takes everything away again; gives a line of the table.
    fn show(&self, kubectl: &Kubectl, folder: &Path) -> Result<String> {
        let file = self.manifests(folder)?.display().to_string();
        // By the manager that `kubewright run` has too: what leads to a Service is to lead to this machine then.
        let strictly = ["--server-side", "--validate=strict", "--field-manager=kubewright", "-o", "name"];
        let applied = kubectl.run(&[&["apply", "-f", &file][..], &strictly].concat())?;
        let kinds: Vec<&str> =
            applied.lines().filter(|name| name.starts_with("customresourcedefinition.")).collect();
        if !kinds.is_empty() {
            let wait = ["wait", "--for=condition=Established", "--timeout=60s"];
            kubectl.run(&[&wait[..], &kinds].concat())?;
        }
        let namespace = format!("kubewright-project-{}", self.folder);
        kubectl.run(&["create", "namespace", &namespace])?;

        let log = folder.join(format!("{}.log", self.folder));
        let mut running = self.start(kubectl, &log)?;
        let seen = self.promise.show(kubectl, &namespace, &self.root().join("config/samples"))?;
        running.end()?;
        let refused = running.log()?.lines().filter(|line| line.contains("is forbidden")).count();
        if refused > 0 {
            bail!("{refused} requests were refused: see {}", log.display());
        }

        kubectl.run(&["delete", "namespace", "--timeout=90s", &namespace])?;
        kubectl.run(&["delete", "--ignore-not-found", "--timeout=90s", "-f", &file])?;
        let left = kubectl.run(&["get", "--ignore-not-found", "-o", "name", "-f", &file])?;
        if !left.trim().is_empty() {
            bail!("these are left: {left}");
        }
        Ok(format!(
            "| [{0}](../tests/projects/{0}) | {1} objects | {2} kinds | {seen} | {refused} | nothing is left |",
            self.folder,
            applied.lines().count(),
            kinds.len(),
        ))
    }

    /// What its program prints, in a file.
    fn manifests(&self, folder: &Path) -> Result<PathBuf> {
        let program = target().join("debug").join(self.name);
        let printed = Command::new(program).arg("manifests").output().context("it cannot be run")?;
        if !printed.status.success() {
            bail!("`manifests` failed: {}", String::from_utf8_lossy(&printed.stderr));
        }
        let file = folder.join(format!("{}.yaml", self.folder));
        fs::write(&file, printed.stdout)?;
        Ok(file)
    }

    /// `kubewright run`, as a user has it, once it says that the operator runs.
    fn start(&self, kubectl: &Kubectl, log: &Path) -> Result<Running> {
        let mut command = Command::new(target().join("debug/kubewright"));
        command.args(["run", "--kubeconfig"]).arg(kubectl.kubeconfig());
        // What it serves to others is not what is shown, and ports may be taken.
        command.args(["--", "--metrics-bind-address=0", "--health-probe-bind-address=0"]);
        let mut running = Running::start(command.current_dir(self.root()), log)?;
        eventually("the operator runs", || {
            running.check()?;
            Ok(running.log()?.contains("Ctrl-C ends it").then_some(()))
        })?;
        Ok(running)
    }
}

impl Promise {
    /// Has it kept, and says what was seen.
    ///
    /// # Errors
    /// When something else happens, or nothing.
    fn show(&self, kubectl: &Kubectl, namespace: &str, samples: &Path) -> Result<String> {
        let inside = &kubectl.inside(namespace);
        match self {
            Self::Heals { sample, children } => {
                let sample = samples.join(sample).display().to_string();
                let seen = Proof::Heals(children).show(inside, &sample)?;
                Ok(format!("{}: {}; the sample is deleted: {}", seen.made, seen.deleted, seen.gone))
            }
            Self::HealsInDefault { child } => {
                let default = kubectl.inside("default");
                with_samples(&default, samples, || {
                    let first = there(&default, child, None)?;
                    default.run(&["delete", "deployment", child])?;
                    there(&default, child, Some(&first)).map(drop)
                })?;
                eventually("it goes with its owner", || Ok(uid(&default, child)?.is_empty().then_some(())))?;
                Ok("1 deployments in `default`: it is deleted, and is back; the sample is deleted: nothing is left".to_owned())
            }
            Self::Served { ready: objects, version, refused } => {
                with_samples(inside, samples, || {
                    ready(inside, objects)?;
                    converted(inside, version)?;
                    denied(inside, &samples.join(refused))
                })?;
                Ok(format!(
                    "{} say that they are ready; `kubectl get {version}` is converted; a name that the webhook forbids is refused",
                    objects.join(", ")
                ))
            }
            Self::Watches => {
                inside.run(&["create", "deployment", "watched", "--image=nginx"])?;
                eventually("there is a pod", || Ok(inside.all("pods")?.first().map(|_| ())))?;
                inside.run(&["delete", "deployment", "watched"])?;
                eventually("nothing is left", || Ok(inside.all("pods")?.is_empty().then_some(())))?;
                Ok("it watches a Deployment and its Pod come and go".to_owned())
            }
        }
    }
}

/// Applies the samples strictly, looks, and deletes them.
fn with_samples(inside: &Inside<'_>, samples: &Path, look: impl FnOnce() -> Result<()>) -> Result<()> {
    let samples = samples.display().to_string();
    inside.run(&["apply", "--validate=strict", "-f", &samples])?;
    look()?;
    inside.run(&["delete", "--ignore-not-found", "--timeout=90s", "-f", &samples])?;
    Ok(())
}

/// The uid of a Deployment, empty where there is none.
fn uid(inside: &Inside<'_>, name: &str) -> Result<String> {
    inside.run(&["get", "deployment", name, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"])
}

/// The uid of a Deployment, once there is one that is not this one.
fn there(inside: &Inside<'_>, name: &str, but: Option<&str>) -> Result<String> {
    eventually(&format!("there is {name}"), || {
        let uid = uid(inside, name)?;
        Ok((!uid.is_empty() && Some(&*uid) != but).then_some(uid))
    })
}

/// Waits until objects say that they are ready.
fn ready(inside: &Inside<'_>, objects: &[&str]) -> Result<()> {
    objects.iter().try_for_each(|object| {
        eventually(&format!("{object} is ready"), || {
            let path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
            let ready = inside.run(&["get", object, "-o", path])?;
            Ok((ready == "True").then_some(()))
        })
    })
}

/// Whether an object is given in a version that it is not stored in, with what it says.
fn converted(inside: &Inside<'_>, version: &str) -> Result<()> {
    let told = inside.run(&["get", version, "-o", "jsonpath={.apiVersion} {.spec.foo}"])?;
    match told.ends_with("/v1alpha1 bar") {
        true => Ok(()),
        false => bail!("{version} is {told:?}"),
    }
}

/// Whether the webhook refuses the name that the scaffold forbids.
fn denied(inside: &Inside<'_>, sample: &Path) -> Result<()> {
    let sample = fs::read_to_string(sample)?.replace("captain-sample", "forbidden");
    let file = target().join("projects/forbidden.yaml");
    fs::write(&file, sample)?;
    match inside.run(&["apply", "-f", &file.display().to_string()]) {
        Err(error) if error.to_string().contains("is an example") => Ok(()),
        Err(error) => Err(error.context("it is refused for another reason")),
        Ok(_) => bail!("the name that the webhook forbids was taken"),
    }
}
