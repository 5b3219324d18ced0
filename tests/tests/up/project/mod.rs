//! The commands for the project of an operator, as its author uses them: on operators of this repository.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use kubewright_tests::{Up, needed};
use serde_json::Value;

mod generate;
mod helm;
mod kubectl;
mod refusals;
mod render;

/// A folder of its own for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("kubewright-{test}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A kind of [`multigroup`] in three versions.
const CAPTAINS: &str = "captains.crew.example.com";

/// The golden project of the scaffold with conversion.
fn multigroup() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("projects/multigroup")
}

/// The folder of an operator of this repository.
fn operator(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../operators").join(name)
}

/// `kubewright` in a folder, without the variables of whoever runs the tests.
fn kubewright<S: AsRef<std::ffi::OsStr>>(folder: &Path, arguments: &[S]) -> Command {
    let mut command = Command::new(needed("KUBEWRIGHT"));
    command.args(arguments).current_dir(folder).env_remove("KUBECONFIG").env("HOME", "/nonexistent");
    // What cargo and rustup keep is below the home of whoever runs the tests.
    for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if env::var_os(variable).is_none()
            && let Some(home) = env::home_dir()
        {
            command.env(variable, home.join(folder));
        }
    }
    command
}

/// Standard output and standard error of what has ended, and how it ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    errors: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), errors: text(&output.stderr) }
    }
}

/// Runs `kubewright` in a folder, to its end.
fn ended<S: AsRef<std::ffi::OsStr>>(folder: &Path, arguments: &[S]) -> Ended {
    kubewright(folder, arguments).output().expect("kubewright starts").into()
}

/// What it writes to standard output when it succeeds.
fn done<S: AsRef<std::ffi::OsStr>>(folder: &Path, arguments: &[S]) -> String {
    let ended = ended(folder, arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out
}

/// Generates in a folder what an operator has.
fn generated(name: &str, formats: &str) -> Folder {
    generated_of(&operator(name), formats)
}

/// Generates in a folder what the operator of a project has.
fn generated_of(project: &Path, formats: &str) -> Folder {
    let folder = Folder::new(&format!("generated-{formats}"));
    let output = folder.0.display().to_string();
    done(project, &["generate", "--format", formats, "--output", &output]);
    folder
}

/// What an operator's program prints with these flags.
fn manifests(name: &str, flags: &[&str]) -> Vec<Value> {
    let program = needed("KUBEWRIGHT").with_file_name(name);
    let output =
        Command::new(program).arg("manifests").args(flags).output().expect("it was built to generate");
    assert!(output.status.success());
    documents(&String::from_utf8_lossy(&output.stdout))
}

fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    documents.into_iter().filter(Value::is_object).map(whole).collect()
}

/// `1.0` as `1`: which of them is written makes no difference in YAML, and kustomize writes the other one.
fn whole(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(whole).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => Value::from(float as i64),
            _ => Value::Number(number),
        },
        other => other,
    }
}

/// Objects by what they are called, arguments of programs in order: it does not matter in which they are given.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let called = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
    };
    let ordered = |mut object: Value| {
        if let Some(Value::Array(arguments)) = object.pointer_mut("/spec/template/spec/containers/0/args") {
            arguments.sort_by_key(Value::to_string);
        }
        object
    };
    objects.into_iter().map(|object| (called(&object), ordered(object))).collect()
}

/// Compares objects one by one, so that what differs is told and not all of it.
fn same(found: Vec<Value>, wanted: Vec<Value>) {
    let (found, wanted) = (by_name(found), by_name(wanted));
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, wanted) in wanted {
        assert_eq!(found[&name], wanted, "{name}");
    }
}

/// Reads what an operator says, so that it does not wait for us.
#[expect(clippy::disallowed_methods, reason = "a program of its own is read, nothing in a simulation")]
fn read_on(output: impl Iterator<Item = String> + Send + 'static) {
    std::thread::spawn(move || output.for_each(drop));
}

/// A `kubewright run`, ended when dropped.
struct Running {
    process: Child,
    lines: Vec<String>,
}

impl Running {
    /// Starts it in the folder of an operator, and waits until it says that the operator runs.
    fn start(name: &str, arguments: &[&str]) -> Self {
        Self::of(&operator(name), arguments)
    }

    /// Starts that of a project.
    fn of(project: &Path, arguments: &[&str]) -> Self {
        let mut all = vec!["run"];
        all.extend(arguments);
        let process = kubewright(project, &all)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubewright run starts");
        let mut running = Self { process, lines: Vec::new() };
        let output = running.process.stdout.take().expect("its output is piped");
        let mut output = BufReader::new(output).lines().map_while(Result::ok);
        for line in output.by_ref() {
            running.lines.push(line);
            if running.lines.last().is_some_and(|line| line.contains("Ctrl-C ends it")) {
                read_on(output);
                return running;
            }
        }
        panic!("kubewright run ended: {:#?}", running.lines);
    }

    /// Asks it to end, as Ctrl-C does, and gives its status.
    fn interrupt(mut self) -> Option<i32> {
        let asked = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        assert!(asked.expect("kill runs").success());
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            // It is asked, not killed: it has an operator to end.
            let _ = Command::new("kill").arg(self.process.id().to_string()).status();
            let _ = self.process.wait();
        }
    }
}
