//! Where the manifests of an operator, its samples and its program are: what is named, or what the layout of a project says.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, anyhow, bail};
use kube::api::DynamicObject;
use kubewright_cluster::KubernetesVersion;

use super::{
    args::OperatorArgs,
    layout::{self, Framework, Start},
    manifests,
    program::{OperatorCommand, PORT},
};
use crate::{
    convert,
    project::{Needed, Project, ProjectArgs, Usage},
};

/// What is tried.
pub(crate) struct Sources {
    pub(crate) needed: Vec<DynamicObject>,
    pub(crate) samples: Vec<DynamicObject>,
    pub(crate) command: OperatorCommand,
    /// Each line says where something was found.
    pub(crate) told: Vec<String>,
    /// A folder or file that stands for the manifests.
    pub(crate) place: String,
}

/// Where samples are: what is named, else those of the project.
///
/// # Errors
/// When nothing is named, and there is no project with samples.
pub(crate) fn sample_places(named: &[PathBuf], flag: &str) -> anyhow::Result<Vec<PathBuf>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let found = layout::samples(Path::new("."));
    found
        .map(|place| vec![place])
        .map_err(|why| anyhow!("samples: {why}: name what is to be read with {flag}"))
}

/// A file of samples.
pub(crate) struct Sample {
    /// The file's name without its extension.
    pub(crate) name: String,
    pub(crate) objects: Vec<DynamicObject>,
}

