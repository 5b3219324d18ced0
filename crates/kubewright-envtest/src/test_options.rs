//! What of a cluster is in a test's hand: its clock, and the paths under `/kubewright`.

use std::env::{self, VarError};
use std::io;

use anyhow::{Context, anyhow, bail};
use kubewright_control_plane::Builder;
use kubewright_world::Pacing;
use tokio::runtime::Runtime;

use super::flags::{Flags, switch};

/// A setting that was made: by which name, and its value.
type Setting = Option<(String, String)>;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TestOptions {
    admin: bool,
    clock: Option<Pacing>,
}

impl TestOptions {
    /// # Errors
    /// When a value is none that its variable or its flag can have.
    pub(super) fn read(flags: &Flags) -> anyhow::Result<Self> {
        Self::of(|flag, name| match (flags.last(flag), env::var(name)) {
            (Some(value), _) => Ok(Some((format!("--{flag}"), value.to_owned()))),
            (None, Ok(value)) => Ok(Some((name.to_owned(), value))),
            (None, Err(VarError::NotPresent)) => Ok(None),
            (None, Err(error)) => Err(error).with_context(|| name.to_owned()),
        })
    }

    /// Reads it by `setting`, which takes the name of a flag and that of a variable.
    fn of(setting: impl Fn(&str, &str) -> anyhow::Result<Setting>) -> anyhow::Result<Self> {
        let admin = match setting("kubewright-admin", "KUBEWRIGHT_ADMIN")? {
            None => false,
            Some((_, value)) if value.is_empty() => false,
            Some((name, value)) => match switch(&value) {
                Some(on) => on,
                None => bail!("{name}: {value:?} is neither 1 nor 0"),
            },
        };
        let clock = match setting("kubewright-clock", "KUBEWRIGHT_CLOCK")? {
            Some((name, value)) if !value.is_empty() => {
                Some(value.parse().map_err(|why| anyhow!("{name}: {why}"))?)
            }
            _ => None,
        };
        Ok(Self { admin, clock })
    }

    /// Whether time passes as the test says.
    pub(super) fn is_paced(self) -> bool {
        self.clock.is_some()
    }

    pub(super) fn configure(self, builder: Builder) -> Builder {
        let builder = builder.admin(self.admin);
        match self.clock {
            Some(pacing) => builder.pacing(pacing),
            None => builder,
        }
    }

    /// The runtime that the clock needs; the `usual` one, where there is no clock of its own.
    pub(super) fn runtime(self, usual: impl FnOnce() -> io::Result<Runtime>) -> io::Result<Runtime> {
        if self.clock.is_some() { Pacing::runtime() } else { usual() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(admin: Option<&str>, clock: Option<&str>) -> Result<TestOptions, String> {
        let setting = |flag: &str, name: &str| {
            let value = if flag == "kubewright-admin" { admin } else { clock };
            Ok(value.map(|value| (name.to_owned(), value.to_owned())))
        };
        TestOptions::of(setting).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_in_hand_unless_it_is_asked_for() {
        for off in [None, Some(""), Some("0"), Some("false")] {
            assert_eq!(options(off, None), Ok(TestOptions::default()));
        }
        assert_eq!(options(None, Some("")), Ok(TestOptions::default()));
        for on in ["1", "true"] {
            assert_eq!(options(Some(on), None), Ok(TestOptions { admin: true, clock: None }));
        }
    }

    #[test]
    fn a_clock_is_a_start_and_a_speed() {
        let clock = "2030-01-01T00:00:00Z,speed=0";
        let expected = TestOptions { admin: false, clock: Some(clock.parse().expect("a pacing")) };
        assert_eq!(options(None, Some(clock)), Ok(expected));
    }

    #[test]
    fn a_bad_value_is_told_with_its_name() {
        let refused = options(Some("yes"), None).expect_err("refused");
        assert_eq!(refused, "KUBEWRIGHT_ADMIN: \"yes\" is neither 1 nor 0");
        let refused = options(None, Some("soon")).expect_err("refused");
        assert!(refused.starts_with("KUBEWRIGHT_CLOCK: \"soon\" is no time"), "{refused}");
    }
}
