//! Which of the built-in controllers run on the API server of somebody else.

use anyhow::{anyhow, bail};
use kubewright_controllers::{Builtin, Setup, all, select};

use super::{ControllersArgs, names};

const SCHEDULER: &str = "scheduler";
const NODES: &str = "simulated-nodes";

/// What runs, as the programs that it stands for.
#[derive(Debug)]
pub(super) struct Selected {
    /// kube-controller-manager's.
    controllers: Vec<&'static Builtin>,
    scheduler: Option<&'static Builtin>,
    nodes: Option<&'static Builtin>,
    /// Those that were asked for by their name.
    named: Vec<&'static str>,
    how_many_nodes: usize,
    all_nodes: bool,
}

/// What shares caches, and a lease.
pub(super) struct Group {
    pub(super) controllers: Vec<&'static Builtin>,
    /// The name of the lease in `kube-system`: those that the real programs take, so that they stand by.
    pub(super) lease: &'static str,
    /// Whether it is about all nodes, simulated or not.
    everywhere: bool,
}

impl Group {
    /// What its controllers are told.
    pub(super) fn setup(&self, setup: &Setup) -> Setup {
        // The scheduler leaves pods alone while there are no simulated nodes, where none were asked for.
        let nodes = if self.everywhere { setup.nodes.max(1) } else { setup.nodes };
        Setup { nodes, ..setup.clone() }
    }
}

impl Selected {
    /// What the command line says. `*` does not stand for the scheduler and the simulated nodes: on somebody else's cluster they
    /// are asked for.
    ///
    /// # Errors
    /// When a name is unknown, or nothing is left.
    pub(super) fn of(args: &ControllersArgs) -> anyhow::Result<Self> {
        let list = select(&args.controllers).map_err(|unknown| anyhow!("--controllers: {unknown}"))?;
        let only = |name: &str| select(name).ok().and_then(|found| found.first().copied());
        let words: Vec<_> = args.controllers.split(',').map(str::trim).collect();
        let named: Vec<_> = all()
            .iter()
            .filter(|builtin| {
                words.iter().any(|word| *word == builtin.name || builtin.aliases.contains(word))
            })
            .map(|builtin| builtin.name)
            .collect();
        let asked = |name: &'static str, by_flag: bool| {
            (by_flag || named.contains(&name)).then(|| only(name)).flatten()
        };
        let selected = Self {
            controllers: list.into_iter().filter(|builtin| builtin.is_of_controller_manager()).collect(),
            scheduler: asked(SCHEDULER, args.scheduler),
            nodes: asked(NODES, args.nodes.is_some_and(|nodes| nodes > 0) || args.manage_all_nodes),
            named,
            how_many_nodes: args.simulated(),
            all_nodes: args.manage_all_nodes,
        };
        if selected.all().is_empty() {
            bail!("nothing is to run: name --controllers, --scheduler or --nodes");
        }
        Ok(selected)
    }

    /// The same without those for which a file is missing, each with the flag that names it.
    ///
    /// # Errors
    /// When one of them was asked for by its name.
    pub(super) fn without(mut self, missing: &[(&'static str, &'static str)]) -> anyhow::Result<Self> {
        if let Some((name, flag)) = missing.iter().find(|(name, _)| self.named.contains(name)) {
            bail!("the {name} needs {flag}");
        }
        self.controllers.retain(|builtin| !missing.iter().any(|(name, _)| *name == builtin.name));
        Ok(self)
    }

    /// The same without those that are not wanted.
    pub(super) fn only_with(mut self, wanted: impl Fn(&Builtin) -> bool) -> Self {
        self.controllers.retain(|builtin| wanted(builtin));
        self
    }

    /// All that run.
    pub(super) fn all(&self) -> Vec<&'static Builtin> {
        self.controllers.iter().copied().chain(self.scheduler).chain(self.nodes).collect()
    }

    /// As the real programs divide it.
    pub(super) fn groups(&self) -> [Group; 3] {
        let group = |controllers, lease, everywhere| Group { controllers, lease, everywhere };
        [
            group(self.controllers.clone(), "kube-controller-manager", false),
            group(self.scheduler.into_iter().collect(), "kube-scheduler", true),
            group(self.nodes.into_iter().collect(), "kubewright-simulated-nodes", false),
        ]
    }

    /// What runs, in a few words.
    pub(super) fn describe(&self) -> String {
        let mut parts = Vec::new();
        match self.controllers.len() {
            0 => {}
            few @ 1..=3 => parts.push(names(&self.controllers[..few])),
            many => parts.push(format!("{many} controllers")),
        }
        if self.scheduler.is_some() {
            parts.push("the scheduler".to_owned());
        }
        if self.nodes.is_some() {
            parts.push(match (self.how_many_nodes, self.all_nodes) {
                (0, _) => "the simulation of nodes".to_owned(),
                (nodes, false) => format!("{nodes} simulated nodes"),
                (nodes, true) => format!("{nodes} simulated nodes and the simulation of all others"),
            });
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn selected(line: &str) -> Result<Selected, String> {
        let command = ControllersArgs::augment_args(clap::Command::new("controllers"));
        let words = ["controllers"].into_iter().chain(line.split_whitespace());
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let args = ControllersArgs::from_arg_matches(&matches).expect("arguments");
        Selected::of(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn a_star_is_what_kube_controller_manager_runs_and_no_more() {
        let chosen = selected("").expect("all");
        assert!(chosen.controllers.len() > 30 && chosen.scheduler.is_none() && chosen.nodes.is_none());
        assert!(!chosen.controllers.iter().any(|builtin| [SCHEDULER, NODES].contains(&builtin.name)));
        let chosen = selected("--scheduler --nodes 2").expect("more");
        assert!(chosen.scheduler.is_some() && chosen.nodes.is_some());
        assert!(
            chosen.describe().ends_with(" controllers, the scheduler, 2 simulated nodes"),
            "{}",
            chosen.describe()
        );
        let few = selected("--controllers deployment,scheduler").expect("two");
        assert_eq!(few.describe(), "deployment-controller, the scheduler");
        assert!(selected("--controllers=").expect_err("none").contains("nothing is to run"));
        assert!(
            selected("--controllers *,-deploymnt").expect_err("a typo").contains("there is no controller")
        );
    }

    #[test]
    fn who_names_a_controller_is_told_which_file_it_needs() {
        let missing = [("certificatesigningrequest-signing-controller", "--cluster-signing-cert-file")];
        let all = selected("").expect("all");
        let before = all.controllers.len();
        assert_eq!(all.without(&missing).expect("the others").controllers.len(), before - 1);
        let refused =
            selected("--controllers csrsigning").expect("one").without(&missing).expect_err("no file");
        assert_eq!(
            refused.to_string(),
            "the certificatesigningrequest-signing-controller needs --cluster-signing-cert-file"
        );
    }
}
