//! Where the manifests of an operator, its samples and its program are: what is named, or what the layout of a project says.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, anyhow, bail};
use kube::api::DynamicObject;

use crate::{
    project::{Project, ProjectArgs},
    stand::{
        manifests,
        program::{OperatorCommand, PORT},
    },
};

/// What is tried.
pub(super) struct Sources {
    pub(super) needed: Vec<DynamicObject>,
    pub(super) samples: Vec<DynamicObject>,
    pub(super) command: OperatorCommand,
    /// Each line says where something was found.
    pub(super) told: Vec<String>,
    /// A folder or file that stands for the manifests.
    pub(super) place: String,
}

/// The samples of a project.
const SAMPLES: &str = "config/samples";

/// Finds all that is not named.
///
/// # Errors
/// When something is neither named nor found, or cannot be read.
pub(super) fn find(
    named: &[PathBuf],
    samples: &[PathBuf],
    program: &[String],
    project: &ProjectArgs,
) -> anyhow::Result<Sources> {
    let mut told = Vec::new();
    let samples = if samples.is_empty() { vec![found(&[SAMPLES], "--sample")?] } else { samples.to_vec() };
    told.push(format!("samples: {}", shown(&samples)));
    let samples = read(&samples)?;
    if program.is_empty() && !Path::new("go.mod").is_file() {
        let program = Project::find(project)?.build()?;
        let says = program.manifests::<&str>(&[])?;
        let command = OperatorCommand::of_project(&program, &says);
        let needed = if named.is_empty() { manifests::objects(says)? } else { read(named)? };
        told.push(format!("program: {}, of this project", command.text()));
        let place = named.first().map_or_else(|| "Cargo.toml".to_owned(), |path| path.display().to_string());
        return Ok(Sources { needed, samples, command, told, place });
    }
    let named = if named.is_empty() {
        vec![found(&["config/default", "config", "deploy", "manifests"], "--manifests")?]
    } else {
        named.to_vec()
    };
    told.push(format!("manifests: {}", shown(&named)));
    let needed = read(&named)?;
    let command = match program.split_first() {
        Some((program, arguments)) => OperatorCommand::foreign(program, arguments),
        None => go_program()?,
    };
    told.push(format!("program: {}", command.text()));
    let place = named[0].display().to_string();
    Ok(Sources { needed, samples, command, told, place })
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn found(places: &[&str], flag: &str) -> anyhow::Result<PathBuf> {
    let found = places.iter().map(PathBuf::from).find(|path| path.is_dir());
    found.ok_or_else(|| {
        anyhow!("there is no {} here: name what is to be read with {flag}", places.join(", no "))
    })
}

/// Builds the manager of a kubebuilder or Operator SDK project of Go.
fn go_program() -> anyhow::Result<OperatorCommand> {
    let package = ["./cmd", "."].into_iter().find(|folder| Path::new(folder).join("main.go").is_file());
    let package =
        package.context("program: there is no cmd/main.go and no main.go here: name it behind --")?;
    let built = Path::new("bin").join("kubewright-trial-manager");
    let status = Command::new("go").arg("build").arg("-o").arg(&built).arg(package).status();
    let status = status.context("program: go is not to be had: name a built program behind --")?;
    if !status.success() {
        bail!("program: go build {package} failed");
    }
    let flags = [
        "--leader-elect=false".to_owned(),
        format!("--health-probe-bind-address=127.0.0.1:{PORT}"),
        "--metrics-bind-address=0".to_owned(),
    ];
    Ok(OperatorCommand::foreign(&format!("./{}", built.display()), &flags))
}

/// The objects of files and folders. A folder of kustomize or a Helm chart is rendered by its tool.
fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<DynamicObject>> {
    let mut all = Vec::new();
    for path in paths {
        if path.join("kustomization.yaml").is_file() {
            all.extend(kustomized(path)?);
        } else if path.join("Chart.yaml").is_file() {
            all.extend(rendered("helm", &["template", "operator"], path)?);
        } else {
            all.extend(manifests::read(&below(path)?)?);
        }
    }
    Ok(all)
}

/// The folder itself where it has manifests, and those below it that have some, but not samples.
fn below(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut folders = Vec::new();
    let mut has_files = false;
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        let entry = entry?.path();
        if entry.is_dir() {
            if entry.file_name().is_some_and(|name| name != "samples") {
                folders.push(entry);
            }
        } else if entry
            .extension()
            .is_some_and(|one| ["yaml", "yml", "json"].iter().any(|known| one == *known))
        {
            has_files = true;
        }
    }
    folders.sort();
    let mut all = if has_files { vec![path.to_owned()] } else { Vec::new() };
    for folder in folders {
        all.extend(below(&folder)?);
    }
    Ok(all)
}

fn kustomized(path: &Path) -> anyhow::Result<Vec<DynamicObject>> {
    rendered("kustomize", &["build"], path).or_else(|_| rendered("kubectl", &["kustomize"], path))
}

/// What a tool writes for a folder.
fn rendered(tool: &str, words: &[&str], path: &Path) -> anyhow::Result<Vec<DynamicObject>> {
    let output = Command::new(tool).args(words).arg(path).output();
    let output = output.with_context(|| format!("{}: {tool} is not to be had", path.display()))?;
    if !output.status.success() {
        bail!("{}: {tool}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout).with_context(|| format!("{}: {tool}", path.display()))?;
    manifests::of_text(&format!("{} ({tool})", path.display()), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_below_are_read_and_samples_are_not() {
        let root = std::env::temp_dir().join(format!("kubewright-sources-{}", std::process::id()));
        for file in ["crd/a.yaml", "rbac/deep/b.yml", "samples/c.yaml", "empty/readme.md"] {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        let found = below(&root).expect("folders");
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(&root).expect("below").display().to_string()).collect();
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(names, ["crd", "rbac/deep"]);
    }
}
