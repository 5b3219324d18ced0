//! Has cargo run the tests, and build a static program whose bytes do not tell where it was built, but with the profile `dev`.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, bail};
use serde_json::Value;

use super::BuildArgs;
use crate::project::{Project, cargo, no_cargo};

/// Runs the tests of the package. What cargo and they say goes to standard error.
///
/// # Errors
/// When one fails; it has been said which.
pub(super) fn test(project: &Project, args: &BuildArgs) -> anyhow::Result<()> {
    let mut command = project.cargo("test");
    let status = command.args(&args.cargo).stdin(Stdio::null()).stdout(io::stderr()).status();
    match status.map_err(|error| no_cargo(&error))?.success() {
        true => Ok(()),
        false => bail!("the project's tests failed, so no image was made; they said why above"),
    }
}

/// Builds the program, and says where it is. What cargo says goes to standard error.
///
/// # Errors
/// When cargo fails; it has said why then.
pub(super) fn compile(project: &Project, triple: &str, args: &BuildArgs) -> anyhow::Result<PathBuf> {
    let mut flags = vec!["-C".to_owned(), "target-feature=+crt-static".to_owned()];
    // Flags that name the project would have cargo build everything anew for each; and who debugs looks for the sources.
    if args.profile != "dev" {
        flags.extend(remapped(project, &project.local_packages()?));
    }
    let mut command = cargo();
    command
        .args(["build", "--message-format=json-render-diagnostics", "--package", &project.package])
        .args(["--bin", &project.bin, "--target", triple, "--profile", &args.profile]);
    match encoded(&flags) {
        Some(all) => drop(command.env("CARGO_ENCODED_RUSTFLAGS", all)),
        None => drop(command.arg("--config").arg(setting(triple, &flags))),
    }
    command.args(&args.cargo).current_dir(&project.workspace).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().map_err(|error| no_cargo(&error))?;
    let output = child.wait_with_output().context("cannot read what cargo says")?;
    if !output.status.success() {
        bail!("cargo build failed; it said why above");
    }
    executable(&output.stdout, &project.bin).context("cargo build does not say where it put the program")
}

/// Where the messages of cargo say that the program of this name is.
fn executable(messages: &[u8], bin: &str) -> Option<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n').rev();
    let mut artifacts = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    artifacts.find_map(|message| {
        let is_it = message["reason"] == "compiler-artifact" && message["target"]["name"] == bin;
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    })
}

/// Has the compiler write paths as if all projects were in one place.
fn remapped(project: &Project, packages: &[(String, PathBuf)]) -> Vec<String> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags: Vec<String> = cargo_home().map(|home| remap(&home, "/cargo")).into_iter().collect();
    for (name, folder) in packages {
        if !folder.starts_with(&project.workspace) {
            flags.push(remap(folder, &format!("/packages/{name}")));
        }
    }
    if !project.target.starts_with(&project.workspace) {
        flags.push(remap(&project.target, "target"));
    }
    // The last that fits is taken.
    flags.push(remap(&project.workspace, "."));
    flags
}

fn cargo_home() -> Option<PathBuf> {
    let named = env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
}

/// All flags where the environment has some: cargo reads no others then. `None` where it has none.
fn encoded(flags: &[String]) -> Option<OsString> {
    let separator = OsStr::new("\u{1f}");
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let spaced = |value: OsString| {
        value.to_string_lossy().split_whitespace().map(OsString::from).collect::<Vec<_>>().join(separator)
    };
    let theirs = set("CARGO_ENCODED_RUSTFLAGS").or_else(|| set("RUSTFLAGS").map(spaced))?;
    let ours = flags.iter().map(OsString::from);
    Some([theirs].into_iter().chain(ours).collect::<Vec<_>>().join(separator))
}

/// Flags as a setting of cargo, which adds them to those of the project's own configuration.
fn setting(triple: &str, flags: &[String]) -> String {
    // Texts of JSON are texts of TOML.
    format!("target.{triple}.rustflags={}", Value::from(flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_about_the_program_says_where_it_is() {
        let messages =
            b"{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"app\"},\"executable\":null}\n\
            no JSON\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"app\"},\"executable\":\"/t/app\"}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"other\"},\"executable\":\"/t/other\"}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages, "app"), Some(PathBuf::from("/t/app")));
        assert_eq!(executable(messages, "none"), None);
    }

    #[test]
    fn flags_with_odd_letters_stay_one_flag_each() {
        let flags = ["-C".to_owned(), "--remap-path-prefix=/a \"b\"\\c=.".to_owned()];
        let setting = setting("x-y-z", &flags);
        assert_eq!(setting, r#"target.x-y-z.rustflags=["-C","--remap-path-prefix=/a \"b\"\\c=."]"#);
    }
}