/// The samples of files and folders, file by file. A file without objects, such as kustomize's own, is none.
///
/// # Errors
/// When something cannot be read, there is none, or two have one name.
pub(crate) fn samples(places: &[PathBuf]) -> anyhow::Result<Vec<Sample>> {
    let mut all: Vec<Sample> = Vec::new();
    for place in places {
        for source in convert::sources(&below(place)?)? {
            let name = Path::new(&source.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let sample =
                Sample { name: name.to_owned(), objects: manifests::of_text(&source.name, source.text)? };
            if sample.objects.is_empty() {
                continue;
            }
            if all.iter().any(|other| other.name == sample.name) {
                bail!("{}: there is another sample {}", source.name, sample.name);
            }
            all.push(sample);
        }
    }
    if all.is_empty() {
        bail!("samples: there is none in {}", shown(places));
    }
    Ok(all)
}

/// Finds all that is not named.
///
/// # Errors
/// When something is neither named nor found, or cannot be read.
pub(crate) fn find(wanted: &OperatorArgs, samples: &[PathBuf]) -> anyhow::Result<Sources> {
    if wanted.program.is_empty() && samples.is_empty() && is_nowhere(&wanted.project) {
        bail!(Usage(layout::unknown()));
    }
    let samples = match sample_places(samples, "--sample") {
        Ok(places) => Ok((read(&places, None)?, format!("samples: {}", shown(&places)))),
        Err(why) => Err(why),
    };
    let Operator { mut needed, command, mut told, place } = operator(wanted)?;
    let (samples, found) = match samples {
        Ok(found) => found,
        Err(why) => {
            let samples = manifests::of_defined_kinds(&needed);
            if samples.is_empty() {
                return Err(why);
            }
            let found = format!("samples: those among the manifests ({})", samples.len());
            (samples, found)
        }
    };
    told.insert(0, found);
    // They are what the operator is asked for, and not there before that.
    needed.retain(|one| !samples.iter().any(|sample| is_same(one, sample)));
    Ok(Sources { needed, samples, command, told, place })
}

/// Whether two objects have one name, in whatever version of their kind. One that says no namespace may be in any.
fn is_same(one: &DynamicObject, other: &DynamicObject) -> bool {
    let kind = |object: &DynamicObject| {
        let types = object.types.as_ref()?;
        let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
        Some((group.to_owned(), types.kind.clone()))
    };
    let namespaces = one.metadata.namespace.as_ref().zip(other.metadata.namespace.as_ref());
    kind(one) == kind(other)
        && one.metadata.name == other.metadata.name
        && namespaces.is_none_or(|(one, other)| one == other)
}

/// Whether somebody names a package of Cargo.
fn is_chosen(project: &ProjectArgs) -> bool {
    project.selection.manifest_path.is_some() || project.selection.package.is_some()
}

/// Whether nobody names a project, and there is none.
fn is_nowhere(project: &ProjectArgs) -> bool {
    !is_chosen(project) && Framework::of(Path::new(".")).is_none()
}

/// What is tried, without what it is given.
pub(crate) struct Operator {
    pub(crate) needed: Vec<DynamicObject>,
    pub(crate) command: OperatorCommand,
    /// Each line says where something was found.
    pub(crate) told: Vec<String>,
    /// A folder or file that stands for the manifests.
    pub(crate) place: String,
}

/// Finds the manifests and the program that are not named.
///
/// # Errors
/// As [`find`].
pub(crate) fn operator(wanted: &OperatorArgs) -> anyhow::Result<Operator> {
    let mut found = placed_by_manifests(wanted)?;
    if let Some(namespace) = &wanted.namespace {
        place(&mut found.needed, namespace);
    }
    Ok(found)
}

/// Puts what says no namespace into this one. (Of what is in none, such as a ClusterRole, the server leaves it out.)
fn place(objects: &mut [DynamicObject], namespace: &str) {
    for one in objects.iter_mut().filter(|one| one.metadata.namespace.is_none()) {
        one.metadata.namespace = Some(namespace.to_owned());
    }
}

/// As [`operator`], with the namespaces that the manifests say.
fn placed_by_manifests(wanted: &OperatorArgs) -> anyhow::Result<Operator> {
    let OperatorArgs { manifests: named, namespace, project, program } = wanted;
    let namespace = namespace.as_deref();
    let here = Path::new(".");
    let framework = if is_chosen(project) { Some(Framework::Kubewright) } else { Framework::of(here) };
    let mut told: Vec<String> = Vec::new();
    if let Some(framework) = framework.filter(|_| program.is_empty() || named.is_empty()) {
        told.push(format!("project: {}", framework.name()));
    }
    if !program.is_empty() {
        let manifests = if named.is_empty() { manifests_beside(framework)? } else { named.clone() };
        let (program, arguments) = program.split_first().context("program: there is none")?;
        return of_files(&manifests, namespace, OperatorCommand::foreign(program, arguments), told);
    }
    let framework = framework.ok_or_else(|| Usage(layout::unknown()))?;
    let start = framework.start(here).map_err(Usage)?;
    let manifests = || match named.as_slice() {
        [] => framework.manifests(here).map_err(Usage),
        named => Ok(named.to_vec()),
    };
    match start {
        Start::Cargo => of_cargo(named, namespace, project, told),
        Start::Crate => {
            let manifests = manifests()?;
            let program = Project::select(&project.selection, Needed::Program)?.build()?;
            let command = OperatorCommand::foreign(&program.path().display().to_string(), &[]);
            of_files(&manifests, namespace, command, told)
        }
        Start::Go(package) => of_files(&manifests()?, namespace, go_program(package)?, told),
        Start::Command(words) => {
            let (program, arguments) = words.split_first().context("program: there is none")?;
            of_files(&manifests()?, namespace, OperatorCommand::foreign(program, arguments), told)
        }
    }
}

/// Where the manifests of a program are that was named.
fn manifests_beside(framework: Option<Framework>) -> anyhow::Result<Vec<PathBuf>> {
    match framework.filter(|framework| *framework != Framework::Kubewright) {
        Some(framework) => Ok(framework.manifests(Path::new(".")).map_err(Usage)?),
        None => Ok(vec![found(&["config/default", "config", "deploy", "manifests"], "--manifests")?]),
    }
}

/// A program, and manifests of files.
fn of_files(
    manifests: &[PathBuf],
    namespace: Option<&str>,
    command: OperatorCommand,
    mut told: Vec<String>,
) -> anyhow::Result<Operator> {
    told.push(format!("manifests: {}", shown(manifests)));
    told.push(format!("program: {}", command.text()));
    let place = manifests.first().map_or_else(String::new, |path| path.display().to_string());
    Ok(Operator { needed: read(manifests, namespace)?, command, told, place })
}

/// The program of a Cargo package, which says itself what it needs.
fn of_cargo(
    named: &[PathBuf],
    namespace: Option<&str>,
    project: &ProjectArgs,
    mut told: Vec<String>,
) -> anyhow::Result<Operator> {
    let program = Project::find(project)?.build()?;
    let says = program.manifests::<&str>(&[])?;
    let command = OperatorCommand::of_project(&program, &says);
    let needed = if named.is_empty() { manifests::objects(says)? } else { read(named, namespace)? };
    told.push(format!("program: {}, of this project", command.text()));
    let place = named.first().map_or_else(|| "Cargo.toml".to_owned(), |path| path.display().to_string());
    Ok(Operator { needed, command, told, place })
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
fn go_program(package: &str) -> anyhow::Result<OperatorCommand> {
    let built = Path::new("bin").join("kubewright-trial-manager");
    let status = Command::new("go").arg("build").arg("-o").arg(&built).arg(package).status();
    let status = status.context("program: go is not to be had: name a built program behind --")?;
    if !status.success() {
        bail!(
            "program: go build {package} failed (what a new project lacks is made by `make generate manifests`)"
        );
    }
    let flags = [
        "--leader-elect=false".to_owned(),
        format!("--health-probe-bind-address=127.0.0.1:{PORT}"),
        "--metrics-bind-address=0".to_owned(),
    ];
    Ok(OperatorCommand::foreign(&format!("./{}", built.display()), &flags))
}

/// The objects of files and folders. A folder of kustomize or a Helm chart is rendered by its tool, a chart for a namespace.
///
/// # Errors
/// When something cannot be read or rendered, or a path has no object.
pub(crate) fn read(paths: &[PathBuf], namespace: Option<&str>) -> anyhow::Result<Vec<DynamicObject>> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(match Tree::of(path) {
            Tree::Kustomize => kustomized(path)?,
            Tree::Helm => {
                // A chart may ask for the version that is served.
                let version = KubernetesVersion::DEFAULT.to_string();
                let mut words =
                    vec!["template", "operator", "--include-crds", "--kube-version", version.as_str()];
                words.extend(namespace.iter().flat_map(|namespace| ["--namespace", namespace]));
                rendered("helm", &words, path)?
            }
            Tree::Plain => {
                let places = below(path)?;
                if places.is_empty() {
                    bail!("{}: there is no .yaml, .yml or .json in it or below", path.display());
                }
                manifests::read(&places)?
            }
        });
    }
    Ok(all)
}

