//! What happens in a suite's API server, in a file: where the variable, or the flag, says.

use std::{
    env,
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::Context;
use kubewright_control_plane::{
    ControlPlane,
    recording::{self, Recorder, place},
};
use kubewright_recording::Header;
use kubewright_world::World;

use super::{flags::Flags, say};

/// The flag of the same meaning; it goes before the variable.
const FLAG: &str = "kubewright-record";

/// The file of a recording that has not begun.
pub(super) struct Target {
    file: File,
    path: PathBuf,
}

impl Target {
    /// A new file where the flag or the variable says; none where neither says anything.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn read(flags: &Flags, world: &World, port: u16) -> anyhow::Result<Option<Self>> {
        let variable = env::var_os(place::VARIABLE);
        let Some((source, said)) = said(flags.last(FLAG), variable) else { return Ok(None) };
        let made = place::create(Path::new(&said), world.clock.now(), std::process::id(), port);
        let (file, path) = made.with_context(|| format!("{source}: {}", said.display()))?;
        Ok(Some(Self { file, path }))
    }

    /// Records from the first object on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn record(self, control_plane: &ControlPlane, is_paced: bool) -> anyhow::Result<Recorder> {
        let Self { file, path } = self;
        let failed = || format!("the recording {} cannot be written", path.display());
        let redactor = recording::redactor(true, Vec::new()).with_context(failed)?;
        let address = control_plane.address();
        let header = Header {
            program: format!("kube-apiserver of kubewright {}", env!("CARGO_PKG_VERSION")),
            server: address.map(|address| format!("https://{address}")).unwrap_or_default(),
            started: Some(control_plane.world().clock.now()),
            kubernetes: control_plane.kubernetes_version().to_string(),
            redacted: redactor.names(),
            ..Header::default()
        };
        let recorder = Recorder::start(file, &header, redactor, control_plane, is_paced);
        let recorder = recorder.with_context(failed)?;
        say(&format!("kubewright records into {}; kubewright view shows it", path.display()));
        Ok(recorder)
    }
}

/// Who says where, and what.
fn said(flag: Option<&str>, variable: Option<OsString>) -> Option<(String, OsString)> {
    let flag = flag.map(|value| (format!("--{FLAG}"), OsString::from(value)));
    let said = flag.or_else(|| variable.map(|value| (place::VARIABLE.to_owned(), value)));
    said.filter(|(_, value)| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_variable_and_an_empty_one_records_nothing() {
        let value =
            |flag, variable: Option<&str>| said(flag, variable.map(OsString::from)).map(|(_, value)| value);
        assert_eq!(value(None, None), None);
        assert_eq!(value(None, Some("")), None);
        assert_eq!(value(None, Some("a")), Some("a".into()));
        assert_eq!(value(Some("b"), Some("a")), Some("b".into()));
        assert_eq!(value(Some(""), Some("a")), None);
    }
}
