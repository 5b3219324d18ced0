//! What is switched on by environment variables, because a suite's author can set those without changing the suite. A flag
//! of the same meaning goes before.

use std::{
    env::{self, VarError},
    fmt,
};

use anyhow::{Context, anyhow, bail};

use kubewright_control_plane::{Builder, ControlPlane, StartError};

use super::{Controllers, flags::Flags};

/// Which built-in controllers run, and on how many simulated nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// As `kubewright up --controllers` takes it. None of them by default.
    controllers: String,
    /// The variable or the flag that says so.
    source: String,
    nodes: usize,
}

impl Settings {
    /// # Errors
    /// When they ask for controllers, and this program has none.
    pub(super) fn check(&self, controllers: Option<Controllers>) -> anyhow::Result<()> {
        if controllers.is_none() && !self.controllers.is_empty() {
            bail!(
                "{}: this program has no controllers; `kubewright`, called by the same name, has them \
                 (kubewright envtest env)",
                self.source
            );
        }
        Ok(())
    }

    /// Starts the control plane that they describe.
    ///
    /// # Errors
    /// When it does not start, with the name of the setting that is to blame.
    pub(super) async fn start(
        &self,
        builder: Builder,
        controllers: Option<Controllers>,
    ) -> anyhow::Result<ControlPlane> {
        let started = match controllers {
            Some(start) => start(builder, self.controllers.clone(), self.nodes).await,
            None => builder.start().await,
        };
        started.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: StartError) -> anyhow::Error {
        match error {
            StartError::Controllers(error) => anyhow!("{}: {error}", self.source),
            error => error.into(),
        }
    }

    /// # Errors
    /// When a value is none that the variable can have.
    pub(super) fn read(flags: &Flags) -> anyhow::Result<Self> {
        Self::of(flags, |name| match env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(VarError::NotPresent) => Ok(None),
            Err(error) => Err(error).with_context(|| name.to_owned()),
        })
    }

    fn of(flags: &Flags, variable: impl Fn(&str) -> anyhow::Result<Option<String>>) -> anyhow::Result<Self> {
        let setting = |flag: &str, name: &str| match flags.last(flag) {
            Some(value) => Ok(Some((format!("--{flag}"), value.to_owned()))),
            None => variable(name).map(|value| value.map(|value| (name.to_owned(), value))),
        };
        let controllers = setting("kubewright-controllers", "KUBEWRIGHT_CONTROLLERS")?;
        let nodes = match setting("kubewright-nodes", "KUBEWRIGHT_NODES")? {
            None => 0,
            Some((_, value)) if value.is_empty() => 0,
            Some((name, value)) => match value.parse() {
                Ok(nodes @ 0..=10000) => nodes,
                _ => bail!("{name}: {value:?} is no number from 0 to 10000"),
            },
        };
        let (source, controllers) = controllers.unwrap_or_default();
        Ok(Self { controllers, source, nodes })
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.controllers.as_str(), self.nodes) {
            ("", _) => f.write_str("without controllers"),
            (controllers, 0) => write!(f, "with the controllers {controllers}"),
            (controllers, nodes) => {
                write!(f, "with the controllers {controllers} and {nodes} simulated nodes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;
    use crate::flags::KUBE_APISERVER;

    fn settings(line: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let flags = Flags::parse(&KUBE_APISERVER, line.split_whitespace().map(Into::into)).expect("flags");
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            match found {
                Some((_, "unreadable")) => bail!("{name}: unreadable"),
                found => Ok(found.map(|(_, value)| (*value).to_owned())),
            }
        };
        Settings::of(&flags, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_runs_unless_it_is_asked_for() {
        assert_eq!(settings("", &[]).expect("settings").to_string(), "without controllers");
    }

    #[test]
    fn controllers_and_nodes_are_switched_on_by_variables_and_flags_go_before_them() {
        let variables = [("KUBEWRIGHT_CONTROLLERS", "garbagecollector,namespace"), ("KUBEWRIGHT_NODES", "2")];
        let described = |line: &str| settings(line, &variables).expect("settings").to_string();
        assert_eq!(described(""), "with the controllers garbagecollector,namespace and 2 simulated nodes");
        assert_eq!(described("--kubewright-controllers=* --kubewright-nodes 0"), "with the controllers *");
        assert_eq!(described("--kubewright-controllers="), "without controllers");
    }

    #[test]
    fn a_program_without_controllers_refuses_to_run_some() {
        let refused = |line: &str| {
            let checked = settings(line, &[]).expect("settings").check(None);
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(refused(""), None);
        assert_eq!(refused("--kubewright-controllers= --kubewright-nodes=1"), None);
        let told = refused("--kubewright-controllers=*").expect("it has none");
        assert!(told.starts_with("--kubewright-controllers: this program has no controllers"), "{told}");
    }

    #[test]
    fn a_bad_value_is_told_with_its_name() {
        assert_eq!(
            settings("", &[("KUBEWRIGHT_NODES", "many")]),
            Err(r#"KUBEWRIGHT_NODES: "many" is no number from 0 to 10000"#.to_owned())
        );
        assert_eq!(
            settings("--kubewright-nodes=10001", &[]),
            Err(r#"--kubewright-nodes: "10001" is no number from 0 to 10000"#.to_owned())
        );
        assert!(settings("", &[("KUBEWRIGHT_CONTROLLERS", "unreadable")]).is_err());
    }
}
