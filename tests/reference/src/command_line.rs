//! A command line as a page.

use clap::{Arg, ArgAction, Command};

use crate::{cell, code, table};

/// A section for each command that has none below it, in the order of the help, with its flags and examples.
#[must_use]
pub fn command_page(mut program: Command) -> String {
    program.build();
    let mut text = String::new();
    let mut found = Vec::new();
    leaves(&program, &mut found);
    let rows: Vec<Vec<String>> =
        found.iter().map(|command| vec![linked(command), cell(&about(command))]).collect();
    text.push_str(&table(&["command", ""], &rows));
    for command in found {
        text.push_str(&section(command));
    }
    text
}

/// The flags of a command in tables: those without a heading in its help, then one for each heading.
#[must_use]
pub fn flag_tables(command: &Command) -> String {
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_help(arg));
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in shown() {
        if !headings.contains(&heading(arg)) {
            headings.push(heading(arg));
        }
    }
    headings.sort_by_key(Option::is_some);
    let has_variables = shown().any(|arg| arg.get_env().is_some());
    let mut text = String::new();
    for of in headings {
        if let Some(of) = of {
            text.push_str(&format!("\n{of}:\n"));
        }
        let rows: Vec<Vec<String>> =
            shown().filter(|arg| heading(arg) == of).map(|arg| row(arg, has_variables)).collect();
        let head: &[&str] =
            if has_variables { &["flag", "variable", "default", ""] } else { &["flag", "default", ""] };
        text.push_str(&format!("\n{}", table(head, &rows)));
    }
    text
}

/// Commands that have none below them.
fn leaves<'a>(command: &'a Command, found: &mut Vec<&'a Command>) {
    let below: Vec<&Command> =
        command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set()).collect();
    if below.is_empty() {
        found.push(command);
    }
    for one in below {
        leaves(one, found);
    }
}

fn words(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

fn linked(command: &Command) -> String {
    let words = words(command);
    format!("[`{words}`](#{})", words.replace(' ', "-"))
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

fn section(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let mut text =
        format!("\n## {}\n\n{}\n\n```text\n{usage}\n```\n", words(command), sentence(&about(command)));
    text.push_str(&flag_tables(command));
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let lines: Vec<&str> = examples.lines().skip(1).map(str::trim).collect();
        text.push_str(&format!("\n```sh\n{}\n```\n", lines.join("\n")));
    }
    text
}

fn sentence(text: &str) -> String {
    let text = cell(text);
    if text.ends_with('.') { text } else { format!("{text}.") }
}

fn is_help(arg: &Arg) -> bool {
    matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    )
}

fn heading(arg: &Arg) -> Option<&str> {
    arg.get_help_heading()
}

fn row(arg: &Arg, has_variables: bool) -> Vec<String> {
    let takes_value = arg.get_action().takes_values();
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(_), Some(short)) => format!("-{short}, {arg}"),
        _ => arg.to_string(),
    };
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default =
        if takes_value && !arg.is_hide_default_value_set() { defaults.join(",") } else { String::new() };
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut does = cell(&help);
    if arg.is_required_set() {
        does = format!("required; {does}");
    }
    let values = values(arg);
    if !values.is_empty() {
        does = format!("{does}: {values}");
    }
    let variable = arg.get_env().map(|name| code(&name.to_string_lossy())).unwrap_or_default();
    let mut cells = vec![code(&name), code(&default), does];
    if has_variables {
        cells.insert(1, variable);
    }
    cells
}

/// What may be said, where that is a list.
fn values(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let is_switch = values.iter().all(|value| matches!(value.get_name(), "true" | "false"));
    if values.is_empty() || is_switch || !arg.get_action().takes_values() {
        return String::new();
    }
    let shown = values.iter().filter(|value| !value.is_hide_set()).map(|value| match value.get_help() {
        Some(help) => format!("`{}` ({})", value.get_name(), cell(help.to_string().trim_end_matches('.'))),
        None => code(value.get_name()),
    });
    shown.collect::<Vec<_>>().join(", ")
}