/// How objects stand in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tree {
    Kustomize,
    Helm,
    /// As they are.
    Plain,
}

impl Tree {
    /// By what lies in it.
    fn of(path: &Path) -> Self {
        let has = |name: &str| path.join(name).is_file();
        // The names that kustomize looks for.
        match ["kustomization.yaml", "kustomization.yml", "Kustomization"].into_iter().any(has) {
            true => Self::Kustomize,
            false if has("Chart.yaml") => Self::Helm,
            false => Self::Plain,
        }
    }
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

    #[test]
    fn what_says_no_namespace_is_placed_and_is_still_the_sample_that_says_none() {
        let one = |namespace: &str| {
            let text =
                format!("{{apiVersion: example.org/v1, kind: Page, metadata: {{name: p{namespace}}}}}");
            manifests::of_text("page", text).expect("an object").remove(0)
        };
        let mut placed = [one(""), one(", namespace: other")];
        place(&mut placed, "argo");
        assert_eq!(
            placed.each_ref().map(|one| one.metadata.namespace.as_deref()),
            [Some("argo"), Some("other")]
        );
        assert!(is_same(&placed[0], &one("")) && !is_same(&placed[0], &placed[1]));
    }

    #[test]
    fn a_folder_is_what_lies_in_it_and_one_without_objects_is_named() {
        let root = std::env::temp_dir().join(format!("kubewright-trees-{}", std::process::id()));
        for file in ["a/kustomization.yaml", "b/kustomization.yml", "c/Chart.yaml", "d/x.yaml", "e/readme.md"]
        {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        let trees = ["a", "b", "c", "d", "d/x.yaml"].map(|name| Tree::of(&root.join(name)));
        let nothing = read(&[root.join("e")], None).expect_err("there is no object").to_string();
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(trees, [Tree::Kustomize, Tree::Kustomize, Tree::Helm, Tree::Plain, Tree::Plain]);
        assert!(nothing.contains("/e: there is no .yaml"), "{nothing}");
    }
}
