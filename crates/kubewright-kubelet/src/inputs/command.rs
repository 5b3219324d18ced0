//! What a container runs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;
use kubewright_image::Config;

use super::InputError;
use super::expansion::expand;

/// The program and its arguments: `command` replaces the image's entrypoint and drops its arguments, `args` replaces these;
/// references to variables of `environment` are expanded in both, but not in the image's
/// (`ExpandContainerCommandAndArgs`; the merge is containerd's, `WithProcessArgs`).
///
/// # Errors
/// There is nothing to run.
pub(super) fn command(
    container: &Container,
    image: &Config,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<String>, InputError> {
    let expanded = |texts: &Option<Vec<String>>| -> Vec<String> {
        let texts = texts.iter().flatten();
        texts.map(|text| expand(text, |name| environment.get(name).cloned())).collect()
    };
    let (mut command, mut arguments) = (expanded(&container.command), expanded(&container.args));
    if command.is_empty() {
        if arguments.is_empty() {
            arguments.clone_from(&image.cmd);
        }
        command.clone_from(&image.entrypoint);
    }
    command.append(&mut arguments);
    if command.is_empty() {
        return Err(InputError::Create("no command specified".to_owned()));
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::inputs::fixture::{first, pod_of};

    fn of(container: Value, entrypoint: &[&str], cmd: &[&str]) -> Result<Vec<String>, InputError> {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let image = Config { entrypoint: texts(entrypoint), cmd: texts(cmd), ..Config::default() };
        let environment = BTreeMap::from([("X".to_owned(), "x".to_owned())]);
        command(first(&pod_of(container)), &image, &environment)
    }

    #[test]
    fn command_replaces_all_of_the_images_and_args_only_its_arguments() {
        for (container, expected) in [
            (json!({}), vec!["e", "$(X)"]),
            (json!({"args": ["$(X)", "$$(X)"]}), vec!["e", "x", "$(X)"]),
            (json!({"command": ["$(X)"]}), vec!["x"]),
            (json!({"command": ["c"], "args": ["$(Y)"]}), vec!["c", "$(Y)"]),
        ] {
            assert_eq!(of(container.clone(), &["e"], &["$(X)"]).unwrap(), expected, "{container}");
        }
    }

    #[test]
    fn an_image_without_a_command_needs_one() {
        let nothing = of(json!({}), &[], &[]).unwrap_err();
        assert_eq!(
            (nothing.reason(), nothing.to_string().as_str()),
            ("CreateContainerError", "no command specified")
        );
        assert_eq!(of(json!({"args": ["sh"]}), &[], &[]).unwrap(), ["sh"]);
        assert_eq!(of(json!({}), &[], &["sh"]).unwrap(), ["sh"]);
    }
}
