//! `bindings/*`: what brings Kubewright to tests in other languages, each with tests in its own way.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::{
    run::{cargo, find, run, target, workspace},
    tools,
};

/// A language, and how its tests are run on a program.
struct Binding {
    language: &'static str,
    folder: &'static str,
    /// What has to be on the machine.
    tools: &'static [&'static str],
    test: fn(&Path, &Path) -> Result<()>,
}

const BINDINGS: [Binding; 4] = [
    Binding { language: "Go", folder: "go", tools: &["go"], test: go },
    Binding { language: "Java", folder: "java", tools: &["java", "mvn"], test: java },
    Binding { language: "Node", folder: "node", tools: &["node", "npm"], test: node },
    Binding { language: "Python", folder: "python", tools: &["python3"], test: python },
];

/// Builds the command and runs the tests of each language that is here.
///
/// # Errors
/// When some fail.
pub(crate) fn bindings() -> Result<()> {
    // As `cargo test --workspace` builds it.
    run(&mut cargo(["test", "--workspace", "--no-run", "--test", "command"]))?;
    let mut remarks = Vec::new();
    let passed = test(&mut remarks);
    for line in remarks {
        eprintln!("== {line}");
    }
    ensure!(passed, "some tests failed");
    Ok(())
}

/// Runs the tests of each language that is here, on the debug build; tells what became of each, and gives whether none failed.
pub(crate) fn test(remarks: &mut Vec<String>) -> bool {
    let program = target().join("debug/kubewright");
    let mut passed = true;
    for binding in &BINDINGS {
        let what = format!("the tests of the {} binding", binding.language);
        if let Some(missing) = binding.tools.iter().find(|tool| find(tool).is_none()) {
            remarks.push(format!("{what} DID NOT RUN: there is no {missing}"));
            continue;
        }
        let folder = workspace().join("bindings").join(binding.folder);
        let result = (binding.test)(&folder, &program);
        passed &= result.is_ok();
        remarks.push(match result {
            Ok(()) => format!("{what} passed"),
            Err(error) => format!("{what} FAILED: {error:#}"),
        });
    }
    passed
}

fn go(folder: &Path, program: &Path) -> Result<()> {
    run(on(program, folder, "go").args(["test", "-count=1", "./..."]))
}

fn java(folder: &Path, program: &Path) -> Result<()> {
    run(on(program, folder, "mvn").args(["--batch-mode", "--quiet", "test"]))
}

/// In a copy: npm installs beside the sources.
fn node(folder: &Path, program: &Path) -> Result<()> {
    let copy = tools::tools().join("bindings/node");
    copy_files(folder, &copy)?;
    // Not `ci`: the packages of platforms are in no registry before a release.
    run(on(program, &copy, "npm").args(["install", "--no-save", "--no-audit", "--no-fund"]))?;
    run(on(program, &copy, "npm").arg("test"))
}

fn python(folder: &Path, program: &Path) -> Result<()> {
    let inside = python_environment()?;
    run(on(program, folder, &inside).args(["-m", "pip", "install", "--quiet", ".[test]"]))?;
    run(on(program, folder, &inside).args(["-m", "pytest", "-p", "no:cacheprovider", "tests"]))
}

/// The Python of an environment of its own, which has pip.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn python_environment() -> Result<PathBuf> {
    let environment = tools::tools().join("bindings/python");
    let inside = environment.join("bin/python3");
    if !inside.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    Ok(inside)
}

/// A command in a folder, for which `kubewright` is this program.
fn on(program: &Path, folder: &Path, tool: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(folder).env("KUBEWRIGHT", program).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Copies what is new of a folder, and leaves what else is there.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let entries: Vec<PathBuf> = fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    for path in entries {
        let Some(name) = path.file_name().filter(|name| *name != "node_modules") else { continue };
        match path.is_dir() {
            true => copy_files(&path, &to.join(name))?,
            false => drop(fs::copy(&path, to.join(name))?),
        }
    }
    Ok(())
}
