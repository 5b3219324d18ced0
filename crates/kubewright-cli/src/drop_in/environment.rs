//! What is switched on by environment variables, because a suite's author can set those without changing the suite. A flag
//! of the same meaning goes before.

use std::env::{self, VarError};

use anyhow::{Context, bail};

use super::flags::Flags;

/// Which built-in controllers run, and on how many simulated nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// As `kubewright up --controllers` takes it. None of them by default.
    pub(super) controllers: String,
    pub(super) nodes: usize,
}

impl Settings {
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
                Ok(nodes @ 0..=1000) => nodes,
                _ => bail!("{name}: {value:?} is no number from 0 to 1000"),
            },
        };
        Ok(Self { controllers: controllers.map(|(_, value)| value).unwrap_or_default(), nodes })
    }
}
