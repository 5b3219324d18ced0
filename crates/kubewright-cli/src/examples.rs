//! Examples at the end of each command's help.

use clap::Command;

/// What to begin with, for who says nothing.
const FIRST_STEPS: &str = "First steps:
  kubewright up                                 a Kubernetes on this machine; then, in another terminal:
  export KUBECONFIG=$PWD/kubewright.kubeconfig  ... and kubectl

  kubewright init --domain example.org          an operator in Rust, in an empty folder; then:
  kubewright create api --group web --version v1 --kind Page
  cargo test

  eval \"$(kubewright envtest env)\"              suites that start kube-apiserver and etcd; then:
  go test ./...

`kubewright COMMAND --help` has an example of each command, https://github.com/kubewright/kubewright the documentation.";

/// The words of a command, and lines that can be typed.
const EXAMPLES: [(&str, &[&str]); 36] = [
    (
        "up",
        &[
            "kubewright up",
            "kubewright up --port 0 --nodes 3 --data cluster",
            "kubewright up --runtime process",
            "kubewright up --ui",
            "kubewright up --from prod.kwrec --at 2026-01-31T12:00:00Z",
        ],
    ),
    ("controllers", &["kubewright controllers --kubeconfig kubeconfig --controllers '*' --nodes 2"]),
    ("view", &["kubewright view target/kubewright-recordings/web_heals.kwrec"]),
    (
        "top",
        &[
            "kubewright top --kubeconfig kubewright.kubeconfig",
            "kubewright top --namespace shop --kinds deployments,replicasets,pods",
            "kubewright top prod.kwrec",
        ],
    ),
    ("envtest install", &["kubewright envtest install --version 1.36"]),
    ("envtest env", &["eval \"$(kubewright envtest env)\" && go test ./..."]),
    ("envtest use", &["kubewright envtest use 1.36.x -p path"]),
    ("envtest list", &["kubewright envtest list"]),
    ("envtest cleanup", &["kubewright envtest cleanup '<1.36'"]),
    ("image load", &["docker save app:v1 | kubewright image load -", "kubewright image load app.tar"]),
    ("image push", &["kubewright image push registry.example/team/app:v1"]),
    ("image pull", &["kubewright image pull registry.example/team/app:v1"]),
    ("image list", &["kubewright image list"]),
    ("image remove", &["kubewright image remove app:v1"]),
    ("image inspect", &["kubewright image inspect app:v1"]),
    ("build", &["kubewright build --load", "kubewright build --tag registry.example/team/app:v1 --push"]),
    ("deploy", &["kubewright deploy --image registry.example/team/app:v1"]),
    (
        "record",
        &[
            "kubewright record --kubeconfig prod.kubeconfig --for 1h prod.kwrec",
            "kubewright record --namespace shop --kinds deployments,pods shop.kwrec",
        ],
    ),
    ("play", &["kubewright play prod.kwrec --speed 10 --kubeconfig kubewright.kubeconfig"]),
    (
        "replay",
        &[
            "kubewright replay prod.kwrec -- ./bin/manager",
            "kubewright replay prod.kwrec --as shop/press --exit-code --with-rights config/rbac -- ./bin/manager",
        ],
    ),
    ("undeploy", &["kubewright undeploy"]),
    ("convert", &["kubewright convert old/ --output new.yaml"]),
    ("init", &["kubewright init --domain example.org"]),
    ("create api", &["kubewright create api --group web --version v1 --kind Page"]),
    ("create webhook", &["kubewright create webhook --group web --version v1 --kind Page --validation"]),
    ("create version", &["kubewright create version --group web --version v2 --kind Page"]),
    ("delete api", &["kubewright delete api --group web --kind Page"]),
    ("import crd", &["kubewright import crd certificates.yaml"]),
    ("upgrade", &["kubewright upgrade --dry-run"]),
    ("generate", &["kubewright generate && kubectl apply -k config/default"]),
    ("run", &["kubewright run"]),
    (
        "render",
        &[
            "kubewright render -f page.yaml",
            "kubewright render -f page.yaml --manifests config -- ./bin/manager",
            "kubewright render --golden golden --write",
        ],
    ),
    (
        "diff",
        &[
            "kubewright diff -f page.yaml --manifests config --old ./v1 --new ./v2 --exit-code",
            "kubewright diff --from prod.kwrec --service-account shop/press --old ./v1 --new ./v2",
        ],
    ),
    (
        "trial",
        &[
            "kubewright trial",
            "kubewright trial --manifests config --sample config/samples -- ./bin/manager --leader-elect=false",
            "kubewright trial --time 5m --report trial.html --junit trial.xml -- java -jar operator.jar",
            "kubewright trial --plan kill/create -- ./bin/manager",
        ],
    ),
    (
        "why",
        &[
            "kubewright why deployment/web",
            "kubewright why ns/shop",
            "kubewright why page/home -n web --operator http://127.0.0.1:8080",
        ],
    ),
    ("doctor", &["kubewright doctor"]),
];

/// A command with the examples in its help, and in that of all below it.
pub(crate) fn with_examples(command: Command) -> Command {
    of(command.after_help(FIRST_STEPS), "")
}

fn of(mut command: Command, words: &str) -> Command {
    if let Some((_, lines)) = EXAMPLES.iter().find(|(of, _)| *of == words) {
        let heading = if lines.len() == 1 { "Example" } else { "Examples" };
        let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        command = command.after_help(format!("{heading}:{lines}"));
    }
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for name in names {
        let words = format!("{words} {name}");
        command = command.mut_subcommand(&name, |one| of(one, words.trim_start()));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// The words of all commands that have none below them.
    fn leaves(command: &Command, words: &str, found: &mut Vec<String>) {
        if !command.has_subcommands() {
            found.push(words.trim_start().to_owned());
        }
        for one in command.get_subcommands() {
            leaves(one, &format!("{words} {}", one.get_name()), found);
        }
    }

    #[test]
    fn each_command_has_an_example_that_it_takes() {
        /// These say all in one line.
        const PLAIN: [&str; 6] = ["install", "uninstall", "test", "completion", "man", "version"];
        let mut found = Vec::new();
        leaves(&Cli::command(), "", &mut found);
        let without: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|words| EXAMPLES.iter().all(|(of, _)| of != words))
            .collect();
        assert_eq!(without.iter().filter(|words| !PLAIN.contains(words)).count(), 0, "{without:?}");
        for (words, lines) in EXAMPLES {
            assert!(found.iter().any(|leaf| leaf == words), "there is no {words}");
            for line in lines {
                let start = line.find("kubewright ").expect("it runs the command");
                let end = line[start..].find([')', '&', '|']).map_or(line.len(), |end| start + end);
                let typed = line[start..end].split_whitespace().map(|word| word.trim_matches('\''));
                let parsed = Cli::command().try_get_matches_from(typed);
                assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("refused"));
            }
        }
        let help = with_examples(Cli::command()).render_help().to_string();
        assert!(help.contains("First steps:\n  kubewright up"), "{help}");
    }
}
