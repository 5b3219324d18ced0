//! `cargo xtask operators`: every operator as a program beside a real Kubernetes, and what became of its sample, as
//! `docs/real-kubernetes.md`.

mod kubectl;
mod proof;

use std::{
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::{
    kubectl::{Kubectl, eventually},
    proof::{Proof, Seen},
};
use crate::{
    openstack::OpenStack,
    run::{cargo, run, target, workspace},
};

const HEAD: &str = "# The operators on a real Kubernetes

";

const TAIL: &str = "
Each was installed by all that its `manifests` prints, applied on the server; ran as a process outside of the cluster, with a token
of its own service account and so under its generated rights; and its sample was applied under strict validation, into an empty
namespace. \"Nothing is left\" means no Deployment, ReplicaSet, Pod, Job, Service or PodDisruptionBudget in that namespace.
At the end each ended well at SIGTERM and was uninstalled, its definitions gone.

What cannot be seen there: the servers are kube-apiserver, kube-controller-manager and etcd, with neither a scheduler nor a kubelet.
Pods are made and deleted, and stay `Pending`: so do the operators' own Deployments, and what their status says of pods that
are ready, of exit codes and of logs is shown on simulated nodes and on [nodes that run processes](process.md) alone. The
image police's webhook is not among what was shown.
";

/// What `cargo xtask operators` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The kubeconfig of a Kubernetes in which anything may be done
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Start OpenStack's own servers too, for the SecurityGroup operator
    #[arg(long)]
    openstack: bool,
    /// Only these operators; the page is not written then
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// An operator of the workspace.
struct Operator {
    /// Its folder.
    name: &'static str,
    /// What its program is called.
    program: &'static str,
    /// What its service account is called, and its namespace but for `-system`.
    account: &'static str,
    sample: &'static str,
    proof: Proof,
}

const OPERATORS: [Operator; 7] = [
    Operator {
        name: "whitelist",
        program: "whitelist",
        account: "whitelist",
        sample: "sample_v1beta1_whitelist.yaml",
        proof: Proof::Heals(&[("deployments", 1)]),
    },
    Operator {
        name: "image-police",
        program: "image-police",
        account: "image-police",
        sample: "police_v1beta1_whitelist.yaml",
        proof: Proof::Judges,
    },
    Operator {
        name: "at",
        program: "at",
        account: "at",
        sample: "cnat_v1alpha1_at.yaml",
        proof: Proof::Once { child: "pods", prompt: None, says: "Succeeded" },
    },
    Operator {
        name: "crontab",
        program: "crontab",
        account: "crontab",
        sample: "alpha_v1_crontab.yaml",
        proof: Proof::Once {
            child: "jobs",
            prompt: Some("alpha.ianlewis.org/run-now=please"),
            says: "Scheduled",
        },
    },
    Operator {
        name: "app-service",
        program: "app-service",
        account: "app-service",
        sample: "app_v1alpha1_appservice.yaml",
        proof: Proof::Heals(&[("pods", 3)]),
    },
    Operator {
        name: "memcached",
        program: "memcached-operator",
        account: "memcached",
        sample: "cache_v1alpha1_memcached.yaml",
        proof: Proof::Heals(&[("deployments", 1), ("services", 1), ("poddisruptionbudgets", 1)]),
    },
    Operator {
        name: "security-group",
        program: "security-group",
        account: "openstack-sg-controller",
        sample: "openstack_v1beta1_securitygroup.yaml",
        proof: Proof::Says("Ready"),
    },
];

/// Runs them, one after the other, and writes the page.
///
/// # Errors
/// When one does not do what it promises.
pub(crate) fn operators(options: &Options) -> Result<()> {
    let chosen: Vec<&Operator> = OPERATORS
        .iter()
        .filter(|one| options.names.is_empty() || options.names.iter().any(|name| *name == one.name))
        .collect();
    let mut build = cargo(["build", "--bins"]);
    chosen.iter().for_each(|one| {
        build.arg(format!("-pkubewright-{}", one.name));
    });
    run(&mut build)?;
    let cloud = options.openstack.then(OpenStack::start).transpose().map_err(anyhow::Error::msg)?;
    let folder = target().join("operators");
    fs::create_dir_all(&folder)?;
    let kubectl = Kubectl::new(&options.kubeconfig)?;
    let mut page = format!(
        "{HEAD}`cargo xtask operators --kubeconfig ...{}` wrote this page on {} with Kubewright {} and Kubernetes {}.\n\n",
        if options.openstack { " --openstack" } else { "" },
        kubectl.today()?,
        env!("CARGO_PKG_VERSION"),
        kubectl.version()?,
    );
    page += "| operator | its sample | what was made is deleted | the sample is deleted | requests refused |\n|---|---|---|---|---|\n";
    for one in chosen {
        let seen = one.show(&kubectl, &folder, cloud.as_ref()).with_context(|| one.name.to_owned())?;
        let line = format!(
            "| [{0}](../operators/{0}) | {1} | {2} | {3} | {4} |",
            one.name, seen.made, seen.deleted, seen.gone, seen.refused
        );
        eprintln!("{line}");
        writeln!(page, "{line}")?;
    }
    page += TAIL;
    match options.names.is_empty() {
        true => fs::write(workspace().join("docs/real-kubernetes.md"), page).context("cannot write the page"),
        false => Ok(()),
    }
}

impl Operator {
    fn program(&self) -> PathBuf {
        target().join("debug").join(self.program)
    }

    /// Installs it, runs it, has it show what it promises, and takes everything away again.
    fn show(&self, kubectl: &Kubectl, folder: &Path, cloud: Option<&OpenStack>) -> Result<Seen> {
        let printed = Command::new(self.program()).arg("manifests").output().context("cannot run it")?;
        if !printed.status.success() {
            bail!("`manifests` failed: {}", String::from_utf8_lossy(&printed.stderr));
        }
        let manifests = folder.join(format!("{}.yaml", self.name));
        fs::write(&manifests, printed.stdout)?;
        let manifests = manifests.display().to_string();
        let namespace = format!("kubewright-{}", self.name);
        kubectl.run(&["create", "namespace", &namespace])?;
        kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &manifests])?;
        kubectl.run(&[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "customresourcedefinitions",
            "--all",
        ])?;

        let log = folder.join(format!("{}.log", self.name));
        let mut running = Running(self.start(kubectl, folder, &log, cloud)?);
        let sample = workspace().join("operators").join(self.name).join("config/samples").join(self.sample);
        let inside = kubectl.inside(&namespace);
        let mut seen = self.proof.show(&inside, &sample.display().to_string())?;
        running.end()?;
        let told = fs::read_to_string(&log)?;
        seen.refused = told.lines().filter(|line| line.contains("is forbidden")).count();

        kubectl.run(&["delete", "--ignore-not-found", "--timeout=90s", "-f", &manifests])?;
        kubectl.run(&["delete", "namespace", "--timeout=90s", &namespace])?;
        Ok(seen)
    }

    /// Starts its program with a token of its own service account.
    fn start(
        &self,
        kubectl: &Kubectl,
        folder: &Path,
        log: &Path,
        cloud: Option<&OpenStack>,
    ) -> Result<Child> {
        let kubeconfig = folder.join(format!("{}.kubeconfig", self.name));
        let config = kubectl.config_of(&format!("{}-system", self.account), self.account)?;
        fs::write(&kubeconfig, config.to_string())?;
        let mut command = Command::new(self.program());
        command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
        if let Some(cloud) = cloud {
            command
                .env("OS_AUTH_URL", format!("{}/v3", cloud.url))
                .env("OS_USERNAME", "demo")
                .env("OS_PASSWORD", "secret")
                .env("OS_PROJECT_NAME", "demo");
        }
        let told = File::create(log)?;
        command.stdout(told.try_clone()?).stderr(told).spawn().context("it does not start")
    }
}

/// A program that runs, until this is dropped.
struct Running(Child);

impl Running {
    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// When it does not, or had ended before.
    fn end(&mut self) -> Result<()> {
        if let Some(status) = self.0.try_wait()? {
            bail!("it ended by itself ({status})");
        }
        run(Command::new("kill").args(["-TERM", &self.0.id().to_string()]))?;
        let status = eventually("it ends", || Ok(self.0.try_wait()?))?;
        if status.success() { Ok(()) } else { bail!("it ended with {status}") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
