//! What this machine lets its user keep apart.

use std::fs;
use std::io;
use std::path::Path;

use super::mapping;
use super::shim::Shim;
use crate::container::Isolation;
use crate::container::wire::{Mapping, Order, Probed, Report, Word};
use crate::files;

/// What a runtime can do.
#[derive(Debug)]
pub(super) struct RuntimeFeatures {
    pub(super) namespaces: crate::container::wire::Namespaces,
    pub(super) any_user: bool,
    missing: Vec<String>,
}

/// Tries it out in `directory`, which is made and removed.
///
/// # Errors
/// The launcher does not start, or is not one.
pub(super) async fn run(launcher: &Path, directory: &Path) -> io::Result<RuntimeFeatures> {
    let mut probed = Probed::default();
    let mut same = mapping::is_root();
    if same {
        probed = attempt(launcher, directory, Mapping::Same).await?;
        same = probed.namespaces.user;
    }
    if !same {
        // Who is root only in a namespace of somebody else's may not be able to map others.
        let single = Mapping::Single { uid: 0, gid: 0 };
        probed = attempt(launcher, directory, single).await?;
    }
    let any_user = mapping::may_become_any(probed.namespaces, same);
    Ok(RuntimeFeatures { namespaces: probed.namespaces, any_user, missing: probed.missing })
}

async fn attempt(launcher: &Path, directory: &Path, mapping: Mapping) -> io::Result<Probed> {
    fs::create_dir_all(directory)?;
    let outcome = ask(launcher, directory, mapping).await;
    // What cannot be removed stays until the next runtime tries.
    let _ = files::remove(directory);
    outcome
}

async fn ask(launcher: &Path, directory: &Path, mapping: Mapping) -> io::Result<Probed> {
    let order = Order::Probe { directory: directory.to_owned(), mapping };
    let shim = Shim::start(launcher, &order, &[]).await?;
    let probed = loop {
        match shim.receive().await? {
            Some((Report::Separate, _)) => {
                // Where that fails the shim, who is told nothing, says so.
                if let Some(process) = shim.process()
                    && mapping::write(process).is_ok()
                {
                    shim.say(Word::Mapped).await;
                } else {
                    shim.say(Word::Signal(0)).await;
                }
            }
            Some((Report::Probed(probed), _)) => break probed,
            Some((Report::Failed(failure), _)) => {
                break Probed { missing: vec![failure.0], ..Probed::default() };
            }
            _ => {
                let text = format!("{} is no launcher of containers", launcher.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
    };
    shim.end().await;
    Ok(probed)
}

impl RuntimeFeatures {
    /// The same for a person.
    pub(super) fn isolation(&self) -> Isolation {
        let found = self.namespaces;
        let names = [
            ("user", found.user),
            ("mount", found.mount),
            ("pid", found.pid),
            ("uts", found.uts),
            ("ipc", found.ipc),
        ];
        let namespaces = names.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
        Isolation { namespaces, missing: self.missing.clone() }
    }
}
