//! `tests/envtest-go`: what Go operators' suites do, and what an `envtest.Environment` costs, on the programs that answer
//! as kube-apiserver and etcd.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    run::{find, run, target, workspace},
    tools::Tool,
};

/// A folder with programs of these two names.
pub(crate) struct Assets(PathBuf);

impl Assets {
    const NAMES: [&str; 2] = ["kube-apiserver", "etcd"];

    /// Those that are there already.
    ///
    /// # Errors
    /// When one is not.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        for name in Self::NAMES {
            if !folder.join(name).is_file() {
                bail!("there is no {name} in {}", folder.display());
            }
        }
        Ok(Self(folder.to_owned()))
    }

    /// `kubewright-envtest` of a cargo profile's folder under both names.
    ///
    /// # Errors
    /// When it has not been built, or cannot be linked.
    pub(crate) fn link(profile: &str) -> Result<Self> {
        Self::links_to("kubewright-envtest", profile)
    }

    /// `kubewright` of a cargo profile's folder under both names: the same, and the built-in controllers.
    ///
    /// # Errors
    /// As [`Self::link`].
    pub(crate) fn link_with_controllers(profile: &str) -> Result<Self> {
        Self::links_to("kubewright", profile)
    }

    fn links_to(program: &str, profile: &str) -> Result<Self> {
        let path = target().join(profile).join(program);
        let folder = target().join("envtest").join(profile).join(program);
        fs::create_dir_all(&folder)?;
        for name in Self::NAMES {
            let link = folder.join(name);
            let _ = fs::remove_file(&link);
            fs::hard_link(&path, &link).with_context(|| format!("cannot link {}", path.display()))?;
        }
        Ok(Self(folder))
    }

    fn kube_apiserver(&self) -> PathBuf {
        self.0.join(Self::NAMES[0])
    }

    /// Has a program's environments start them.
    fn lend<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let [apiserver, etcd] = Self::NAMES.map(|name| self.0.join(name));
        // What is on for the one who runs this is not on in the suites.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("KUBEWRIGHT_") {
                command.env_remove(name);
            }
        }
        command.env("TEST_ASSET_KUBE_APISERVER", apiserver).env("TEST_ASSET_ETCD", etcd)
    }
}

/// A Go that has all modules of the suites, or the reason why there is none.
pub(crate) fn go() -> Result<PathBuf, String> {
    let go = find("go").ok_or_else(|| "there is no Go".to_owned())?;
    run(module(&go).args(["mod", "download"]))
        .map_err(|error| format!("their modules cannot be downloaded: {error:#}"))?;
    Ok(go)
}

/// Runs the suites on programs that have no controllers, but for what is tested of controllers. Vet has been asked by who
/// wrote them; it would compile everything once more.
///
/// # Errors
/// When one fails.
pub(crate) fn test(go: &Path, assets: &Assets, with_controllers: &Assets) -> Result<()> {
    let mut command = module(go);
    let test = assets.lend(command.args(["test", "-vet=off", "-count=1", "./..."]));
    run(test.env("KUBE_APISERVER_WITH_CONTROLLERS", with_controllers.kube_apiserver()))
}

/// Starts and stops an environment `runs` times; what is told is one row of JSON.
///
/// # Errors
/// When it does not start or stop.
pub(crate) fn start_and_stop(go: &Path, assets: &Assets, runs: u16) -> Result<String> {
    let program = build(go, "startstop")?;
    let mut measure = Command::new(program);
    assets.lend(measure.args(["-runs", &runs.to_string()])).stderr(Stdio::inherit());
    let output = measure.output().context("cannot run startstop")?;
    if !output.status.success() {
        bail!("startstop failed ({})", output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The operator whose bugs can be switched on, built; or why there is none.
pub(crate) fn press() -> Tool {
    let go = go()?;
    build(&go, "press").map_err(|error| format!("the press does not build: {error:#}"))
}

/// Builds a command of the module (`cmd/NAME`); gives where it is.
///
/// # Errors
/// When it does not compile.
pub(crate) fn build(go: &Path, name: &str) -> Result<PathBuf> {
    let program = target().join("envtest").join(name);
    run(module(go).args(["build", "-o"]).arg(&program).arg(format!("./cmd/{name}")))?;
    Ok(program)
}

fn module(go: &Path) -> Command {
    let mut command = Command::new(go);
    command.current_dir(workspace().join("tests/envtest-go")).env("GOWORK", "off");
    command
}
