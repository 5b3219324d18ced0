//! What a chart says of itself.

use serde_json::{Value, json};

use crate::{Error, Input, files::MARK, files::yaml};

/// What Helm does not pack.
pub(super) const IGNORED: &str =
    ".DS_Store\n.git/\n.gitignore\n*.swp\n*.bak\n*.tmp\n*.orig\n*~\n.vscode/\n.idea/\n";

/// `Chart.yaml`.
pub(super) fn chart(input: &Input) -> Result<String, Error> {
    let about = &input.about;
    let mut chart = json!({
        "apiVersion": "v2",
        "name": input.name,
        "description": about.description.clone().unwrap_or_else(|| format!("The operator {}", input.name)),
        "type": "application",
        "version": input.version,
        "appVersion": input.version,
    });
    if !about.keywords.is_empty() {
        chart["keywords"] = json!(about.keywords);
    }
    if let Some(home) = about.homepage.as_ref().or(about.repository.as_ref()) {
        chart["home"] = json!(home);
    }
    if let Some(source) = &about.repository {
        chart["sources"] = json!([source]);
    }
    let maintainers: Vec<Value> = about.authors.iter().map(|author| maintainer(author)).collect();
    if !maintainers.is_empty() {
        chart["maintainers"] = maintainers.into();
    }
    yaml(&chart)
}

/// `Name <address>`, as Cargo writes it.
pub(crate) fn maintainer(author: &str) -> Value {
    match author.split_once('<') {
        Some((name, address)) => {
            json!({"name": name.trim(), "email": address.trim_end().trim_end_matches('>')})
        }
        None => json!({"name": author.trim()}),
    }
}

/// What Helm says when it has installed it.
pub(super) fn notes(input: &Input) -> String {
    let name = &input.name;
    format!(
        "{{{{/* {MARK} */}}}}\n\
         {name} {{{{ .Chart.AppVersion }}}} is installed in the namespace {{{{ .Release.Namespace }}}}.\n\n\
         See it start:   kubectl -n {{{{ .Release.Namespace }}}} rollout status deployment/{name}\n\
         Read its logs:  kubectl -n {{{{ .Release.Namespace }}}} logs deployment/{name}\n\
         {{{{- if .Values.crd.keep }}}}\n\n\
         The definitions of its kinds stay when it is uninstalled (crd.keep), and with them their objects.\n\
         {{{{- end }}}}\n"
    )
}
