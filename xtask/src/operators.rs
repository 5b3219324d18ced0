//! `cargo xtask operators`: every operator as a program beside a real Kubernetes, and what became of its sample, as
//! `docs/real-kubernetes.md`.

mod cloud;
mod crowd;
mod figures;
mod program;
mod proof;

use std::{fmt::Write as _, path::PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use self::{
    crowd::Crowd,
    program::{Place, cloud_at, shown},
    proof::Seen,
};
pub(crate) use self::{
    figures::{Options as Figures, figures},
    proof::Proof,
};
use crate::{
    kubectl::Kubectl,
    openstack::OpenStack,
    page,
    run::{cargo, run, target, workspace},
};

const TITLE: &str = "The operators";

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
    crowd: Crowd,
}

const OPERATORS: [Operator; 7] = [
    Operator {
        name: "whitelist",
        program: "whitelist",
        account: "whitelist",
        sample: "sample_v1beta1_whitelist.yaml",
        proof: Proof::Heals(&[("deployments", 1)]),
        crowd: Crowd {
            what: "WhiteLists",
            resource: "whitelists.sample.foo.bar",
            condition: "Available",
            begins_with_the_sample: false,
            object: crowd::whitelist,
        },
    },
    Operator {
        name: "image-police",
        program: "image-police",
        account: "image-police",
        sample: "police_v1beta1_whitelist.yaml",
        proof: Proof::Judges,
        crowd: Crowd {
            what: "Deployments under one list",
            resource: "deployments",
            condition: "Available",
            begins_with_the_sample: true,
            object: crowd::judged,
        },
    },
    Operator {
        name: "at",
        program: "at",
        account: "at",
        sample: "cnat_v1alpha1_at.yaml",
        proof: Proof::Once { child: "pods", prompt: None, says: "Succeeded" },
        crowd: Crowd {
            what: "Ats",
            resource: "ats.cnat.study.jayground8",
            condition: "Succeeded",
            begins_with_the_sample: false,
            object: crowd::at,
        },
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
        crowd: Crowd {
            what: "CronTabs, a Job each",
            resource: "crontabs",
            condition: "Scheduled",
            begins_with_the_sample: false,
            object: crowd::crontab,
        },
    },
    Operator {
        name: "app-service",
        program: "app-service",
        account: "app-service",
        sample: "app_v1alpha1_appservice.yaml",
        proof: Proof::Heals(&[("pods", 3)]),
        crowd: Crowd {
            what: "AppServices, a pod each",
            resource: "appservices",
            condition: "Ready",
            begins_with_the_sample: false,
            object: crowd::app_service,
        },
    },
    Operator {
        name: "memcached",
        program: "memcached-operator",
        account: "memcached",
        sample: "cache_v1alpha1_memcached.yaml",
        proof: Proof::Heals(&[("deployments", 1), ("services", 1), ("poddisruptionbudgets", 1)]),
        crowd: Crowd {
            what: "Memcacheds, a pod each",
            resource: "memcacheds",
            condition: "Available",
            begins_with_the_sample: false,
            object: crowd::memcached,
        },
    },
    Operator {
        name: "security-group",
        program: "security-group",
        account: "openstack-sg-controller",
        sample: "openstack_v1beta1_securitygroup.yaml",
        proof: Proof::Says("Ready"),
        crowd: Crowd {
            what: "SecurityGroups, a server each",
            resource: "securitygroups",
            condition: "Ready",
            begins_with_the_sample: false,
            object: crowd::security_group,
        },
    },
];

/// Runs them, one after the other, and writes the page.
///
/// # Errors
/// When one does not do what it promises.
pub(crate) fn operators(options: &Options) -> Result<()> {
    let chosen = chosen(&options.names);
    let mut build = cargo(["build", "--bins"]);
    chosen.iter().for_each(|one| {
        build.arg(format!("-pkubewright-{}", one.name));
    });
    run(&mut build)?;
    let openstack = options.openstack.then(OpenStack::start).transpose().map_err(anyhow::Error::msg)?;
    let place = Place::new(target().join("debug"), target().join("operators"))?;
    let kubectl = Kubectl::new(&options.kubeconfig)?;
    let mut table = format!(
        "`cargo xtask operators --kubeconfig ...{}` wrote this on {} with Kubewright {} and Kubernetes {}.\n\n",
        if options.openstack { " --openstack" } else { "" },
        kubectl.today()?,
        env!("CARGO_PKG_VERSION"),
        kubectl.version()?,
    );
    table += "| operator | its sample | what was made is deleted | the sample is deleted | requests refused |\n|---|---|---|---|---|\n";
    for one in chosen {
        let seen = one.show(&kubectl, &place, openstack.as_ref()).with_context(|| one.name.to_owned())?;
        let line = format!(
            "| [{0}](../operators/{0}) | {1} | {2} | {3} | {4} |",
            one.name, seen.made, seen.deleted, seen.gone, seen.refused
        );
        eprintln!("{line}");
        writeln!(table, "{line}")?;
    }
    table += TAIL;
    match options.names.is_empty() {
        true => page::write(TITLE, &table),
        false => Ok(()),
    }
}

/// Those of these names, or all.
fn chosen(names: &[String]) -> Vec<&'static Operator> {
    OPERATORS.iter().filter(|one| names.is_empty() || names.iter().any(|name| *name == one.name)).collect()
}

impl Operator {
    /// Installs it, runs it, has it show what it promises, and takes everything away again.
    fn show(&self, kubectl: &Kubectl, place: &Place, openstack: Option<&OpenStack>) -> Result<Seen> {
        let namespace = format!("kubewright-{}", self.name);
        kubectl.run(&["create", "namespace", &namespace])?;
        let manifests = self.install(kubectl, place)?;

        let variables = openstack.map(|cloud| cloud_at(&cloud.url)).unwrap_or_default();
        let mut running = self.start(kubectl, place, &[], &variables)?;
        let (inside, sample) = (kubectl.inside(&namespace), shown(&self.sample()));
        let mut seen = match openstack.filter(|_| self.needs_a_cloud()) {
            Some(openstack) => cloud::show(openstack, &inside, place, &sample)?,
            None => self.proof.show(&inside, &sample)?,
        };
        running.end()?;
        seen.refused = running.log()?.lines().filter(|line| line.contains("is forbidden")).count();

        kubectl.run(&["delete", "--ignore-not-found", "--timeout=90s", "-f", &manifests])?;
        kubectl.run(&["delete", "namespace", "--timeout=90s", &namespace])?;
        Ok(seen)
    }

    fn needs_a_cloud(&self) -> bool {
        self.name == "security-group"
    }

    fn sample(&self) -> PathBuf {
        workspace().join("operators").join(self.name).join("config/samples").join(self.sample)
    }
}
